"""What cannot be done is refused with a Status that names it, and the server goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.objects import deployment, job, node, pod
from tests.cluster.servers import SimulatedServer
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, ApiFailure, KubernetesClient
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, JOB, NODE, POD, POD_GROUP, QUEUE
from tidesched_web.clusters.kubernetes.writes import ClusterWrites

JOB_KIND = {"apiVersion": JOB.group_version, "kind": JOB.name}


_ANYWHERE = [
    ("POST", POD.path("{ns}"), [], "BadRequest"),
    ("POST", POD.path("{ns}"), {"metadata": []}, "BadRequest"),
    ("POST", POD.path("{ns}"), {"metadata": {}}, "Invalid"),
    ("POST", POD.path("{ns}"), {"metadata": {"name": "UPPER"}}, "Invalid"),
    ("POST", POD.path("{ns}"), {"metadata": {"name": "a", "namespace": "other"}}, "BadRequest"),
    ("POST", POD.path("{ns}"), {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}}, "BadRequest"),
    ("POST", JOB.path("{ns}"), {"metadata": {"name": "a"}}, "BadRequest"),
    ("POST", JOB.path("{ns}"), {**JOB_KIND, "metadata": {"name": "a"}, "spec": {"minAvailable": -1}}, "Invalid"),
    ("POST", NODE.path(), {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "-1"}}}, "Invalid"),
    ("PUT", POD.path("{ns}", "nobody"), {"metadata": {"name": "nobody"}}, "NotFound"),
]
# The simulated cluster has fewer kinds and says more about what it cannot do.
_SIMULATED = [
    ("POST", POD.path("{ns}", "nobody", "binding"), {"target": {}}, "Invalid"),
    ("POST", POD.path("{ns}", "nobody", "eviction"), {}, "NotFound"),
    ("POST", JOB.path("{ns}"), {**JOB_KIND, "metadata": {"name": "a"}}, "Invalid"),
    (
        "POST",
        JOB.path("{ns}"),
        {**JOB_KIND, "metadata": {"name": "a"}, "spec": {"tasks": [{"replicas": -1}]}},
        "Invalid",
    ),
    ("POST", DEPLOYMENT.path("{ns}"), {"metadata": {"name": "a"}, "spec": {"replicas": "many"}}, "Invalid"),
    (
        "POST",
        DEPLOYMENT.path("{ns}"),
        {"metadata": {"name": "a", "annotations": {"scheduling.volcano.sh/group-min-member": "²"}}},
        "Invalid",
    ),
    ("DELETE", POD.path("{ns}"), None, "MethodNotAllowed"),
    ("GET", "/apis/no.such.group/v1/things", None, "NotFound"),
    ("GET", "/tidesched/nothing", None, "NotFound"),
    ("POST", "/apis/apps/v1/namespaces/{ns}/controllerrevisions", {}, "NotFound"),
]


def refused(client: KubernetesClient, namespace: str, method: str, path: str, body: Any) -> str:
    outcome = client.send(method, path.replace("{ns}", namespace), body)
    assert not outcome.done
    assert outcome.message
    return outcome.reason


@pytest.mark.parametrize(("method", "path", "body", "reason"), _ANYWHERE)
def test_it_says_what_is_wrong(
    client: KubernetesClient, namespace: str, method: str, path: str, body: Any, reason: str
) -> None:
    assert refused(client, namespace, method, path, body) == reason


@pytest.mark.parametrize(("method", "path", "body", "reason"), _SIMULATED)
def test_the_simulated_cluster_says_what_it_cannot_do(
    simulated: KubernetesClient, method: str, path: str, body: Any, reason: str
) -> None:
    simulated.send("POST", "/api/v1/namespaces", {"metadata": {"name": "bad"}})
    assert refused(simulated, "bad", method, path, body) == reason


@pytest.mark.parametrize(
    "query",
    [
        {"labelSelector": "a in b"},
        {"limit": "many"},
        {"continue": "nonsense"},
    ],
)
def test_odd_queries_are_refused(client: KubernetesClient, query: dict[str, str]) -> None:
    with pytest.raises(ApiFailure) as caught:
        client.get(POD.path(), query)
    assert caught.value.code == 400


def test_patches_of_other_kinds_are_refused(simulated: KubernetesClient) -> None:
    client, namespace = simulated, "patches"
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    assert client.send("POST", POD.path(namespace), {"metadata": {"name": "a"}}).done
    for content_type in ("application/json-patch+json", "text/plain"):
        outcome = client.send("PATCH", POD.path(namespace, "a"), {}, content_type=content_type)
        assert (outcome.kind, outcome.reason) == (OutcomeKind.REFUSED, "UnsupportedMediaType")


def test_a_watch_from_no_version_at_all_is_refused(simulated: KubernetesClient) -> None:
    with pytest.raises(ApiFailure) as caught:
        simulated.get(POD.path(), {"watch": "1", "resourceVersion": "soon"})
    assert caught.value.code == 400


def test_a_pod_is_not_bound_by_a_patch(client: KubernetesClient, namespace: str) -> None:
    assert client.send("POST", POD.path(namespace), pod("a")).done
    patch = {"spec": {"nodeName": "n"}}
    outcome = client.send("PATCH", POD.path(namespace, "a"), patch, content_type=MERGE_PATCH)
    assert (outcome.kind, outcome.reason) == (OutcomeKind.REFUSED, "Invalid")


def test_a_status_of_the_wrong_form_is_refused_and_kept_out_of_the_data(own_server: SimulatedServer) -> None:
    client = own_server.client()
    writes = ClusterWrites(client)
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    assert client.send("POST", JOB.path("a"), job("train", pods=1)).done
    uid = client.get(POD_GROUP.path("a", "train"))["metadata"]["uid"]
    condition: Any = {"type": "Unschedulable", "message": None, "reason": 5}
    outcome = writes.patch_podgroup_status("a", "train", uid=uid, phase="Inqueue", conditions=[condition])
    assert outcome.kind is OutcomeKind.REFUSED
    refused = writes.patch_podgroup_status("a", "train", uid=uid, phase="Nonsense")
    assert (refused.kind, refused.reason) == (OutcomeKind.REFUSED, "Invalid")
    assert client.get(POD_GROUP.path("a", "train"))["status"]["phase"] == "Pending"
    own_server.kill()
    own_server.start()
    assert client.get(POD_GROUP.path("a", "train"))["status"]["phase"] == "Pending"


def test_one_name_is_one_workload(simulated: KubernetesClient) -> None:
    client, namespace = simulated, "one-name"
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    assert client.send("POST", JOB.path(namespace), job("a", pods=1)).done
    outcome = client.send("POST", DEPLOYMENT.path(namespace), deployment("a", replicas=1))
    assert outcome.kind is OutcomeKind.REFUSED
    assert "exists" in outcome.message
    group = client.get(POD_GROUP.path(namespace, "a"))["metadata"]
    kept = client.send("DELETE", POD_GROUP.path(namespace, "a"), {"preconditions": {"uid": group["uid"]}})
    assert kept.kind is OutcomeKind.CONFLICT
    assert "delete the workload" in kept.message


def test_a_node_is_taken_in_once(client: KubernetesClient, namespace: str) -> None:
    assert client.send("POST", NODE.path(), node(f"n-{namespace}")).done
    assert client.send("POST", NODE.path(), node(f"n-{namespace}")).reason == "AlreadyExists"
    assert client.send("GET", QUEUE.path(name="nobody")).kind is OutcomeKind.GONE
