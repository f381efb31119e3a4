"""The plain scheduler of the benchmarks decides as the naive one of the tests, and sees where the engine does not."""

from __future__ import annotations

import msgspec
import pytest

from bench import reference, sessions
from bench.snapshots import BORN, CARDS, Size, gang, nodes, queues, snapshot_of
from scheduler_core import parse_policy, run_session
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests.reference.session import decide

SMALL = Size("XS", 10, 48)
# Gangs without cards, of one and of two cards a task, in four queues.
GANGS = (0, 1, 100, 102, 121, 342)


@pytest.fixture(scope="module")
def snapshot():
    quota = dict.fromkeys(CARDS, 16_000)
    taking = tuple(msgspec.structs.replace(queue, card_quota=quota) for queue in queues(SMALL)[:4])
    return snapshot_of(nodes(SMALL), taking, [gang(number) for number in GANGS])


@pytest.fixture(scope="module")
def result(snapshot):
    return run_session(snapshot, parse_policy(FOUNDING_POLICY), now=BORN)[0]


def test_it_decides_as_the_naive_scheduler(snapshot):
    assert reference.decide(snapshot) == decide(snapshot, now=BORN)["binds"]


def test_it_agrees_with_the_engine_and_sees_where_it_would_not(snapshot, result):
    assert sessions.differences(snapshot, result) == []
    first, *others = result.binds
    elsewhere = msgspec.structs.replace(first, node="node-00009x")
    assert sessions.differences(snapshot, msgspec.structs.replace(result, binds=(elsewhere, *others))) == [first.pod]


def test_it_refuses_what_it_does_not_know(snapshot):
    running = msgspec.structs.replace(snapshot.pods[0], node="node-00000")
    with pytest.raises(AssertionError):
        reference.decide(msgspec.structs.replace(snapshot, pods=(running, *snapshot.pods[1:])))
