"""What an API server may do to single requests, and what the adapter makes of it."""

from __future__ import annotations

import uuid

import pytest

from tests.cluster.objects import node, pod
from tests.kube.fault_proxy import Fault, FaultProxy
from tests.kube.real_server import RealServer
from tests.waiting import until
from tidesched_web.clusters.kubernetes.client import ApiFailure, KubernetesClient
from tidesched_web.clusters.kubernetes.outcomes import OutcomeKind
from tidesched_web.clusters.kubernetes.paths import DISRUPTION_BUDGET, NODE, POD
from tidesched_web.clusters.kubernetes.writes import ClusterWrites

pytestmark = pytest.mark.usefixtures("beside")


@pytest.fixture
def node_name(direct: KubernetesClient) -> str:
    name = f"n-{uuid.uuid4().hex[:8]}"
    assert direct.send("POST", NODE.path(), node(name)).done
    return name


def make_pod(client: KubernetesClient, namespace: str, name: str = "one", **labels: str) -> str:
    made = client.send("POST", POD.path(namespace), pod(name, labels=labels)).body
    assert made is not None
    return str(made["metadata"]["uid"])


def node_of(client: KubernetesClient, namespace: str, name: str = "one") -> str:
    return str(client.get(POD.path(namespace, name))["spec"].get("nodeName", ""))


def test_a_server_that_is_gone_has_done_nothing(
    proxy: FaultProxy, writes: ClusterWrites, direct: KubernetesClient, namespace: str, node_name: str
) -> None:
    uid = make_pod(direct, namespace)
    proxy.vanish()
    outcome = writes.bind_pod(namespace, "one", uid=uid, node=node_name)
    assert (outcome.kind, outcome.maybe_done) == (OutcomeKind.UNREACHABLE, False)
    proxy.start()
    assert writes.bind_pod(namespace, "one", uid=uid, node=node_name).done


@pytest.mark.parametrize("fault", [Fault(lose_answer=True, part="/binding"), Fault(delay=5.5, part="/binding")])
def test_a_binding_without_an_answer_is_found_done(
    proxy: FaultProxy, writes: ClusterWrites, direct: KubernetesClient, namespace: str, node_name: str, fault: Fault
) -> None:
    """Also where the server takes longer than the client waits."""
    uid = make_pod(direct, namespace)
    fault.times, fault.seen = 1, 0
    proxy.spoil(fault)
    outcome = writes.bind_pod(namespace, "one", uid=uid, node=node_name)
    assert (outcome.kind, outcome.maybe_done) == (OutcomeKind.UNREACHABLE, True)
    until(lambda: node_of(direct, namespace) == node_name)
    again = writes.bind_pod(namespace, "one", uid=uid, node=node_name)
    assert (again.kind, again.reason) == (OutcomeKind.DONE, "AlreadyBound")


@pytest.mark.parametrize(
    ("code", "reason", "kind", "maybe_done"),
    [
        (500, "InternalError", OutcomeKind.UNREACHABLE, True),
        (503, "ServiceUnavailable", OutcomeKind.UNREACHABLE, True),
        (504, "Timeout", OutcomeKind.UNREACHABLE, True),
        (403, "Forbidden", OutcomeKind.REFUSED, False),
        (410, "Gone", OutcomeKind.GONE, False),
        (404, "NotFound", OutcomeKind.GONE, False),
        (409, "Conflict", OutcomeKind.CONFLICT, False),
    ],
)
def test_an_error_says_whether_it_may_have_happened(
    proxy: FaultProxy,
    writes: ClusterWrites,
    direct: KubernetesClient,
    namespace: str,
    node_name: str,
    code: int,
    reason: str,
    kind: OutcomeKind,
    maybe_done: bool,
) -> None:
    uid = make_pod(direct, namespace)
    proxy.spoil(Fault(code=code, reason=reason, part="/binding"))
    outcome = writes.bind_pod(namespace, "one", uid=uid, node=node_name)
    assert (outcome.kind, outcome.reason, outcome.maybe_done) == (kind, reason, maybe_done)
    assert node_of(direct, namespace) == ""
    proxy.heal()
    assert writes.bind_pod(namespace, "one", uid=uid, node=node_name).done


def test_budgets_are_obeyed_and_tried_first(
    writes: ClusterWrites, direct: KubernetesClient, namespace: str, node_name: str
) -> None:
    """One budget lets one of two pods go, another one lets none go."""
    for name, least in (("loose", 1), ("strict", 2)):
        spec = {"minAvailable": least, "selector": {"matchLabels": {"app": name}}}
        body = {"metadata": {"name": name}, "spec": spec}
        assert direct.send("POST", DISRUPTION_BUDGET.path(namespace), body).done
    uids = {}
    for name in ("loose-0", "loose-1", "strict-0", "strict-1"):
        uids[name] = make_pod(direct, namespace, name, app=name.partition("-")[0])
        assert writes.bind_pod(namespace, name, uid=uids[name], node=node_name).done

    def allowed(name: str) -> int | None:
        found = direct.get(DISRUPTION_BUDGET.path(namespace, name)).get("status") or {}
        return found.get("disruptionsAllowed") if found.get("currentHealthy") == 2 else None

    until(lambda: (allowed("loose"), allowed("strict")) == (1, 0))
    rehearsed = {name: writes.evict_pod(namespace, name, uid=uid, dry_run=True).kind for name, uid in uids.items()}
    assert rehearsed == {
        "loose-0": OutcomeKind.DONE,
        "loose-1": OutcomeKind.DONE,
        "strict-0": OutcomeKind.REFUSED,
        "strict-1": OutcomeKind.REFUSED,
    }
    # the first one that goes uses the budget up, before any controller has looked
    assert writes.evict_pod(namespace, "loose-0", uid=uids["loose-0"]).done
    refused = writes.evict_pod(namespace, "loose-1", uid=uids["loose-1"])
    assert (refused.kind, refused.reason) == (OutcomeKind.REFUSED, "TooManyRequests")
    until(lambda: writes.get_pod(namespace, "loose-0").kind is OutcomeKind.GONE)
    assert writes.get_pod(namespace, "strict-0").done


def test_an_expired_token_is_refused_and_another_one_heals(server: RealServer) -> None:
    short = server.client_as(server.account_token("default", "short", seconds=2))
    long = server.client_as(server.account_token("default", "short", seconds=600))
    review = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert long.send("POST", path, review).done

    def expired() -> bool:
        outcome = short.send("POST", path, review)
        return outcome.reason == "Unauthorized" and not outcome.done

    # Kubernetes remembers a token that it has checked for ten seconds
    until(expired)
    assert long.send("POST", path, review).done
    for one in (short, long):
        one.close()


def test_an_account_without_rights_is_told_so(server: RealServer) -> None:
    nobody = server.client_as(server.account_token("default", "nobody", seconds=600))
    with pytest.raises(ApiFailure) as caught:
        nobody.get(POD.path())
    assert caught.value.code == 403
    assert "cannot list resource" in caught.value.body["message"]
    nobody.close()
