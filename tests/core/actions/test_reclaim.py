"""Whole gangs fall, the cheapest set is taken, and no gang is evicted in vain."""

from __future__ import annotations

import msgspec

from scheduler_core.model.node import Taint
from scheduler_core.model.pod import Toleration
from scheduler_core.model.podgroup import EvictedPolicy
from tests.core.small_cluster import (
    H,
    World,
    binds,
    code,
    decide,
    evicted,
    gang,
    inference,
    node,
    policy,
    queue,
    service,
    snapshot,
    training,
)

QUEUES = [inference(), training()]


def test_all_cards_of_a_fallen_gang_count_as_freed():
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4)],
            QUEUES,
            gang("job", 2, 4, "training", on=["n1", "n2"]),
            service("svc", 2, 4),
        )
    )
    (reclaim,) = result.reclaims
    assert [victim.gang for victim in reclaim.victims] == ["ns/job"]
    assert reclaim.needed.cards == {H: 8000}
    assert reclaim.freed.cards == {H: 8000}
    assert sorted(pipe.pod for pipe in result.pipelined) == ["ns/svc-0", "ns/svc-1"]


def test_siblings_leave_with_the_victim_and_are_told_apart():
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4)], QUEUES, gang("job", 2, 4, "training", on=["n1", "n2"]), service("svc", 1, 4)
        )
    )
    assert sorted(e.role.value for e in result.evictions) == ["sibling", "victim"]
    victim = next(e for e in result.evictions if e.role.value == "victim")
    assert victim.node == result.pipelined[0].node


def test_the_lowest_priority_falls_even_if_more_work_is_lost():
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4)],
            QUEUES,
            gang("dear", 1, 4, "training", on=["n1"], started=990, group={"priority": 60000}),
            gang("cheap", 1, 4, "training", on=["n2"], started=0, group={"priority": 20000}),
            service("svc", 1, 4),
        )
    )
    assert evicted(result) == ["cheap"]


def test_queue_priority_goes_before_gang_priority():
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4)],
            [inference(), training("low", priority=10000), training("high", priority=20000)],
            gang("in-low", 1, 4, "low", on=["n1"], group={"priority": 60000}),
            gang("in-high", 1, 4, "high", on=["n2"], group={"priority": 20000}),
            service("svc", 1, 4),
        )
    )
    assert evicted(result) == ["in-low"]


def test_among_equals_the_least_work_is_lost():
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4)],
            QUEUES,
            gang("old", 1, 4, "training", on=["n1"], started=0),
            gang("new", 1, 4, "training", on=["n2"], started=900),
            service("svc", 1, 4),
        )
    )
    assert evicted(result) == ["new"]
    assert result.reclaims[0].victims[0].work_lost_card_seconds == 400.0


def test_one_gang_that_frees_enough_is_better_than_two():
    result = decide(
        snapshot(
            [node("n1", 8), node("n2", 8)],
            QUEUES,
            gang("half-1", 1, 4, "training", on=["n1"], started=500),
            gang("half-2", 1, 4, "training", on=["n1"], started=500),
            gang("whole", 1, 8, "training", on=["n2"], started=500),
            service("svc", 1, 8),
        )
    )
    assert evicted(result) == ["whole"]


def test_free_room_is_used_before_anybody_leaves():
    result = decide(
        snapshot([node("n1", 4), node("n2", 4)], QUEUES, gang("job", 1, 4, "training", on=["n1"]), service("svc", 1, 4))
    )
    assert not result.evictions
    assert binds(result) == {"svc-0": "n2"}


def test_nobody_falls_when_the_gang_would_still_not_fit():
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4)],
            [inference(quota={H: 32}), training()],
            gang("job", 1, 4, "training", on=["n1"]),
            gang("other", 1, 4, "training", on=["n2"]),
            gang("svc", 3, 4, "inference", kind="ReplicaSet"),
        )
    )
    assert not result.evictions
    assert code(result, "svc")


def test_nobody_falls_beyond_the_reclaimers_own_quota():
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4)],
            [inference(quota={H: 4}), training()],
            gang("job", 1, 4, "training", on=["n1"]),
            gang("other", 1, 4, "training", on=["n2"]),
            service("svc", 2, 4),
        )
    )
    assert len(evicted(result)) == 1
    assert len(result.pipelined) == 1


