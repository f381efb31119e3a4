"""One row for each condition from its rise to its end, and the conditions themselves."""

from __future__ import annotations

import pytest

from tests.web.changes import ground as ground_module
from tests.web.changes.ground import A100, H200
from tidesched_web.audit.models import ChainCheck
from tidesched_web.clusters.kubernetes.cache import Trouble
from tidesched_web.clusters.models import CardType
from tidesched_web.quota.selectors import cards_of_no_node
from tidesched_web.scheduling import services as scheduling
from tidesched_web.scheduling.models import Alert, ClusterReach
from tidesched_web.scheduling.pipeline import alerts, audit_alerts
from tidesched_web.scheduling.pipeline.reach import ReachWatch, reach_of

WARNING = "warning"


def rise(cluster_id, objects, key="drift"):
    return alerts.raise_alert(
        cluster_id=cluster_id, key=key, severity=WARNING, code="drift", message=str(objects), numbers={"n": objects}
    )


@pytest.mark.django_db
def test_a_condition_is_one_row_until_it_ends() -> None:
    cluster = ground_module.build().cluster
    for cluster_id in (cluster.pk, None):
        assert rise(cluster_id, 1)
        first = Alert.objects.get(cluster_id=cluster_id)
        assert scheduling.acknowledge_alert(alert=first, actor="root", note="mine")
        assert not scheduling.acknowledge_alert(alert=first, actor="second")
        assert not rise(cluster_id, 2)
        first.refresh_from_db()
        assert (first.numbers, first.state, first.acknowledged_by) == ({"n": 2}, "acknowledged", "root")
        assert alerts.resolve(cluster_id=cluster_id, key="drift")
        assert not alerts.resolve(cluster_id=cluster_id, key="drift")
        assert not scheduling.acknowledge_alert(alert=first, actor="root")
        assert rise(cluster_id, 1)
        assert Alert.objects.filter(cluster_id=cluster_id).count() == 2


@pytest.mark.django_db
def test_cards_that_are_cut_back_are_right_again() -> None:
    cluster = ground_module.build().cluster
    whole, cut, more = {H200: 8}, {H200: 6, "mig": 14}, {H200: 4, "mig": 28}
    for before, after in ((whole, cut), (cut, more)):
        alerts.raise_recut(cluster_id=cluster.pk, node="n0", before=before, after=after)
    row = Alert.objects.get()
    assert (row.numbers["before"], row.numbers["after"], row.state) == (whole, more, "open")
    alerts.raise_recut(cluster_id=cluster.pk, node="n0", before=more, after=whole)
    row.refresh_from_db()
    assert row.state == "resolved"


@pytest.mark.django_db
def test_cards_that_no_node_has() -> None:
    cluster = ground_module.build().cluster
    assert cards_of_no_node(cluster.pk) == ({}, {})
    CardType.objects.filter(name=H200).update(hardware=0)
    CardType.objects.filter(name=A100).update(hardware=0, last_seen_at=None)
    assert cards_of_no_node(cluster.pk, ["NVIDIA-B200"]) == ({H200: 28}, {"NVIDIA-B200": 0})


@pytest.mark.django_db
def test_a_broken_chain_is_an_alert_of_its_cluster_or_of_the_platform() -> None:
    cluster = ground_module.build().cluster
    chains = ("platform", f"cluster:{cluster.pk}", "cluster:999999")
    for chain in chains:
        ChainCheck.objects.create(chain=chain, problem="entry 3 was changed", broken_seq=3)
    assert audit_alerts.look() == audit_alerts.look() == 3
    open_ones = Alert.objects.filter(resolved_at__isnull=True)
    assert sorted(open_ones.values_list("key", "cluster_id"), key=str) == sorted(
        [
            ("audit_chain:platform", None),
            (f"audit_chain:cluster:{cluster.pk}", cluster.pk),
            ("audit_chain:cluster:999999", None),
        ],
        key=str,
    )
    ChainCheck.objects.update(problem="", broken_seq=None)
    assert audit_alerts.look() == 0
    assert not open_ones.exists()


def trouble(kind="Pod", code=0, seconds=10.0, error="no", *, absent=False):
    return Trouble(kind, error, code, seconds, absent=absent)


@pytest.mark.parametrize(
    ("troubles", "state", "kinds"),
    [
        ([], "connected", []),
        ([trouble(seconds=1)], "connected", []),
        ([trouble(), trouble("Node", 500)], "unreachable", ["Pod"]),
        ([trouble("Node", 401), trouble("Pod", 403)], "refused", ["Node"]),
        ([trouble("Job", 403), trouble("Pod", 500)], "forbidden", ["Job"]),
        ([trouble("Pod", 429), trouble("Node", 503)], "failing", ["Pod", "Node"]),
        ([trouble("Queue", error="", absent=True), trouble("Job", error="", absent=True)], "kinds_missing", ["Queue"]),
        ([trouble("Job", error="", absent=True)], "connected", []),
        ([trouble(seconds=float("inf"))], "unreachable", ["Pod"]),
    ],
)
def test_how_a_cluster_is_reached(troubles, state, kinds) -> None:
    reach = reach_of(troubles)
    assert (reach.state, reach.kinds) == (state, kinds)


@pytest.mark.django_db
def test_the_state_of_a_cluster_is_written_when_it_changes() -> None:
    cluster = ground_module.build().cluster
    watch = ReachWatch(cluster.pk)
    watch.look([])
    watch.look([trouble(seconds=30)])
    row = ClusterReach.objects.get()
    assert (row.state, row.detail) == ("unreachable", "no")
    assert Alert.objects.get().code == "cluster_unreachable"
    ReachWatch(cluster.pk).look([trouble(seconds=1e6)])  # another worker takes over: it began when it began
    assert ClusterReach.objects.get().since == row.since
    watch.look([trouble(code=401)])
    assert [(row.code, row.state) for row in Alert.objects.order_by("id")] == [
        ("cluster_unreachable", "resolved"),
        ("cluster_refused", "open"),
    ]
    watch.look([])
    assert ClusterReach.objects.get().state == "connected"
    assert not Alert.objects.filter(resolved_at__isnull=True).exists()
