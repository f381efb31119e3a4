"""The controllers of Deployments and ReplicaSets: as many pods as asked for, a new one for each that goes."""

from __future__ import annotations

import time

from tests.kube.standins.picture import Picture, key_of
from tidesched_web.clusters.kubernetes.client import Json, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, POD, REPLICA_SET, Kind

_SEEN_SECONDS = 5.0


class Deployments:
    """One ReplicaSet for each Deployment: these tests roll nothing out."""

    kind = "Deployment"

    def __init__(self, client: KubernetesClient, picture: Picture) -> None:
        self._client, self._picture = client, picture

    def look(self, deployment: Json) -> float | None:
        metadata, spec = deployment["metadata"], deployment["spec"]
        sets = self._picture.owned(metadata["uid"], "ReplicaSet")
        if not sets:
            manifest = {
                "metadata": {
                    "name": f"{metadata['name']}-1",
                    "labels": spec["template"]["metadata"].get("labels") or {},
                    "annotations": metadata.get("annotations") or {},
                    "ownerReferences": [_owner(DEPLOYMENT, deployment)],
                },
                "spec": {key: spec[key] for key in ("replicas", "selector", "template")},
            }
            self._client.send("POST", REPLICA_SET.path(metadata["namespace"]), manifest)
        elif sets[0]["spec"]["replicas"] != spec["replicas"]:
            patch = {"spec": {"replicas": spec["replicas"]}}
            self._client.send(
                "PATCH", REPLICA_SET.path(*key_of(sets[0])), patch, content_type="application/merge-patch+json"
            )
        return None


class ReplicaSets:
    """Names are never used twice, as the real controller's are not."""

    kind = "ReplicaSet"

    def __init__(self, client: KubernetesClient, picture: Picture) -> None:
        self._client, self._picture = client, picture
        # Made here a moment ago, and not seen by the watch yet.
        self._expected: dict[str, dict[str, float]] = {}

    def look(self, replica_set: Json) -> float | None:
        uid, namespace = replica_set["metadata"]["uid"], replica_set["metadata"]["namespace"]
        owned = self._picture.owned(uid, "Pod")
        seen, now = {pod["metadata"]["uid"] for pod in owned}, time.monotonic()
        expected = {
            pod: at for pod, at in self._expected.get(uid, {}).items() if pod not in seen and now - at < _SEEN_SECONDS
        }
        self._expected[uid] = expected
        live = [
            pod
            for pod in owned
            if not pod["metadata"].get("deletionTimestamp")
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]
        missing = replica_set["spec"]["replicas"] - len(live) - len(expected)
        for _ in range(missing):
            outcome = self._client.send("POST", POD.path(namespace), _pod(replica_set))
            if outcome.body is not None:
                expected[outcome.body["metadata"]["uid"]] = now
        for pod in sorted(live, key=lambda pod: bool(pod["spec"].get("nodeName")))[: max(0, -missing)]:
            self._client.send("DELETE", POD.path(*key_of(pod)), {"preconditions": {"uid": pod["metadata"]["uid"]}})
        return 1.0 if expected else None


def _pod(replica_set: Json) -> Json:
    template = replica_set["spec"]["template"]
    metadata = {
        "generateName": f"{replica_set['metadata']['name']}-",
        "labels": template["metadata"].get("labels") or {},
        "annotations": template["metadata"].get("annotations") or {},
        "ownerReferences": [_owner(REPLICA_SET, replica_set)],
    }
    return {"metadata": metadata, "spec": template["spec"]}


def _owner(kind: Kind, obj: Json) -> Json:
    return {
        "apiVersion": kind.group_version,
        "kind": kind.name,
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