def test_a_service_takes_back_for_all_its_replicas():
    result = decide(
        snapshot(
            [node("n1", 8)],
            QUEUES,
            *(gang(f"job-{i}", 1, 2, "training", on=["n1"]) for i in range(4)),
            service("svc", 3, 2),
        )
    )
    assert len(evicted(result)) == 3


def test_the_surplus_goes_alone_where_no_policy_fells_the_gang():
    surplus = gang("elastic", 3, 2, "training", on=["n1", "n1", "n1"], least=1, policy=EvictedPolicy.NONE, started=500)
    result = decide(snapshot([node("n1", 6)], QUEUES, surplus, service("svc", 1, 2)))
    assert len(result.evictions) == 1


def test_with_a_policy_the_surplus_falls_with_the_gang():
    surplus = gang("elastic", 3, 2, "training", on=["n1", "n1", "n1"], least=1, started=500)
    result = decide(snapshot([node("n1", 6)], QUEUES, surplus, service("svc", 1, 2)))
    assert len(result.evictions) == 3


def test_the_gang_plugin_cannot_save_a_gang_from_the_tide():
    given = snapshot([node("n1", 4)], QUEUES, gang("job", 2, 2, "training", on=["n1", "n1"]), service("svc", 1, 2))
    assert evicted(decide(given, policy(gang={"reclaimable": True}))) == ["job"]


def test_what_was_freed_stays_promised_until_the_pods_run():
    world = World(
        snapshot(
            [node("n1", 4)],
            QUEUES,
            gang("job", 1, 4, "training", on=["n1"]),
            gang("thief", 1, 4, "training", group={"priority": 90000}),
            service("svc", 1, 4),
        )
    )
    first = world.step()
    assert evicted(first) == ["job"]
    assert code(first, "svc") == "WaitingForReclaim"
    second = world.step()
    assert not second.evictions
    assert code(second, "svc") == "WaitingForReclaim"
    third = world.step()
    assert binds(third) == {"svc-0": "n1"}


def test_a_promise_expires():
    world = World(
        snapshot([node("n1", 4)], QUEUES, gang("job", 1, 4, "training", on=["n1"]), service("svc", 1, 4)),
        policy(reclaim={"reservationSeconds": 5.0}),
    )
    world.step()
    assert world.memory is not None
    assert world.memory.reservations[0].expires == 1005.0
    world.step()
    assert not world.memory.reservations


def test_a_promise_holds_in_the_session_that_finds_it_expired():
    thief = gang("thief", 1, 4, "training", group={"priority": 90000})
    world = World(
        snapshot([node("n1", 4)], QUEUES, gang("job", 1, 4, "training", on=["n1"]), thief, service("svc", 1, 4)),
        policy(reclaim={"reservationSeconds": 5.0}),
    )
    world.step(seconds=1000.0)
    stayed = tuple(pod for pod in world.snapshot.pods if pod.deleted is None)
    world.snapshot = msgspec.structs.replace(world.snapshot, pods=stayed)
    assert binds(world.step()) == {"svc-0": "n1"}


def test_five_more_rounds_change_nothing():
    world = World(
        snapshot(
            [node("n1", 8), node("n2", 8)],
            QUEUES,
            *(gang(f"job-{i}", 2, 2, "training", on=["n1", "n2"], started=float(i)) for i in range(4)),
            service("svc", 4, 2),
        )
    )
    for _ in range(4):
        world.step()
    for _ in range(5):
        result = world.step()
        assert not result.evictions
        assert not result.binds
        assert not result.pipelined


def test_single_cards_decide_not_the_sum():
    half = gang("half", 2, 0.6, "training", on=["n1", "n1"], policy=EvictedPolicy.RESTART_JOB)
    group, pods = half
    result = decide(snapshot([node("n1", 2)], QUEUES, (group, pods), service("svc", 1, 0.8)))
    assert evicted(result) == ["half"]
    assert not result.binds


def test_a_choice_of_cards_takes_only_from_types_with_quota():
    from scheduler_core.model.cards import NodeCards
    from tests.core.small_cluster import A

    nodes = [node("n1", 4), node("n2", 4, A)]
    assert isinstance(nodes[0].cards[0], NodeCards)
    queues = [inference(quota={H: 0, A: 4}), queue("training", {H: 4, A: 4}, priority=20000)]
    result = decide(
        snapshot(
            nodes,
            queues,
            gang("on-h", 1, 4, "training", on=["n1"], started=999),
            gang("on-a", 1, 4, "training", on=["n2"], started=0, card=A),
            service("svc", 1, 4, card=f"{H}|{A}"),
        )
    )
    assert evicted(result) == ["on-a"]
    assert result.pipelined[0].card == A


