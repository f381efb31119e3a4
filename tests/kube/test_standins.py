"""The stand-ins do what the tests need of kubelets and controllers."""

from __future__ import annotations

import uuid

import pytest

from tests.cluster.objects import CARD, JOBS, deployment, job, node
from tests.waiting import until
from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, Json, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, JOB, NODE, POD, POD_GROUP
from tidesched_web.clusters.kubernetes.writes import ClusterWrites

pytestmark = pytest.mark.usefixtures("beside")
_SECONDS = 60.0


@pytest.fixture
def node_name(direct: KubernetesClient) -> str:
    name = f"n-{uuid.uuid4().hex[:8]}"
    assert direct.send("POST", NODE.path(), node(name)).done
    return name


def items(client: KubernetesClient, path: str) -> list[Json]:
    return list(client.get(path)["items"])


def start(client: KubernetesClient, namespace: str, node_name: str, manifest: Json) -> list[Json]:
    """Admit and bind a gang as a scheduler would; its running pods."""
    assert client.send("POST", f"{JOBS}/namespaces/{namespace}/jobs", manifest).done
    (group,) = until(lambda: items(client, POD_GROUP.path(namespace)), _SECONDS)
    assert items(client, POD.path(namespace)) == []
    path = POD_GROUP.path(namespace, group["metadata"]["name"])
    assert client.send("PATCH", path, {"status": {"phase": "Inqueue"}}, content_type=MERGE_PATCH).done
    count = manifest["spec"]["minAvailable"]
    pods = until(lambda: len(items(client, POD.path(namespace))) == count and items(client, POD.path(namespace)))
    writes = ClusterWrites(client)
    for pod in pods:
        metadata = pod["metadata"]
        assert writes.bind_pod(namespace, metadata["name"], uid=metadata["uid"], node=node_name).done
    return running(client, namespace, count)


def running(client: KubernetesClient, namespace: str, count: int) -> list[Json]:
    def look() -> list[Json]:
        found = [pod for pod in items(client, POD.path(namespace)) if pod["status"]["phase"] == "Running"]
        return found if len(found) == count else []

    return list(until(look, _SECONDS))


@pytest.mark.parametrize(("action", "phase"), [("RestartJob", "Pending"), ("AbortJob", "Aborted")])
def test_one_eviction_takes_the_whole_gang_along(
    direct: KubernetesClient, namespace: str, node_name: str, action: str, phase: str
) -> None:
    manifest = job("train", pods=3)
    manifest["spec"]["policies"] = [{"event": "PodEvicted", "action": action}]
    pods = start(direct, namespace, node_name, manifest)
    (group,) = items(direct, POD_GROUP.path(namespace))
    victim = pods[0]["metadata"]
    assert ClusterWrites(direct).evict_pod(namespace, victim["name"], uid=victim["uid"]).done
    until(lambda: direct.get(JOB.path(namespace, "train"))["status"]["state"]["phase"] == phase, _SECONDS)
    until(lambda: items(direct, POD.path(namespace)) == [], _SECONDS)
    if action == "RestartJob":  # a new gang waits for its turn
        (again,) = until(lambda: items(direct, POD_GROUP.path(namespace)), _SECONDS)
        assert again["metadata"]["uid"] != group["metadata"]["uid"]
    else:
        until(lambda: items(direct, POD_GROUP.path(namespace)) == [], _SECONDS)


def test_pods_end_when_their_work_is_done(direct: KubernetesClient, namespace: str, node_name: str) -> None:
    start(direct, namespace, node_name, job("train", pods=2, run_seconds=1))
    until(lambda: direct.get(JOB.path(namespace, "train"))["status"]["state"]["phase"] == "Completed", _SECONDS)


def test_a_service_gets_another_pod_for_each_that_goes(
    direct: KubernetesClient, namespace: str, node_name: str
) -> None:
    assert direct.send("POST", DEPLOYMENT.path(namespace), deployment("serve", replicas=2)).done
    until(lambda: len(items(direct, POD.path(namespace))) == 2, _SECONDS)
    writes = ClusterWrites(direct)
    first = [pod["metadata"] for pod in items(direct, POD.path(namespace))]
    for pod in first:
        assert writes.bind_pod(namespace, pod["name"], uid=pod["uid"], node=node_name).done
    running(direct, namespace, 2)
    assert writes.evict_pod(namespace, first[0]["name"], uid=first[0]["uid"]).done

    def replaced() -> bool:
        there = {pod["metadata"]["uid"] for pod in items(direct, POD.path(namespace))}
        return len(there) == 2 and first[0]["uid"] not in there

    until(replaced, _SECONDS)


def test_queues_open_and_are_closed_by_commands(direct: KubernetesClient, namespace: str) -> None:
    name, writes = f"q-{namespace}", ClusterWrites(direct)
    manifest = manifests.queue(
        name, service_type="training", weight=1, priority=1, reclaimable=True, card_quota={CARD: 1}
    )
    assert writes.apply_queue(manifest).done

    def state() -> str:
        return str(((writes.get_queue(name).body or {}).get("status") or {}).get("state"))

    until(lambda: state() == "Open", _SECONDS)
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": name}}
    group |= {"apiVersion": POD_GROUP.group_version, "kind": POD_GROUP.name}
    assert direct.send("POST", POD_GROUP.path(namespace), group).done
    until(lambda: items(direct, POD_GROUP.path(namespace)))
    assert writes.close_queue(name, drained=False).done
    until(lambda: state() == "Closing", _SECONDS)
    assert direct.send("DELETE", POD_GROUP.path(namespace, "g")).done
    until(lambda: state() == "Closed", _SECONDS)
    assert writes.open_queue(name).done
    until(lambda: state() == "Open", _SECONDS)
