"""Volcano's job controller, as gangs need it: a Job has a PodGroup, then pods; PodEvicted ends or restarts it."""

from __future__ import annotations

import threading
from typing import Any

from tests.kube.standins.picture import Picture, key_of
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, Json, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import JOB, POD, POD_GROUP

_LIVE = ("Pending", "Running", "Restarting", "Aborting")


class Jobs:
    """Restarts make a new PodGroup, as Volcano's own controller does; evictions do not use up retries here."""

    kind = "Job"

    def __init__(self, client: KubernetesClient, picture: Picture) -> None:
        self._client, self._picture = client, picture
        # Pods that were deleted on purpose, so that a pod which leaves for that reason is no eviction.
        self._sent_away: set[str] = set()
        # Pods once seen in a Job, so that one which is gone is missed.
        self._members: dict[str, dict[str, Json]] = {}
        self._lock = threading.Lock()

    def look(self, job: Json) -> float | None:
        uid = job["metadata"]["uid"]
        phase = ((job.get("status") or {}).get("state") or {}).get("phase", "")
        if phase not in ("", *_LIVE):
            return None
        pods = {pod["metadata"]["uid"]: pod for pod in self._picture.owned(uid, "Pod")}
        group = next(iter(self._picture.owned(uid, "PodGroup")), None)
        if phase in ("Restarting", "Aborting"):
            return self._go_down(job, phase, pods, group)
        if self._evicted(uid, pods):
            return self._fall(job)
        if group is None:
            self._make_group(job)
            return None
        if (group.get("status") or {}).get("phase") in ("Inqueue", "Running", "Unknown"):
            self._fill_up(job, group, pods)
        self._count(job, pods, phase)
        return None

    def _evicted(self, uid: str, pods: dict[str, Json]) -> bool:
        """True when a pod leaves, or has left, that was not sent away from here."""
        known = self._members.setdefault(uid, {})
        known.update(pods)
        missing = [pod for key, pod in known.items() if key not in pods]
        leaving = [pod for pod in pods.values() if pod["metadata"].get("deletionTimestamp")]
        for pod in missing:
            del known[pod["metadata"]["uid"]]
        return any(pod["metadata"]["uid"] not in self._sent_away for pod in (*missing, *leaving))

    def _fall(self, job: Json) -> float | None:
        """What the policy for PodEvicted says."""
        policies = [policy for policy in job["spec"].get("policies") or () if _meant(policy)]
        action = policies[0]["action"] if policies else "SyncJob"
        if action == "SyncJob":
            return 0.5  # only the pod comes back, as soon as the old one is gone
        self._state(job, "Restarting" if action == "RestartJob" else "Aborting")
        return None

    def _go_down(self, job: Json, phase: str, pods: dict[str, Json], group: Json | None) -> float | None:
        if group is not None:
            self._client.send("DELETE", POD_GROUP.path(*key_of(group)), _exactly(group))
        for pod in pods.values():
            if not pod["metadata"].get("deletionTimestamp"):
                self._sent_away.add(pod["metadata"]["uid"])
                self._client.send("DELETE", POD.path(*key_of(pod)), _exactly(pod))
        if pods or group is not None:
            return 0.5
        self._members.pop(job["metadata"]["uid"], None)
        self._state(job, "Pending" if phase == "Restarting" else "Aborted")
        return None

    def _make_group(self, job: Json) -> None:
        spec = job["spec"]
        manifest = {
            "apiVersion": POD_GROUP.group_version,
            "kind": POD_GROUP.name,
            "metadata": {
                "name": f"{job['metadata']['name']}-{job['metadata']['uid']}",
                "namespace": job["metadata"]["namespace"],
                "annotations": _volcano(job["metadata"].get("annotations")),
                "ownerReferences": [_owner(job)],
            },
            "spec": {
                "minMember": spec.get("minAvailable", 1),
                "queue": spec.get("queue") or "default",
                "priorityClassName": spec.get("priorityClassName", ""),
                "minTaskMember": {task["name"]: task.get("replicas", 1) for task in spec.get("tasks") or ()},
                "minResources": _resources(job),
            },
            "status": {"phase": "Pending"},
        }
        self._client.send("POST", POD_GROUP.path(job["metadata"]["namespace"]), manifest)

    def _fill_up(self, job: Json, group: Json, pods: dict[str, Json]) -> None:
        there = {pod["metadata"]["name"] for pod in pods.values()}
        for task in job["spec"].get("tasks") or ():
            for index in range(task.get("replicas", 1)):
                name = f"{job['metadata']['name']}-{task['name']}-{index}"
                if name not in there:
                    namespace = job["metadata"]["namespace"]
                    self._client.send("POST", POD.path(namespace), _pod(name, job, task, group))

    def _count(self, job: Json, pods: dict[str, Json], phase: str) -> None:
        phases = [pod["status"].get("phase", "Pending") for pod in pods.values()]
        needed = job["spec"].get("minAvailable", 1)
        now = "Pending"
        if phases.count("Succeeded") >= max(needed, 1) and phases.count("Succeeded") == len(phases):
            now = "Completed"
        elif phases.count("Running") + phases.count("Succeeded") >= max(needed, 1):
            now = "Running"
        if now != phase:
            counts = {name.lower(): phases.count(name) for name in ("Pending", "Running", "Succeeded", "Failed")}
            self._state(job, now, counts)

    def _state(self, job: Json, phase: str, counts: dict[str, int] | None = None) -> None:
        patch = {"status": {"state": {"phase": phase}, **(counts or {})}}
        self._client.send("PATCH", JOB.path(*key_of(job), "status"), patch, content_type=MERGE_PATCH)