def test_the_record_says_who_voted_and_who_was_refused():
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4)],
            [inference(), training(), training("other")],
            gang("job", 1, 4, "training", on=["n1"]),
            gang("kept", 1, 4, "other", on=["n2"], preemptable=False),
            service("svc", 1, 4),
        )
    )
    (reclaim,) = result.reclaims
    assert [(vote.tier, vote.plugin, vote.vote) for vote in reclaim.votes] == [(2, "capacity-card", "permit")]
    assert [refusal.gang for refusal in reclaim.refused] == ["ns/kept"]


def test_a_cheaper_gang_that_was_not_taken_is_named_with_the_reason():
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4)],
            QUEUES,
            gang("small", 1, 2, "training", on=["n1"], started=999),
            gang("stays", 1, 2, "training", on=["n1"], preemptable=False),
            gang("large", 1, 4, "training", on=["n2"], started=0),
            service("svc", 1, 4),
        )
    )
    assert evicted(result) == ["large"]
    assert {no.gang: no.rule for no in result.reclaims[0].refused} == {
        "ns/small": (
            "its leaving would not make enough room: "
            "on n1 it frees 2 of NVIDIA-H200, 0 more free, a pod needs 4, 2 short"
        ),
        "ns/stays": 'pod says volcano.sh/preemptable: "false"',
    }


def test_a_head_that_overcommit_would_refuse_is_admitted_when_it_may_take_back():
    """Pitfall 1: what a gang may take back does not count as used at admission."""
    given = snapshot([node("n1", 4)], QUEUES, gang("job", 1, 4, "training", on=["n1"]), service("svc", 1, 4))
    result = decide(given, policy(overCommitFactor=1.0))
    assert evicted(result) == ["job"]
    waits = decide(
        snapshot([node("n1", 4)], QUEUES, gang("job", 1, 4, "training", on=["n1"]), gang("more", 1, 4, "training")),
        policy(overCommitFactor=1.0),
    )
    assert not waits.evictions
    assert code(waits, "more") == "OverCommitted"


def test_no_more_falls_than_the_siblings_of_the_victim_leave_room_for():
    """Pitfall 3: one gang over both nodes frees all that is needed, so the second gang stays."""
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4)],
            QUEUES,
            gang("wide", 2, 2, "training", on=["n1", "n2"], started=500),
            gang("beside", 2, 2, "training", on=["n1", "n2"], started=400),
            service("svc", 2, 2),
        )
    )
    assert evicted(result) == ["wide"]
    assert len(result.evictions) == 2


def test_the_lowest_priority_falls_wherever_it_runs():
    """Pitfall 5: not the first node that works out, but the cheapest set of all nodes."""
    result = decide(
        snapshot(
            [node(f"n{i}", 4) for i in range(1, 5)],
            [inference(), training("low", priority=10000), training("high", priority=30000)],
            *(gang(f"dear-{i}", 1, 4, "high", on=[f"n{i}"], started=999) for i in range(1, 4)),
            gang("cheap", 1, 4, "low", on=["n4"], started=0, group={"priority": 90000}),
            service("svc", 1, 4),
        )
    )
    assert evicted(result) == ["cheap"]


def test_nobody_falls_where_a_taint_keeps_the_reclaimer_out():
    """Pitfall 7: predicates and quota hold after the eviction as they do for plain placement."""
    tainted = node("n1", 4, taints=(Taint("dedicated", "training"),))
    job = gang("job", 1, 4, "training", on=["n1"], tolerations=(Toleration(key="dedicated", operator="Exists"),))
    result = decide(snapshot([tainted], QUEUES, job, service("svc", 1, 4)))
    assert not result.evictions


def test_what_a_gang_can_spare_is_counted_over_all_kinds_of_tasks():
    """The first kind takes the one member that the gang can do without, the second all the others: none may stay."""
    victim = gang("job", 4, 1, "training", on=["n1", "n2", "n2", "n2"], least=3, policy=EvictedPolicy.NONE)
    group, (one, two) = service("svc", 2, 1)
    card = msgspec.structs.replace(two.card, milli=2000)
    asks = (group, [one, msgspec.structs.replace(two, card=card)])
    assert len(decide(snapshot([node("n1", 1), node("n2", 3)], QUEUES, victim, asks)).evictions) == 4
