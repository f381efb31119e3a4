"""Where room decided, a record says what a gang's leaving would have freed, where, and what would have been short.

The figures are computed again from the snapshot by plain loops over pods and nodes.
"""

from __future__ import annotations

import random

import msgspec
import pytest

from scheduler_core import Result, Snapshot
from scheduler_core.actions import reclaim as reclaim_action
from scheduler_core.model.rules import Rule, rule_of_text
from tests.core.small_cluster import A, H, decide, gang, inference, node, service, snapshot, training


def _free(given: Snapshot, without: str = "") -> dict[str, int]:
    """Whole cards free on each node, with the pods of one gang gone."""
    free = {node.name: sum(held.count for held in node.cards) for node in given.nodes}
    for pod in given.pods:
        if pod.node and pod.group_key != without:
            free[pod.node] -= pod.card.milli // 1000
    return free


def _recomputed(given: Snapshot, result: Result) -> int:
    """Each figure of each candidate of the only reclaim; how many candidates room decided about."""
    (reclaim,) = result.reclaims
    pods = {pod.key: pod for pod in given.pods}
    asks = {pod.card.milli // 1000 for pod in given.pods if pod.group_key == reclaim.reclaimer}
    assert len(asks) == 1
    needs, before, found = asks.pop(), _free(given), 0
    wanted = sum(reclaim.needed.cards.values()) // 1000 // needs
    for one in reclaim.candidates:
        told = rule_of_text(one.rule)
        if one.alone is None:
            assert told is None or told[0] not in (Rule.SHORT_ON_NODE, Rule.FEWER_PODS, Rule.TOO_LITTLE), one
            continue
        found += 1
        then = _free(given, one.gang)
        nodes = sorted({pod.node for pod in pods.values() if pod.group_key == one.gang})
        fits = {name: then[name] // needs for name in nodes}
        assert one.alone.wanted == wanted
        assert one.alone.fits == min(wanted, sum(fits.values()))
        assert len(one.alone.nodes) == min(3, len(nodes))
        assert len(one.alone.nodes) + one.alone.more_nodes == len(nodes)
        best = sorted(nodes, key=lambda name: (-fits[name], max(0, needs - then[name])))
        ranks = [(-fits[name], max(0, needs - then[name])) for name in best[:3]]
        assert [(-at.fits, at.short) for at in one.alone.nodes] == ranks, "the best nodes first"
        for at in one.alone.nodes:
            assert (at.resource, at.needs) == (H, needs)
            assert (at.free, at.frees) == (before[at.node], then[at.node] - before[at.node])
            assert at.fits == fits[at.node]
            assert at.short == (0 if fits[at.node] else needs - then[at.node])
        assert told is not None
        if one.alone.fits >= wanted:
            assert told[0] is Rule.NOT_REACHED
            continue
        rule, about = told
        assert rule is (Rule.FEWER_PODS if one.alone.fits else Rule.SHORT_ON_NODE)
        first = one.alone.nodes[0]
        assert (about["node"], about["what"]) == (first.node, H)
        assert (float(about["frees"]), float(about["free"]), float(about["needs"])) == (
            first.frees,
            first.free,
            first.needs,
        )
        if rule is Rule.SHORT_ON_NODE:
            assert float(about["short"]) == first.short > 0
        else:
            assert (int(about["fits"]), int(about["wanted"])) == (one.alone.fits, wanted)
    return found


def _scene() -> Snapshot:
    """``wide`` frees 4 where 2 are needed, one on each of four nodes that have none free: no pod fits on one."""
    return snapshot(
        [node(f"n{number}", 2) for number in range(1, 6)],
        [inference(), training()],
        gang("wide", 4, 1, "training", on=["n1", "n2", "n3", "n4"], started=990),
        *[service(f"web-{number}", 1, 1, on=[f"n{number}"]) for number in range(1, 5)],
        gang("job", 1, 2, "training", on=["n5"], started=100),
        service("svc", 1, 2),
    )


def test_a_gang_that_frees_more_than_is_needed_says_on_which_node_it_is_too_little():
    given = _scene()
    result = decide(given)
    (reclaim,) = result.reclaims
    assert [one.gang for one in reclaim.victims] == ["ns/job"]
    (wide,) = [one for one in reclaim.candidates if one.gang == "ns/wide"]
    assert wide.frees_milli == 4000
    assert wide.rule == (
        "its leaving would not make enough room: on n1 it frees 1 of NVIDIA-H200, 0 more free, a pod needs 2, 1 short"
    )
    assert (wide.alone.fits, wide.alone.wanted, len(wide.alone.nodes), wide.alone.more_nodes) == (0, 1, 3, 1)
    assert _recomputed(given, result) == 1
    assert {one.gang: one.rule for one in reclaim.refused}["ns/wide"] == wide.rule, "one sentence in both lists"


def test_room_for_some_of_the_pods_is_said_as_such():
    given = snapshot(
        [node("n1", 4), node("n2", 2), node("n3", 2)],
        [inference(), training()],
        gang("half", 1, 2, "training", on=["n2"], started=990),
        gang("job", 1, 4, "training", on=["n1"], started=980),
        service("svc", 2, 2, least=2),
    )
    # n3 has room for one of the two pods; for the other one ``half`` is enough and cheaper than ``job``.
    assert [one.gang for one in decide(given).reclaims[0].victims] == ["ns/half"]
    both = msgspec.structs.replace(given, nodes=tuple(each for each in given.nodes if each.name != "n3"))
    (reclaim,) = decide(both).reclaims
    assert [one.gang for one in reclaim.victims] == ["ns/job"]
    (half,) = reclaim.candidates
    assert half.rule == (
        "its leaving would make room for 1 of 2 pods: on n2 it frees 2 of NVIDIA-H200, 0 more free, a pod needs 2"
    )
    assert _recomputed(both, decide(both)) == 1


def test_where_the_processor_is_short_and_not_the_card_the_record_says_so():
    given = snapshot(
        [node("n1", 4, cpu=8000), node("n2", 4)],
        [inference(), training()],
        gang("lean", 1, 4, "training", on=["n1"], started=990, cpu=2000),
        service("busy", 1, 0, cpu=6000, on=["n1"]),
        gang("job", 1, 4, "training", on=["n2"], started=100, cpu=16000),
        service("svc", 1, 4, cpu=16000),
    )
    (reclaim,) = decide(given).reclaims
    (lean,) = [one for one in reclaim.candidates if one.gang == "ns/lean"]
    (at,) = lean.alone.nodes
    assert (at.node, at.resource, at.free, at.frees, at.needs, at.short) == ("n1", "cpu", 0, 2000, 16000, 14000)
    assert lean.rule.endswith("on n1 it frees 2 of cpu, 0 more free, a pod needs 16, 14 short")


@pytest.mark.parametrize("by_hand", [False, True])
def test_the_figures_of_random_small_clusters_follow_from_their_snapshots(monkeypatch, by_hand):
    if by_hand:
        monkeypatch.setattr(reclaim_action, "plain_claims", lambda session: None)
    dice, decided, short = random.Random(7), 0, 0
    for _ in range(40):
        names = [f"n{number}" for number in range(dice.randint(3, 6))]
        room = dict.fromkeys(names, 4)
        gangs = []
        for number in range(dice.randint(4, 9)):
            cards, size = dice.choice([1, 2, 4]), dice.choice([1, 1, 2, 3])
            on: list[str] = []
            for _ in range(size):
                there = [name for name in names if room[name] >= cards]
                if not there:
                    break
                on.append(dice.choice(there))
                room[on[-1]] -= cards
            if on:
                started = dice.choice([0, 400, 800, 990])
                make = service if dice.random() < 0.2 else gang
                target = "inference" if make is service else "training"
                gangs.append(make(f"g{number}", len(on), cards, target, on=on, started=started))
        for name in names:
            if room[name]:
                gangs.append(service(f"fill-{name}", 1, room[name], on=[name]))
        wants = service("svc", dice.choice([1, 2]), dice.choice([1, 2, 4]))
        given = snapshot([node(name, 4) for name in names], [inference(quota={H: 64}), training()], *gangs, wants)
        result = decide(given)
        if len(result.reclaims) == 1:
            decided += 1
            short += _recomputed(given, result)
    assert decided > 10
    assert short > 5


@pytest.mark.parametrize("by_hand", [False, True])
def test_what_another_claimant_gained_in_between_is_no_part_of_the_moment_before(monkeypatch, by_hand):
    """Of three services the second gets what the first one's victim leaves over: no gang is evicted for it."""
    if by_hand:
        monkeypatch.setattr(reclaim_action, "plain_claims", lambda session: None)
    given = snapshot(
        [node("n1", 4), node("n2", 4)],
        [inference(), training()],
        gang("job-1", 1, 4, "training", on=["n1"], started=900),
        gang("job-2", 1, 4, "training", on=["n2"], started=100),
        service("svc-1", 1, 2),
        service("svc-2", 1, 2),
        service("svc-3", 1, 4),
    )
    result = decide(given)
    assert [(one.reclaimer, one.victims[0].gang) for one in result.reclaims] == [
        ("ns/svc-1", "ns/job-1"),
        ("ns/svc-3", "ns/job-2"),
    ]
    use = {
        (one.reclaimer, moment.queue): (moment.before.cards[H], moment.after.cards[H])
        for one in result.reclaims
        for moment in one.queues
    }
    assert use == {
        ("ns/svc-1", "inference"): (0, 2000),
        ("ns/svc-1", "training"): (8000, 4000),
        ("ns/svc-3", "inference"): (4000, 8000),
        ("ns/svc-3", "training"): (4000, 0),
    }


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_gang_that_left_for_an_earlier_reclaim_is_no_candidate_of_a_later_one(monkeypatch, by_hand):
    """The second takes the dear gang, since it needs its node; the third, of the first one's kind, comes later."""
    if by_hand:
        monkeypatch.setattr(reclaim_action, "plain_claims", lambda session: None)
    given = snapshot(
        [node("n1", 4), node("n2", 2), node("n3", 2), node("n4", 2)],
        [inference(), training()],
        gang("large", 1, 4, "training", on=["n1"], started=0),
        gang("small", 1, 2, "training", on=["n2"], started=900),
        gang("other", 1, 2, "training", on=["n3"], started=800),
        gang("third", 1, 2, "training", on=["n4"], started=700),
        service("svc-1", 1, 2),
        service("svc-2", 1, 4),
        service("svc-3", 1, 2),
    )
    result = decide(given)
    named = {
        one.reclaimer: (one.victims[0].gang, [candidate.gang for candidate in one.candidates], one.more_candidates)
        for one in result.reclaims
    }
    assert named == {
        "ns/svc-1": ("ns/small", ["ns/other", "ns/third"], 1),
        "ns/svc-2": ("ns/large", ["ns/other", "ns/third"], 0),
        "ns/svc-3": ("ns/other", ["ns/third"], 0),
    }


@pytest.mark.parametrize("by_hand", [False, True])
def test_whom_a_later_reclaim_takes_is_still_a_candidate_of_an_earlier_one(monkeypatch, by_hand):
    if by_hand:
        monkeypatch.setattr(reclaim_action, "plain_claims", lambda session: None)
    given = snapshot(
        [node(f"n{number}", 4) for number in range(3)],
        [inference(), training()],
        *[gang(f"job-{number}", 1, 4, "training", on=[f"n{number}"], started=number * 100) for number in range(3)],
        service("svc-1", 1, 4),
        service("svc-2", 1, 4),
    )
    named = {
        one.reclaimer: (one.victims[0].gang, [candidate.gang for candidate in one.candidates])
        for one in decide(given).reclaims
    }
    assert named == {"ns/svc-1": ("ns/job-2", ["ns/job-1", "ns/job-0"]), "ns/svc-2": ("ns/job-1", ["ns/job-0"])}


def _undone_between() -> Snapshot:
    """``mixed`` asks for a card that others hold and for one of a type that no queue gives back: it is undone."""
    first, second = service("mixed", 1, 4), service("mixed", 1, 4, card=A)
    pods = [first[1][0], msgspec.structs.replace(second[1][0], name="mixed-1")]
    mixed = (msgspec.structs.replace(first[0], min_member=2), pods)
    return snapshot(
        [*[node(f"n{number:02}", 4) for number in range(20)], node("z", 4, A)],
        [inference(quota={H: 64, A: 8}), training(quota={H: 80, A: 8})],
        *[gang(f"job-{number:02}", 1, 4, "training", on=[f"n{number:02}"], started=number) for number in range(16)],
        *[
            gang(f"kept-{number}", 1, 4, "training", on=[f"n{number}"], started=900, preemptable=False)
            for number in range(16, 20)
        ],
        service("holds", 1, 4, on=["z"], card=A),
        mixed,
        service("svc-1", 1, 4),
        service("svc-2", 1, 4),
    )


@pytest.mark.parametrize("by_hand", [False, True])
def test_who_came_into_question_is_counted_at_the_moment_of_each_reclaim(monkeypatch, by_hand):
    """Of 20 gangs 4 are protected; an attempt that was undone in between counts for nothing."""
    if by_hand:
        monkeypatch.setattr(reclaim_action, "plain_claims", lambda session: None)
    result = decide(_undone_between())
    counted = {one.reclaimer: len(one.candidates) + one.more_candidates for one in result.reclaims}
    assert counted == {"ns/svc-1": 19, "ns/svc-2": 18}
    fell = {one.reclaimer: one.victims[0].gang for one in result.reclaims}
    assert fell == {"ns/svc-1": "ns/job-15", "ns/svc-2": "ns/job-14"}
    use = sorted((m.queue, m.before.cards[H], m.after.cards[H]) for one in result.reclaims for m in one.queues)
    assert use == [
        ("inference", 0, 4000),
        ("inference", 4000, 8000),
        ("training", 76000, 72000),
        ("training", 80000, 76000),
    ]
