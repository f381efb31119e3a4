"""One reason for each gang that waits; the first of the closed list that holds."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core import run_session
from scheduler_core.model.node import Taint
from tests.core.small_cluster import (
    A,
    H,
    World,
    code,
    decide,
    gang,
    inference,
    node,
    policy,
    service,
    snapshot,
    training,
)

QUEUES = [inference(), training()]
FULL = gang("holder", 1, 4, "training", on=["n1"])


def reason(result, name):
    return next(reason for reason in result.reasons if reason.podgroup == f"ns/{name}")


CASES = {
    "Suspended": ([node("n1", 4)], QUEUES, gang("x", 1, 1, "training", group={"suspended": True})),
    "Misconfigured": ([node("n1", 4)], QUEUES, gang("x", 1, 1, "nowhere")),
    "NoMatchingCard": ([node("n1", 4)], QUEUES, gang("x", 1, 1, "training", card="NVIDIA-B200")),
    "ExceedsMaxQuota": ([node("n1", 4)], [training(quota={H: 2})], gang("x", 1, 3, "training")),
    "WaitingForQuota": ([node("n1", 8)], [training(quota={H: 6})], gang("x", 1, 4, "training"), FULL),
    "WaitingForCards": ([node("n1", 4)], QUEUES, gang("x", 1, 2, "training"), FULL),
    "NoNodeMatches": ([node("n1", 4)], QUEUES, gang("x", 1, 1, "training", node_selector={"zone": "moon"})),
    "Fragmented": (
        [node("n1", 8), node("n2", 4)],
        [inference(), training()],
        gang("x", 1, 8, "training"),
        FULL,
    ),
}


@pytest.mark.parametrize("expected", CASES)
def test_codes(expected):
    nodes, queues, *gangs = CASES[expected]
    assert code(decide(snapshot(nodes, queues, *gangs)), "x") == expected


def test_a_gang_with_too_few_members_is_incomplete():
    group, pods = gang("x", 3, 1, "training")
    result = decide(snapshot([node("n1")], QUEUES, (group, pods[:2])))
    assert code(result, "x") == "GangIncomplete"
    numbers = result.reasons[0].numbers
    assert (numbers.requested, numbers.allocated, numbers.short) == (3, 2, 1)


def test_numbers_and_holders():
    found = reason(
        decide(
            snapshot(
                [node("n1", 8)],
                [training(quota={H: 6})],
                gang("x", 2, 2, "training"),
                gang("big", 1, 3, "training", on=["n1"]),
                gang("small", 1, 1, "training", on=["n1"]),
            )
        ),
        "x",
    )
    numbers = found.numbers
    assert (numbers.resource, numbers.requested, numbers.limit, numbers.allocated, numbers.short) == (H, 4, 6, 4, 2)
    assert [(holder.gang, holder.amount) for holder in numbers.holders] == [("ns/big", 3.0), ("ns/small", 1.0)]
    assert numbers.position == 1
    assert found.message == f"Asks for 4 x {H}; queue training uses 4 x {H} of 6 x {H}: 2 x {H} short."


def test_nodes_say_no_each_with_its_reason():
    result = decide(
        snapshot(
            [
                node("n1", 4, taints=(Taint("dedicated", "x"),)),
                node("n2", 4, unschedulable=True),
                node("n3", 4, A),
            ],
            QUEUES,
            gang("x", 1, 1, "training"),
        )
    )
    assert reason(result, "x").code.value == "NoNodeMatches"
    assert reason(result, "x").numbers.nodes == {"no such card": 1, "taint": 1, "unschedulable": 1}


def test_what_is_free_but_promised_is_behind_higher_priority():
    world = World(
        snapshot(
            [node("n1", 4), node("n2", 4)],
            QUEUES,
            gang("one", 1, 4, "training", on=["n1"]),
            gang("two", 1, 4, "training", on=["n2"]),
            service("svc", 2, 4, least=2),
            gang("x", 1, 4, "training"),
        )
    )
    assert len(world.step().evictions) == 2
    # Only one of the two has left by now: its cards are idle, and promised to the service, which needs both.
    pods = tuple(pod for pod in world.snapshot.pods if pod.key != "ns/one-0")
    left = msgspec.structs.replace(world.snapshot, pods=pods)
    result, _ = run_session(left, world.policy, now=world.now, memory=world.memory, check=True)
    assert not result.binds
    assert code(result, "svc") == "WaitingForReclaim"
    assert code(result, "x") == "BehindHigherPriority"


def test_a_remedy_is_what_a_session_has_shown():
    given = snapshot([node("n1", 8)], [training(quota={H: 6})], gang("x", 1, 4, "training"), FULL)
    result, _ = run_session(given, policy(), now=1000.0, explain=["ns/x"])
    remedy = reason(result, "x").remedy
    assert remedy is not None
    assert (remedy.change, remedy.queue, remedy.card, remedy.by, remedy.verified) == ("quota", "training", H, 2, True)


def test_a_remedy_can_be_the_end_of_another_gang():
    result, _ = run_session(
        snapshot([node("n1", 4)], QUEUES, gang("x", 1, 2, "training"), FULL), policy(), now=1000.0, explain=True
    )
    remedy = reason(result, "x").remedy
    assert remedy is not None
    assert (remedy.change, remedy.gang) == ("gang_ends", "ns/holder")


def test_the_smallest_gang_whose_end_helps_is_named():
    """Not the largest holder, and not one that holds less than what is short."""
    holders = [gang(name, 1, count, "training", on=["n1"]) for name, count in (("big", 5), ("fit", 2), ("tiny", 1))]
    result, _ = run_session(
        snapshot([node("n1", 8)], QUEUES, gang("x", 1, 2, "training"), *holders), policy(), now=1000.0, explain=True
    )
    assert code(result, "x") == "WaitingForCards"
    assert [holder.gang for holder in reason(result, "x").numbers.holders] == ["ns/big", "ns/fit", "ns/tiny"]
    assert reason(result, "x").remedy.gang == "ns/fit"


def test_where_room_is_fragmented_a_larger_gang_may_have_to_end():
    """One card is short, and four are needed on one node: the smallest holders sit where that would not be enough."""
    small = [gang(f"s{i}", 1, 1, "training", on=[f"n{i}"]) for i in (1, 2)]
    given = snapshot(
        [node("n1", 4), node("n2", 4), node("n3", 4)],
        QUEUES,
        gang("x", 1, 4, "training"),
        *small,
        gang("a", 1, 2, "training", on=["n1"]),
        gang("b", 1, 2, "training", on=["n2"]),
        gang("c", 1, 3, "training", on=["n3"]),
    )
    result, _ = run_session(given, policy(), now=1000.0, explain=True)
    assert reason(result, "x").remedy.gang == "ns/c"


def test_an_event_is_told_once():
    world = World(snapshot([node("n1", 8)], [training(quota={H: 6})], gang("x", 1, 4, "training"), FULL))
    (event,) = world.step().events
    assert (event.kind, event.name, event.reason) == ("PodGroup", "ns/x", "InsufficientScalarQuota")
    assert f"requested 4 x {H}, total would be 8 x {H}, but capability is 6 x {H}" in event.message
    assert not world.step().events


@pytest.mark.parametrize(
    ("queues", "made", "expected"),
    [
        ([training(quota={})], gang("x", 1, 1, "training"), "EmptyQueueCapability"),
        ([training(cpu_milli=500)], gang("x", 1, 0, "training"), "InsufficientCPUQuota"),
        ([training(memory_mib=500)], gang("x", 1, 0, "training"), "InsufficientMemoryQuota"),
        ([training()], gang("x", 1, 1, "training", card=""), "GetTaskRequestResourceFailed"),
    ],
)
def test_events_of_document_000(queues, made, expected):
    (event,) = decide(snapshot([node("n1", 8)], queues, made)).events
    assert event.reason == expected


def test_a_reclaim_that_an_earlier_session_made_is_seen_without_its_memory():
    world = World(snapshot([node("n1", 4)], QUEUES, FULL, service("svc", 1, 4)))
    world.step()
    result = decide(world.snapshot)
    assert [pipe.pod for pipe in result.pipelined] == ["ns/svc-0"]
    assert code(result, "svc") == "WaitingForReclaim"
    assert reason(result, "svc").message == f"Asks for 4 x {H}, which is being taken back: 1 pod leaves for it."
