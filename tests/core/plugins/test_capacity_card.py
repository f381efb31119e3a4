"""capacity-card: the preference among ``A|B``, order of queues, shares and defaults of its arguments."""

from __future__ import annotations

import pytest

from scheduler_core.model.pod import ServiceType
from scheduler_core.plugins.capacity_card import CapacityCard
from tests.core.plugins.opening import opened
from tests.core.small_cluster import A, H, binds, decide, gang, inference, node, policy, service, snapshot, training

V = "NVIDIA-V100"


def test_the_leftmost_card_that_a_node_has_scores():
    given = snapshot(
        [node("n1", 4, V), node("n2", 4, A), node("n3", 4, H), node("n4", 0)],
        [training()],
        gang("x", 1, 1, "training", card=f"{A}|{H}|{V}"),
    )
    plugin = opened(CapacityCard, given, nodeOrderWeight=2.0)
    cls = plugin.session.cluster.classes[0]
    assert plugin.node_order(cls, slice(None)).tolist() == [50.0, 200.0, 100.0, 0.0]


def test_the_first_named_card_is_taken_where_both_have_room():
    given = snapshot(
        [node("n1", 4, A), node("n2", 4, H)],
        [training(quota={A: 4, H: 4})],
        gang("x", 1, 1, "training", card=f"{H}|{A}"),
    )
    assert binds(decide(given)) == {"x-0": "n2"}


def test_the_queue_with_the_smaller_share_goes_first():
    given = snapshot(
        [node("n1", 8)],
        [training("a", quota={H: 4}), training("b", quota={H: 8})],
        gang("runs-a", 1, 2, "a", on=["n1"]),
        gang("runs-b", 1, 3, "b", on=["n1"]),
        gang("next-a", 1, 2, "a"),
        gang("next-b", 1, 2, "b"),
    )
    plugin = opened(CapacityCard, given)
    assert (plugin.share(0), plugin.share(1)) == (0.5, 0.375)
    assert list(binds(decide(given))) == ["next-b-0"]


def test_the_higher_queue_goes_first_whatever_its_share():
    given = snapshot(
        [node("n1", 4)],
        [inference(quota={H: 4}), training()],
        gang("a-job", 1, 4, "training"),
        service("svc", 1, 4),
    )
    assert list(binds(decide(given))) == ["svc-0"]


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ({"service_type": "inference"}, ServiceType.INFERENCE),
        ({"service_type": "nonsense"}, ServiceType.UNKNOWN),
        ({"owner_kind": "Job"}, ServiceType.TRAINING),
        ({"owner_kind": "ReplicaSet"}, ServiceType.INFERENCE),
        ({"owner_kind": "DaemonSet"}, ServiceType.UNKNOWN),
    ],
)
def test_service_types(group, expected):
    given = snapshot(
        [node("n1")], [training()], gang("x", 1, 1, "training", group={"owner_kind": "", **group}, owner=None)
    )
    owners = {"Job": "training", "ReplicaSet": "inference"}
    assert opened(CapacityCard, given, podOwnerReferenceToServiceType=owners).service_type(0) is expected


def test_the_pods_owner_speaks_where_the_group_names_none():
    given = snapshot([node("n1")], [training()], gang("x", 1, 1, "training", group={"owner_kind": ""}))
    plugin = opened(CapacityCard, given, podOwnerReferenceToServiceType={"Job": "training"})
    assert plugin.service_type(0) is ServiceType.TRAINING


def test_defaults():
    plugin = CapacityCard({})
    assert plugin.values == {
        "overCommitFactor": 1.0,
        "cardUnlimitedCpuMemory": False,
        "nodeOrderWeight": 1.0,
        "podOwnerReferenceToServiceType": {},
        "unknownReclaimer": "deny",
        "tidePreempt": False,
    }
    assert plugin.preemptable(0, [1]).allowed is None


def test_the_flag_for_cpu_and_memory_holds_wherever_amounts_are_counted():
    """Defect a: what was left out when adding is left out when taking away."""
    given = snapshot([node("n1")], [training()], gang("runs", 2, 1, "training", on=["n1", "n1"], cpu=3000))
    (free,) = decide(given).queues
    assert (free.allocated.cpu_milli, free.allocated.cards) == (0, {H: 2000})
    (counted,) = decide(given, policy(cardUnlimitedCpuMemory=False)).queues
    assert counted.allocated.cpu_milli == 6000
