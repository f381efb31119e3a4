"""Who may take back from whom: the nine cells of the tide table, end to end."""

from __future__ import annotations

import pytest

from tests.core.small_cluster import H, code, decide, evicted, gang, node, policy, queue, snapshot

NODES = [node("n1", 4)]
KINDS = ("inference", "training", "unknown")


def _queues(victim_reclaimable: bool = True):
    return [
        queue("needy", {H: 4}, priority=80000, reclaimable=False),
        queue("rich", {H: 4}, priority=20000, reclaimable=victim_reclaimable),
    ]


def _kind(name: str) -> dict[str, object]:
    return {"kind": "Pod", "group": {"service_type": "" if name == "unknown" else name, "owner_kind": "Pod"}}


@pytest.mark.parametrize("victim", KINDS)
@pytest.mark.parametrize("reclaimer", KINDS)
def test_only_inference_takes_and_only_from_training(reclaimer, victim):
    result = decide(
        snapshot(
            NODES,
            _queues(),
            gang("holder", 1, 4, "rich", on=["n1"], **_kind(victim)),
            gang("claimer", 1, 4, "needy", **_kind(reclaimer)),
        )
    )
    assert bool(result.evictions) == (reclaimer == "inference" and victim == "training")


def test_an_unknown_reclaimer_takes_where_the_argument_allows_it():
    given = snapshot(
        NODES,
        _queues(),
        gang("holder", 1, 4, "rich", on=["n1"], **_kind("training")),
        gang("claimer", 1, 4, "needy", **_kind("unknown")),
    )
    assert evicted(decide(given, policy(unknownReclaimer="allow"))) == ["holder"]
    assert code(decide(given), "claimer") in ("OverCommitted", "WaitingForCards")


def test_a_training_queue_cannot_call_itself_inference():
    needy = queue("needy", {H: 4}, priority=80000, reclaimable=False, service_type="training")
    result = decide(
        snapshot(
            NODES,
            [needy, _queues()[1]],
            gang("holder", 1, 4, "rich", on=["n1"], **_kind("training")),
            gang("claimer", 1, 4, "needy", **_kind("inference")),
        )
    )
    assert not result.evictions
    assert {outcome.name: outcome.service_type for outcome in result.podgroups}["ns/claimer"] == "training"


def test_an_annotation_can_lower_what_an_inference_queue_says():
    needy = queue("needy", {H: 4}, priority=80000, reclaimable=False, service_type="inference")
    rich = _queues()[1]
    holder = gang("holder", 1, 4, "rich", on=["n1"], **_kind("training"))
    lowered = decide(snapshot(NODES, [needy, rich], holder, gang("claimer", 1, 4, "needy", **_kind("training"))))
    unsaid = decide(snapshot(NODES, [needy, rich], holder, gang("claimer", 1, 4, "needy", **_kind("unknown"))))
    assert not lowered.evictions
    assert evicted(unsaid) == ["holder"]


@pytest.mark.parametrize(
    "protection",
    [
        {"preemptable": False},
        {"group": {"preemptable": False, "owner_kind": "Job"}},
        {"namespace": "kube-system"},
        {"priority_class": "system-node-critical"},
    ],
)
def test_the_protected_are_never_taken(protection):
    more = dict(protection)
    if "namespace" in more:
        more["group"] = {"namespace": "kube-system", "owner_kind": "Job"}
        group, pods = gang("holder", 1, 4, "rich", on=["n1"], group=more.pop("group"), namespace="kube-system")
        holder = (group, pods)
    else:
        holder = gang("holder", 1, 4, "rich", on=["n1"], **more)
    result = decide(snapshot(NODES, _queues(), holder, gang("claimer", 1, 4, "needy", **_kind("inference"))))
    assert not result.evictions


def test_a_queue_that_is_not_reclaimable_keeps_its_own():
    result = decide(
        snapshot(
            NODES,
            _queues(victim_reclaimable=False),
            gang("holder", 1, 4, "rich", on=["n1"]),
            gang("claimer", 1, 4, "needy", **_kind("inference")),
        )
    )
    assert not result.evictions