def _meant(policy: Json) -> bool:
    return {"PodEvicted", "*"} & {policy.get("event", ""), *(policy.get("events") or ())} != set()


def _exactly(obj: Json) -> Json:
    return {"preconditions": {"uid": obj["metadata"]["uid"]}}


def _owner(job: Json) -> Json:
    return {
        "apiVersion": JOB.group_version,
        "kind": JOB.name,
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
    }


def _volcano(annotations: dict[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (annotations or {}).items() if key.startswith("volcano.sh/")}


def _pod(name: str, job: Json, task: Json, group: Json) -> Json:
    template: dict[str, Any] = task["template"]
    metadata = template.get("metadata") or {}
    own = {
        "volcano.sh/job-name": job["metadata"]["name"],
        "volcano.sh/queue-name": job["spec"].get("queue") or "default",
        "volcano.sh/task-spec": task["name"],
    }
    annotations = {**(metadata.get("annotations") or {}), **own}
    annotations["scheduling.k8s.io/group-name"] = group["metadata"]["name"]
    if seconds := (job["metadata"].get("annotations") or {}).get("tidesched.io/run-seconds"):
        annotations["tidesched.io/run-seconds"] = seconds
    spec = {"schedulerName": job["spec"].get("schedulerName", ""), "restartPolicy": "Never", **template["spec"]}
    if job["spec"].get("priorityClassName"):
        spec.setdefault("priorityClassName", job["spec"]["priorityClassName"])
    return {
        "metadata": {
            "name": name,
            "labels": {**(metadata.get("labels") or {}), **own},
            "annotations": annotations,
            "ownerReferences": [_owner(job)],
        },
        "spec": spec,
    }


def _resources(job: Json) -> dict[str, str]:
    """The requests of ``minAvailable`` pods of the first task, which is all that these tests have."""
    tasks = job["spec"].get("tasks") or ()
    if not tasks:
        return {}
    containers = tasks[0]["template"]["spec"].get("containers") or ()
    requests = (containers[0].get("resources") or {}).get("requests") or {} if containers else {}
    count = job["spec"].get("minAvailable", 1)
    return {name: _times(str(quantity), count) for name, quantity in requests.items()}


def _times(quantity: str, count: int) -> str:
    digits = quantity.rstrip("KMGTPEimk")
    return f"{int(digits) * count}{quantity[len(digits) :]}"
