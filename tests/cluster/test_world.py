"""The life of gangs and services in the simulated cluster, seen and driven through its API."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.objects import CARD, JOBS, deployment, job, node
from tests.cluster.servers import ApiServer
from tests.waiting import until
from tidesched_web.clusters.kubernetes.client import ApiFailure, Json, KubernetesClient
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, JOB, NODE, POD, POD_GROUP
from tidesched_web.clusters.kubernetes.writes import ClusterWrites


@pytest.fixture(autouse=True)
def _only_simulated(api_server: ApiServer) -> None:
    if not api_server.simulated:
        pytest.skip("a bare API server has no controllers and no kubelets")


@pytest.fixture
def node_name(client: KubernetesClient, namespace: str) -> str:
    assert client.send("POST", NODE.path(), node(f"n-{namespace}")).done
    return f"n-{namespace}"


def pods(client: KubernetesClient, namespace: str) -> list[Json]:
    return list(client.get(POD.path(namespace))["items"])


def phases(client: KubernetesClient, namespace: str) -> Callable[[], list[str]]:
    return lambda: sorted(pod["status"]["phase"] for pod in pods(client, namespace))


def submit(client: KubernetesClient, namespace: str, manifest: Json) -> None:
    outcome = client.send("POST", JOB.path(namespace), manifest)
    assert outcome.done, outcome


def admit(client: KubernetesClient, writes: ClusterWrites, namespace: str, name: str) -> None:
    uid = client.get(POD_GROUP.path(namespace, name))["metadata"]["uid"]
    outcome = writes.patch_podgroup_status(namespace, name, uid=uid, phase="Inqueue")
    assert outcome.done, outcome


def bind_all(client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str) -> None:
    for index, pod in enumerate(pods(client, namespace)):
        metadata = pod["metadata"]
        outcome = writes.bind_pod(
            namespace, metadata["name"], uid=metadata["uid"], node=node_name, card=CARD, card_indices=(index,)
        )
        assert outcome.done, outcome


def test_a_job_has_no_pods_before_its_gang_is_admitted(
    client: KubernetesClient, writes: ClusterWrites, namespace: str
) -> None:
    submit(client, namespace, job("train", pods=3))
    group = client.get(POD_GROUP.path(namespace, "train"))
    assert group["spec"]["minMember"] == 3
    assert group["status"]["phase"] == "Pending"
    assert pods(client, namespace) == []
    admit(client, writes, namespace, "train")
    assert until(lambda: len(pods(client, namespace)) == 3)
    assert client.get(POD_GROUP.path(namespace, "train"))["status"]["phase"] == "Inqueue"


def test_a_gang_runs_and_ends(client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str) -> None:
    submit(client, namespace, job("train", pods=2, run_seconds=60))
    admit(client, writes, namespace, "train")
    until(lambda: len(pods(client, namespace)) == 2)
    bind_all(client, writes, namespace, node_name)
    assert until(lambda: phases(client, namespace)() == ["Running", "Running"])
    held = [pod["metadata"]["annotations"]["tidesched.io/card-indices"] for pod in pods(client, namespace)]
    assert held == ["0", "1"]
    assert client.get(JOB.path(namespace, "train"))["status"]["state"]["phase"] == "Running"
    assert until(lambda: phases(client, namespace)() == ["Succeeded", "Succeeded"])
    assert client.get(JOB.path(namespace, "train"))["status"]["state"]["phase"] == "Completed"


def test_an_evicted_member_restarts_the_gang_under_a_new_podgroup(
    client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str
) -> None:
    submit(client, namespace, job("train", pods=2))
    admit(client, writes, namespace, "train")
    until(lambda: len(pods(client, namespace)) == 2)
    bind_all(client, writes, namespace, node_name)
    until(lambda: phases(client, namespace)() == ["Running", "Running"])
    before = client.get(POD_GROUP.path(namespace, "train"))["metadata"]
    victim = pods(client, namespace)[0]["metadata"]
    assert writes.evict_pod(namespace, victim["name"], uid=victim["uid"]).done

    def replaced() -> Json | None:
        found = client.send("GET", POD_GROUP.path(namespace, "train")).body
        return found if found and found["metadata"]["uid"] != before["uid"] else None

    after = until(replaced)
    assert after["status"]["phase"] == "Pending"
    # the place in the queue is kept
    submitted = "tidesched.io/submitted-at"
    assert after["metadata"]["annotations"][submitted] == before["annotations"][submitted]
    assert pods(client, namespace) == []


def test_a_service_replaces_what_leaves_and_follows_its_size(
    client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str
) -> None:
    assert client.send("POST", DEPLOYMENT.path(namespace), deployment("serve", replicas=2)).done
    first = {pod["metadata"]["uid"] for pod in pods(client, namespace)}
    assert len(first) == 2
    bind_all(client, writes, namespace, node_name)
    until(lambda: phases(client, namespace)() == ["Running", "Running"])
    victim = pods(client, namespace)[0]["metadata"]
    assert writes.evict_pod(namespace, victim["name"], uid=victim["uid"]).done
    assert until(lambda: phases(client, namespace)() == ["Pending", "Running"])
    patch = {"spec": {"replicas": 4}}
    path = DEPLOYMENT.path(namespace, "serve")
    assert client.send("PATCH", path, patch, content_type="application/merge-patch+json").done
    assert len(pods(client, namespace)) == 4


def test_a_node_has_only_so_many_cards(
    client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str
) -> None:
    assert client.send("POST", DEPLOYMENT.path(namespace), deployment("serve", replicas=2, cards=5)).done
    first, second = (pod["metadata"] for pod in pods(client, namespace))
    assert writes.bind_pod(namespace, first["name"], uid=first["uid"], node=node_name).done
    refused = writes.bind_pod(namespace, second["name"], uid=second["uid"], node=node_name)
    assert refused.kind is OutcomeKind.CONFLICT
    assert "3 cards have that room" in refused.message


def test_a_job_that_is_deleted_takes_its_pods_along(
    client: KubernetesClient, writes: ClusterWrites, namespace: str
) -> None:
    submit(client, namespace, job("train", pods=2))
    admit(client, writes, namespace, "train")
    until(lambda: len(pods(client, namespace)) == 2)
    assert client.send("DELETE", JOB.path(namespace, "train")).done
    assert pods(client, namespace) == []
    assert client.send("GET", POD_GROUP.path(namespace, "train")).kind is OutcomeKind.GONE


def test_a_lost_node_takes_its_pods_along(
    client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str
) -> None:
    assert client.send("POST", DEPLOYMENT.path(namespace), deployment("serve", replicas=1)).done
    bind_all(client, writes, namespace, node_name)
    lost = pods(client, namespace)[0]["metadata"]["uid"]
    assert client.send("DELETE", NODE.path(name=node_name)).done
    assert until(lambda: [p["metadata"]["uid"] for p in pods(client, namespace)] not in ([], [lost]))


def test_a_cordoned_node_says_so(client: KubernetesClient, node_name: str) -> None:
    patch = {"spec": {"unschedulable": True}}
    path = NODE.path(name=node_name)
    assert client.send("PATCH", path, patch, content_type="application/merge-patch+json").done
    assert client.get(path)["spec"]["unschedulable"] is True


def test_a_job_of_an_unknown_priority_class_is_refused(client: KubernetesClient, namespace: str) -> None:
    manifest = job("train", pods=1)
    manifest["spec"]["priorityClassName"] = "nobody"
    outcome = client.send("POST", f"{JOBS}/namespaces/{namespace}/jobs", manifest)
    assert outcome.kind is OutcomeKind.REFUSED
    assert "nobody" in outcome.message
    with pytest.raises(ApiFailure):
        client.get(JOB.path(namespace, "train"))
