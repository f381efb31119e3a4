"""Enqueue and allocate: who is let in, who is bound, and what a quota counts."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core import PluginOption
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.queue import QueueState
from scheduler_core.model.resources import Amount
from tests.core.small_cluster import (
    A,
    H,
    World,
    binds,
    code,
    decide,
    gang,
    inference,
    node,
    policy,
    queue,
    service,
    snapshot,
    training,
)


def phase(result, name):
    return next(outcome.phase for outcome in result.podgroups if outcome.name == f"ns/{name}")


def test_a_gang_is_bound_whole_or_not_at_all():
    result = decide(
        snapshot([node("n1", 3)], [training()], gang("fits", 3, 1, "training"), gang("not", 2, 1, "training"))
    )
    assert sorted(binds(result)) == ["fits-0", "fits-1", "fits-2"]
    assert phase(result, "fits") is GangPhase.RUNNING
    assert phase(result, "not") is GangPhase.INQUEUE


def test_priority_goes_first_then_who_waits_longest():
    early = gang("b-early", 1, 4, "training", group={"created": 1.0})
    late = gang("a-late", 1, 4, "training", group={"created": 2.0})
    assert list(binds(decide(snapshot([node("n1", 4)], [training()], early, late)))) == ["b-early-0"]
    strong = gang("c-strong", 1, 4, "training", group={"created": 3.0, "priority": 5})
    assert list(binds(decide(snapshot([node("n1", 4)], [training()], early, late, strong)))) == ["c-strong-0"]


def test_the_place_is_kept_over_a_restart():
    early = gang("again", 1, 4, "training", group={"created": 9.0, "submitted": 0.5})
    late = gang("other", 1, 4, "training", group={"created": 1.0})
    assert list(binds(decide(snapshot([node("n1", 4)], [training()], early, late)))) == ["again-0"]


@pytest.mark.parametrize(("cards", "bound"), [(4, True), (6, False)])
def test_job_mode_of_a_choice(cards, bound):
    """Quota A5 H3, allocated A2 H1: four of A|H are admitted, six are not."""
    result = decide(
        snapshot(
            [node("a", 8, A), node("h", 8, H)],
            [training(quota={A: 5, H: 3})],
            gang("on-a", 1, 2, "training", on=["a"], card=A),
            gang("on-h", 1, 1, "training", on=["h"], card=H),
            gang("new", cards, 1, "training", card=f"{A}|{H}"),
        )
    )
    assert (phase(result, "new") is not GangPhase.PENDING) == bound
    assert len(result.binds) == (4 if bound else 0)


def test_every_placement_is_checked_against_the_card_of_its_node():
    result = decide(
        snapshot(
            [node("a", 8, A), node("h", 8, H)],
            [training(quota={A: 1, H: 8})],
            service("svc", 3, 1, "training", card=f"{A}|{H}"),
        )
    )
    assert sorted(binds(result).values()) == ["a", "h", "h"]


@pytest.mark.parametrize(("cards", "fits"), [(2, True), (3, False)])
def test_task_mode_of_a_choice(cards, fits):
    result = decide(
        snapshot(
            [node("a", 8, A), node("h", 8, H)],
            [training(quota={A: 5, H: 3})],
            gang("on-a", 1, 5, "training", on=["a"], card=A),
            gang("on-h", 1, 1, "training", on=["h"], card=H),
            gang("new", 1, cards, "training", card=f"{A}|{H}"),
        )
    )
    assert binds(result) == ({"new-0": "h"} if fits else {})


def test_an_absent_card_is_nothing_and_absent_cpu_is_no_limit():
    result = decide(
        snapshot(
            [node("n1", 4), node("n2", 4, A)],
            [training(quota={H: 4})],
            gang("other-card", 1, 1, "training", card=A),
            gang("cpu", 1, 0, "training", cpu=60_000),
        )
    )
    assert binds(result) == {"cpu-0": "n1"} or binds(result) == {"cpu-0": "n2"}
    assert code(result, "other-card") == "ExceedsMaxQuota"


def test_cpu_of_card_tasks_counts_only_where_it_is_limited():
    tight = training(cpu_milli=1500)
    given = snapshot([node("n1", 4)], [tight], gang("job", 2, 1, "training", cpu=1000))
    assert len(decide(given).binds) == 2
    strict = decide(given, policy(cardUnlimitedCpuMemory=False))
    assert not strict.binds
    assert code(strict, "job") == "ExceedsMaxQuota"


def test_gpu_without_a_card_name():
    named_nothing = gang("job", 1, 2, "training", card="")
    counted = decide(snapshot([node("n1", 4)], [training()], named_nothing))
    assert not counted.binds
    assert code(counted, "job") == "Misconfigured"
    free = decide(snapshot([node("n1", 4)], [queue("training", None)], named_nothing))
    assert binds(free) == {"job-0": "n1"}
    assert free.queues[0].allocated.cards == {H: 2000}


@pytest.mark.parametrize("state", [QueueState.CLOSED, QueueState.CLOSING, QueueState.UNKNOWN])
def test_only_an_open_queue_takes_new_work(state):
    result = decide(snapshot([node("n1", 4)], [training(state=state)], gang("job", 1, 1, "training")))
    assert not result.binds
    assert code(result, "job") == "QueueClosed"


def test_over_commit_counts_used_promised_and_minimum():
    given = snapshot(
        [node("n1", 8)],
        [training(quota={H: 64})],
        gang("runs", 1, 8, "training", on=["n1"]),
        gang("first", 1, 4, "training"),
        gang("second", 1, 6, "training"),
    )
    tight = decide(given, policy(overCommitFactor=1.0))
    assert (phase(tight, "first"), phase(tight, "second")) == (GangPhase.PENDING, GangPhase.PENDING)
    assert code(tight, "first") == "OverCommitted"
    loose = decide(given, policy(overCommitFactor=1.5))
    assert (phase(loose, "first"), phase(loose, "second")) == (GangPhase.INQUEUE, GangPhase.PENDING)


def test_what_inference_could_take_back_does_not_keep_it_out():
    given = snapshot(
        [node("n1", 8)], [inference(), training()], gang("runs", 1, 8, "training", on=["n1"]), service("svc", 1, 8)
    )
    assert decide(given, policy(overCommitFactor=1.0)).evictions


def test_an_admission_is_tested_again_when_the_quota_shrinks():
    admitted = gang("job", 1, 8, "training", phase=GangPhase.INQUEUE)
    result = decide(snapshot([node("n1", 4)], [training(quota={H: 4})], admitted))
    assert phase(result, "job") is GangPhase.PENDING


def _a_promise_that_fills_the_quota(waiting):
    """Two cards are free on each node; the admitted gang needs four on one."""
    return snapshot(
        [node("n1", 4), node("n2", 4)],
        [training(quota={H: 8})],
        gang("left", 1, 2, "training", on=["n1"]),
        gang("right", 1, 2, "training", on=["n2"]),
        gang("big", 1, 4, "training", phase=GangPhase.INQUEUE, group={"priority": 5}),
        waiting,
    )


def test_an_admitted_gang_without_a_place_does_not_hold_the_door():
    result = decide(_a_promise_that_fills_the_quota(gang("small", 2, 1, "training")))
    assert sorted(binds(result)) == ["small-0", "small-1"]
    assert phase(result, "big") is GangPhase.PENDING
    assert result.queues[0].inqueue.cards == {}


def test_upstream_lets_it_hold_the_door():
    rules = msgspec.structs.replace(policy(), compatibility="volcano")
    result = decide(_a_promise_that_fills_the_quota(gang("small", 2, 1, "training")), rules)
    assert (phase(result, "big"), phase(result, "small")) == (GangPhase.INQUEUE, GangPhase.PENDING)


def test_who_could_not_start_either_does_not_overtake():
    result = decide(_a_promise_that_fills_the_quota(gang("other", 1, 3, "training")))
    assert (phase(result, "big"), phase(result, "other")) == (GangPhase.INQUEUE, GangPhase.PENDING)


@pytest.mark.parametrize(("cpu", "fits"), [(40_000, True), (70_000, False)])
def test_a_job_whose_pods_come_later_overtakes_by_what_it_declares(cpu, fits):
    """Its parts of the declared cpu and cards must have room on nodes of 64 cores, two of each node in use."""
    group, _ = gang("small", 2, 1, "training")
    group = msgspec.structs.replace(
        group, waits_for_admission=True, min_resources=Amount(2 * cpu, 2048), card_request={H: 4000}
    )
    result = decide(_a_promise_that_fills_the_quota((group, [])))
    assert phase(result, "small") is (GangPhase.INQUEUE if fits else GangPhase.PENDING)
    assert phase(result, "big") is (GangPhase.PENDING if fits else GangPhase.INQUEUE)


def test_nothing_flaps_while_nobody_could_start():
    world = World(_a_promise_that_fills_the_quota(gang("other", 1, 3, "training")))
    seen = [[(outcome.name, outcome.phase) for outcome in world.step().podgroups] for _ in range(5)]
    assert all(phases == seen[0] for phases in seen)


def test_a_job_whose_pods_come_later_is_admitted_by_what_it_declares():
    group, _ = gang("job", 2, 1, "training")
    waiting = msgspec.structs.replace(
        group, waits_for_admission=True, min_resources=Amount(2000, 2048), card_request={H: 2000}
    )
    result = decide(snapshot([node("n1", 4)], [training(quota={H: 2})], (waiting, [])))
    assert phase(result, "job") is GangPhase.INQUEUE
    assert result.queues[0].inqueue.cards == {H: 2000}
    refused = decide(snapshot([node("n1", 4)], [training(quota={H: 1})], (waiting, [])))
    assert phase(refused, "job") is GangPhase.PENDING
    assert code(refused, "job") == "ExceedsMaxQuota"


def test_elastic_is_what_goes_beyond_the_minimum():
    result = decide(snapshot([node("n1", 8)], [inference()], service("svc", 5, 1, on=["n1"] * 5)))
    (outcome,) = result.queues
    assert outcome.allocated.cards == {H: 5000}
    assert outcome.elastic.cards == {H: 4000}


def test_backfill_places_what_asks_for_nothing():
    idle = gang("idle", 1, 0, "training", cpu=0, memory=0)
    assert binds(decide(snapshot([node("n1", 0)], [training()], idle))) == {"idle-0": "n1"}


def test_without_enqueue_everybody_is_admitted():
    result = decide(snapshot([node("n1", 8)], [training()], gang("job", 1, 1, "training")), policy("allocate"))
    assert binds(result) == {"job-0": "n1"}


def test_a_shared_card_takes_shares_up_to_its_size():
    shares = service("svc", 4, 0.6, "training")
    result = decide(snapshot([node("n1", 2)], [training()], shares))
    assert len(result.binds) == 2
    assert sorted(bind.card_indices for bind in result.binds) == [(0,), (1,)]


def test_an_unknown_plugin_or_action_is_named():
    from scheduler_core import BadInput

    given = snapshot([node("n1")], [training()])
    with pytest.raises(BadInput, match="no-such"):
        decide(given, policy("allocate no-such"))
    rules = msgspec.structs.replace(policy(), tiers=((PluginOption(name="nope"),),))
    with pytest.raises(BadInput, match="nope"):
        decide(given, rules)
