"""Binding and eviction of pods, on any Kubernetes API server."""

from __future__ import annotations

import uuid

import pytest

from tests.cluster.objects import node, pod
from tests.waiting import until
from tidesched_web.clusters.kubernetes.client import Json, KubernetesClient
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.paths import DISRUPTION_BUDGET, NODE, POD
from tidesched_web.clusters.kubernetes.pressure import run_all
from tidesched_web.clusters.kubernetes.writes import ClusterWrites


@pytest.fixture
def node_name(client: KubernetesClient) -> str:
    name = f"n-{uuid.uuid4().hex[:8]}"
    assert client.send("POST", NODE.path(), node(name)).done
    return name


def make_pod(client: KubernetesClient, namespace: str, name: str, **labels: str) -> str:
    made = client.send("POST", POD.path(namespace), pod(name, labels=labels)).body
    assert made is not None
    return str(made["metadata"]["uid"])


def found(client: KubernetesClient, namespace: str, name: str) -> Json:
    return client.get(POD.path(namespace, name))


def test_a_pod_is_bound_with_its_cards(
    client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str
) -> None:
    uid = make_pod(client, namespace, "one")
    outcome = writes.bind_pod(namespace, "one", uid=uid, node=node_name, card="NVIDIA-H200", card_indices=(0, 3))
    assert outcome.kind is OutcomeKind.DONE
    bound = found(client, namespace, "one")
    assert bound["spec"]["nodeName"] == node_name
    assert bound["metadata"]["annotations"]["tidesched.io/card-indices"] == "0,3"
    assert bound["metadata"]["annotations"]["tidesched.io/card-type"] == "NVIDIA-H200"


def test_binding_again_to_the_same_node_is_done_already(
    client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str
) -> None:
    uid = make_pod(client, namespace, "one")
    assert writes.bind_pod(namespace, "one", uid=uid, node=node_name).reason == ""
    again = writes.bind_pod(namespace, "one", uid=uid, node=node_name)
    assert (again.kind, again.reason) == (OutcomeKind.DONE, "AlreadyBound")
    elsewhere = writes.bind_pod(namespace, "one", uid=uid, node="another-node")
    assert elsewhere.kind is OutcomeKind.CONFLICT
    assert found(client, namespace, "one")["spec"]["nodeName"] == node_name


def test_another_pod_of_the_same_name_is_not_bound(
    client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str
) -> None:
    make_pod(client, namespace, "one")
    outcome = writes.bind_pod(namespace, "one", uid=str(uuid.uuid4()), node=node_name)
    assert outcome.kind is OutcomeKind.GONE
    assert not found(client, namespace, "one")["spec"].get("nodeName")


def test_a_pod_that_is_gone_is_neither_bound_nor_evicted(writes: ClusterWrites, namespace: str) -> None:
    uid = str(uuid.uuid4())
    assert writes.bind_pod(namespace, "nobody", uid=uid, node="n").kind is OutcomeKind.GONE
    assert writes.evict_pod(namespace, "nobody", uid=uid).kind is OutcomeKind.GONE
    assert writes.delete_pod(namespace, "nobody", uid=uid).kind is OutcomeKind.GONE


def test_a_bound_pod_leaves_with_its_grace(
    client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str
) -> None:
    uid = make_pod(client, namespace, "one")
    writes.bind_pod(namespace, "one", uid=uid, node=node_name)
    assert writes.evict_pod(namespace, "one", uid=uid, dry_run=True).done
    assert "deletionTimestamp" not in found(client, namespace, "one")["metadata"]
    assert writes.evict_pod(namespace, "one", uid=uid).done
    assert "deletionTimestamp" in found(client, namespace, "one")["metadata"]
    assert writes.bind_pod(namespace, "one", uid=uid, node="another").kind is OutcomeKind.CONFLICT


def test_a_pod_that_waits_leaves_at_once(client: KubernetesClient, writes: ClusterWrites, namespace: str) -> None:
    uid = make_pod(client, namespace, "one")
    assert writes.evict_pod(namespace, "one", uid=str(uuid.uuid4())).kind is OutcomeKind.GONE
    assert writes.get_pod(namespace, "one").done
    assert writes.evict_pod(namespace, "one", uid=uid).done
    assert writes.get_pod(namespace, "one").kind is OutcomeKind.GONE


