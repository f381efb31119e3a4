"""What the record of a reclaim says beyond who fell: quota and use of the queues, and why no cheaper one was taken."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core import Result, Snapshot
from scheduler_core.actions import reclaim as reclaim_action
from scheduler_core.actions.support.receipts import Looked, Words, candidates
from scheduler_core.model.podgroup import EvictedPolicy
from tests.core.small_cluster import (
    H,
    decide,
    gang,
    inference,
    node,
    service,
    snapshot,
    training,
)

# Rules by which a gang stays whatever it costs; what is left over is a matter of cost and room.
ROOM, DEARER, LATER = (
    "its leaving would not make enough room: on n3 it frees 2 of NVIDIA-H200, 0 more free, a pod needs 4, 2 short",
    "dearer than a gang of the chosen set whose place it could take",
    "costs as much as a gang of the chosen set whose place it could take, and comes later by name",
)


def _used(given: Snapshot) -> dict[str, int]:
    """Milli-cards by queue, counted over the pods of the snapshot alone."""
    queues = {group.key: group.queue for group in given.pod_groups}
    used: dict[str, int] = {}
    for pod in given.pods:
        if pod.node and pod.deleted is None and pod.card is not None:
            queue = queues[pod.group_key]
            used[queue] = used.get(queue, 0) + pod.card.milli
    return used


def _recomputed(given: Snapshot, result: Result) -> None:
    """Quota, use before and use after of every queue of the only reclaim, from the snapshot and the placements."""
    (reclaim,) = result.reclaims
    before = _used(given)
    queues = {group.key: group.queue for group in given.pod_groups}
    pods = {pod.key: pod for pod in given.pods}
    after = dict(before)
    for eviction in result.evictions:
        after[queues[eviction.gang]] -= pods[eviction.pod].card.milli
    for bind in (*result.binds, *result.pipelined):
        queue = queues[pods[bind.pod].group_key]
        after[queue] = after.get(queue, 0) + pods[bind.pod].card.milli
    quota = {queue.name: queue.card_quota for queue in given.queues}
    assert {moment.queue for moment in reclaim.queues} == {reclaim.queue, *(one.queue for one in reclaim.victims)}
    for moment in reclaim.queues:
        assert moment.quota.cards == {H: quota[moment.queue][H]}
        assert moment.before.cards == {H: before.get(moment.queue, 0)}
        assert moment.after.cards == {H: after.get(moment.queue, 0)}
        assert moment.before.cpu_milli == moment.after.cpu_milli == 0, "who holds cards counts no cpu in this policy"


def _not_dominated(result: Result) -> None:
    """A candidate that costs less than a gang that fell, and frees as much, stays by a rule of its own."""
    for reclaim in result.reclaims:
        for one in reclaim.candidates:
            cost = (one.queue_priority, one.priority, one.work_lost_card_seconds)
            for fell in reclaim.victims:
                paid = (fell.queue_priority, fell.priority, fell.work_lost_card_seconds)
                if cost < paid and one.frees_milli >= sum(fell.cards.values()):
                    assert one.rule not in (DEARER, LATER), one


def _scene() -> Snapshot:
    return snapshot(
        [node(f"n{number}", 4) for number in range(1, 7)],
        [inference(), training(), training("other")],
        gang("job", 1, 4, "training", on=["n1"], started=500),
        gang("cheaper", 1, 4, "other", on=["n2"], started=900, preemptable=False),
        gang("small", 1, 2, "training", on=["n3"], started=990),
        gang("stays", 1, 2, "training", on=["n3"], started=100, preemptable=False),
        gang("dearer", 1, 4, "training", on=["n4"], started=100),
        gang("dearest", 1, 4, "training", on=["n5"], started=0, group={"priority": 60000}),
        gang("web", 1, 4, "inference", on=["n6"]),
        service("svc", 1, 4),
    )


def test_an_amount_has_cpu_and_memory_also_where_they_are_zero():
    (reclaim,) = decide(_scene()).reclaims
    uses = [amount for moment in reclaim.queues for amount in (moment.before, moment.after)]
    for amount in (reclaim.needed, reclaim.freed, *uses):
        said = amount.to_json()
        assert sorted(said) == ["cards", "cpu_milli", "memory_bytes"]
        assert said["cards"]
    assert {(amount.cpu_milli, amount.memory_mib) for amount in uses} == {(0, 0)}


def test_quota_and_use_of_both_queues_at_that_moment_follow_from_the_snapshot():
    given = _scene()
    _recomputed(given, decide(given))


def test_candidates_say_what_they_would_have_cost_and_which_rule_decided():
    (reclaim,) = decide(_scene()).reclaims
    (fell,) = reclaim.victims
    assert (fell.gang, fell.work_lost_card_seconds) == ("ns/job", 2000.0)
    said = {one.gang: (one.work_lost_card_seconds, one.frees_milli, one.rule) for one in reclaim.candidates}
    kept = 'pod says volcano.sh/preemptable: "false"'
    assert said == {
        "ns/small": (20.0, 2000, ROOM),
        "ns/cheaper": (400.0, 4000, kept),
        "ns/stays": (1800.0, 2000, kept),
        "ns/dearer": (3600.0, 4000, DEARER),
        "ns/dearest": (4000.0, 4000, DEARER),
    }
    assert reclaim.more_candidates == 0
    costs = [(one.queue_priority, one.priority, one.work_lost_card_seconds) for one in reclaim.candidates]
    assert costs == sorted(costs), "the cheapest first"


def test_the_list_is_bounded_and_the_rest_is_counted():
    given = snapshot(
        [node(f"n{number:02}", 4) for number in range(30)],
        [inference(), training()],
        *[gang(f"kept-{n:02}", 1, 4, "training", on=[f"n{n:02}"], started=900, preemptable=False) for n in range(15)],
        *[gang(f"job-{n:02}", 1, 4, "training", on=[f"n{n:02}"], started=n) for n in range(15, 30)],
        service("svc", 1, 4),
    )
    (reclaim,) = decide(given).reclaims
    assert [one.gang for one in reclaim.victims] == ["ns/job-29"]
    assert [one.gang for one in reclaim.candidates][-2:] == ["ns/job-28", "ns/job-27"], "the next that would fall"
    assert (len(reclaim.candidates), reclaim.more_candidates) == (10, 29 - 10)


def test_several_reclaims_of_one_session_each_have_their_own_moment():
    given = snapshot(
        [node(f"n{number}", 4) for number in range(4)],
        [inference(), training()],
        *[gang(f"job-{n}", 1, 4, "training", on=[f"n{n}"], started=n) for n in range(3)],
        *[service(f"svc-{n}", 1, 4) for n in range(4)],
    )
    result = decide(given)
    assert (len(result.binds), len(result.reclaims)) == (1, 3)
    by_queue = sorted(
        (moment.queue, moment.before.cards[H] // 1000, moment.after.cards[H] // 1000)
        for reclaim in result.reclaims
        for moment in reclaim.queues
    )
    assert [one[1:] for one in by_queue if one[0] == "training"] == [(4, 0), (8, 4), (12, 8)]
    gained = [one[1:] for one in by_queue if one[0] == "inference"]
    assert all(after == before + 4 for before, after in gained)
    assert gained[-1][1] == 16, "the place on free room counts too"
    left = sorted(one.more_candidates + len(one.candidates) for one in result.reclaims)
    assert left == [0, 1, 2]


def test_the_chosen_set_is_not_dominated_by_a_candidate_that_is_shown():
    _not_dominated(decide(_scene()))


@pytest.mark.parametrize("services", [1, 3])
def test_turns_by_hand_and_in_compiled_code_write_the_same_receipts(monkeypatch, services):
    first = _scene()
    more = [service(f"svc-{number}", 1, 4) for number in range(services - 1)]
    given = msgspec.structs.replace(
        first,
        pods=(*first.pods, *(pod for _, pods in more for pod in pods)),
        pod_groups=(*first.pod_groups, *(group for group, _ in more)),
    )
    plain = _said(decide(given))
    assert len(plain) == services
    monkeypatch.setattr(reclaim_action, "plain_claims", lambda session: None)
    assert _said(decide(given)) == plain


def test_what_a_gang_can_spare_leaves_the_rest_of_it_among_the_candidates():
    given = snapshot(
        [node("n1", 4)],
        [inference(), training()],
        gang("wide", 4, 1, "training", on=["n1"] * 4, group={"min_member": 1, "evicted_policy": EvictedPolicy.NONE}),
        service("svc", 1, 2),
    )
    result = decide(given)
    _recomputed(given, result)
    (reclaim,) = result.reclaims
    assert len(reclaim.victims[0].pods) == 2
    assert "ns/wide" not in [one.gang for one in reclaim.candidates]


def _said(result: Result) -> list[object]:
    return [msgspec.to_builtins((one.queues, one.candidates, one.more_candidates)) for one in result.reclaims]


def test_where_no_gang_loses_anything_there_is_no_candidate_either():
    words = Words(gangs=(), groups=(), cards=(), classes=(), queues=(), queue_at={})
    assert candidates(Looked(options=[], total=3), [], words) == ((), 0)