def run(client: KubernetesClient, namespace: str, name: str) -> None:
    """Say that the pod runs, as its kubelet would."""
    patch = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    path = POD.path(namespace, name, "status")
    assert client.send("PATCH", path, patch, content_type="application/merge-patch+json").done


@pytest.fixture
def guarded(client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str) -> dict[str, str]:
    """Two running pods of which one has to stay."""
    budget = {
        "metadata": {"name": "guard"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    assert client.send("POST", DISRUPTION_BUDGET.path(namespace), budget).done
    uids = {}
    for name in ("a", "b"):
        uids[name] = make_pod(client, namespace, name, app="guarded")
        assert writes.bind_pod(namespace, name, uid=uids[name], node=node_name).done
        run(client, namespace, name)
    return uids


def test_a_disruption_budget_stops_an_eviction(writes: ClusterWrites, namespace: str, guarded: dict[str, str]) -> None:
    # a controller counts the pods some time after they run
    until(lambda: writes.evict_pod(namespace, "a", uid=guarded["a"], dry_run=True).done)
    dry = [writes.evict_pod(namespace, name, uid=uid, dry_run=True) for name, uid in guarded.items()]
    assert [outcome.kind for outcome in dry] == [OutcomeKind.DONE, OutcomeKind.DONE]
    assert writes.evict_pod(namespace, "a", uid=guarded["a"]).done
    refused = writes.evict_pod(namespace, "b", uid=guarded["b"])
    assert (refused.kind, refused.reason) == (OutcomeKind.REFUSED, "TooManyRequests")
    assert writes.evict_pod(namespace, "b", uid=guarded["b"], dry_run=True).kind is OutcomeKind.REFUSED
    # one that leaves already asks no budget
    assert writes.evict_pod(namespace, "a", uid=guarded["a"]).done


def test_of_many_binders_one_wins(
    client: KubernetesClient, writes: ClusterWrites, namespace: str, node_name: str
) -> None:
    uid = make_pod(client, namespace, "one")

    def attempt(index: int) -> Outcome:
        return writes.bind_pod(namespace, "one", uid=uid, node=f"node-{index}")

    kinds = [outcome.kind for outcome in run_all([lambda index=index: attempt(index) for index in range(12)])]
    assert kinds.count(OutcomeKind.DONE) == 1
    assert kinds.count(OutcomeKind.CONFLICT) == 11


def test_an_event_about_a_pod_is_kept(client: KubernetesClient, writes: ClusterWrites, namespace: str) -> None:
    uid = make_pod(client, namespace, "one")
    outcome = writes.write_event(
        kind="Pod",
        namespace=namespace,
        name="one",
        uid=uid,
        type_="Warning",
        reason="InsufficientScalarQuota",
        message="8 cards asked, 5 left",
        now=1_800_000_000.0,
    )
    assert outcome.done, outcome
    kept = client.get(f"/api/v1/namespaces/{namespace}/events", {"fieldSelector": "involvedObject.name=one"})["items"]
    assert [event["reason"] for event in kept] == ["InsufficientScalarQuota"]


def test_a_queue_is_pushed_closed_and_opened(client: KubernetesClient, writes: ClusterWrites) -> None:
    from tidesched_web.clusters.kubernetes import manifests

    name = f"q-{uuid.uuid4().hex[:8]}"
    manifest = manifests.queue(
        name,
        service_type="training",
        weight=1,
        priority=20000,
        reclaimable=True,
        card_quota={"NVIDIA-H200": 8},
        memory_mib=1024,
        labels={manifests.TENANT: "acme", manifests.PROJECT: ""},
    )
    outcome = writes.apply_queue(manifest)
    assert outcome.done, outcome
    queue = writes.get_queue(name).body
    assert queue is not None
    assert queue["metadata"]["annotations"]["volcano.sh/card.quota"] == '{"NVIDIA-H200":8}'
    assert queue["metadata"]["labels"] == {"tidesched.io/tenant": "acme"}
    assert queue["spec"]["capability"] == {"memory": "1024Mi"}
    for close, state in ((False, "Closing"), (True, "Closed")):
        assert writes.close_queue(name, drained=close, by_command=False).done
        assert (writes.get_queue(name).body or {})["status"]["state"] == state
    assert writes.open_queue(name, by_command=False).done
    assert (writes.get_queue(name).body or {})["status"]["state"] == "Open"
    assert writes.delete_queue(name, uid=str(uuid.uuid4())).kind is OutcomeKind.GONE
    assert writes.delete_queue(name, uid=queue["metadata"]["uid"]).done
