"""Gangs that are left alone for a while: who, for how long, and that it outlives a session."""

from __future__ import annotations

import msgspec

from scheduler_core import Memory, run_session
from scheduler_core.model.memory import Rest
from scheduler_core.model.rests import in_force, prolonged
from tests.core.small_cluster import (
    World,
    code,
    decide,
    evicted,
    gang,
    inference,
    node,
    policy,
    service,
    snapshot,
    training,
)

QUEUES = [inference(), training()]


def test_each_time_twice_as_long_up_to_a_bound():
    rests = prolonged((), "a/g", "first", now=0.0, first=10.0, longest=30.0)
    assert (rests[0].until, rests[0].seconds) == (10.0, 10.0)
    rests = prolonged(rests, "a/g", "again", now=100.0, first=10.0, longest=30.0)
    rests = prolonged(rests, "a/g", "again", now=200.0, first=10.0, longest=30.0)
    assert (rests[0].until, rests[0].seconds, rests[0].why) == (230.0, 30.0, "again")
    assert in_force(rests, 229.0) == {"a/g": "again"}
    assert in_force(rests, 230.0) == {}


def test_a_gang_that_the_cluster_does_not_let_go_is_passed_over_for_the_next_one():
    given = snapshot(
        [node("n1", 4), node("n2", 4)],
        QUEUES,
        gang("guarded", 1, 4, "training", on=["n1"], started=900),
        gang("other", 1, 4, "training", on=["n2"], started=0),
        service("svc", 1, 4),
    )
    memory = Memory(spared=prolonged((), "ns/guarded", "may not be evicted", now=1000.0, first=15.0, longest=600.0))
    result = decide(given, memory=memory)
    assert evicted(result) == ["other"]
    assert [(no.gang, no.rule) for no in result.reclaims[0].refused] == [("ns/guarded", "may not be evicted")]
    _, after = run_session(given, policy(), now=1020.0, memory=memory)
    assert [rest.gang for rest in after.spared if not rest.cools] == ["ns/guarded"]  # for the next time


def test_a_gang_that_backs_off_is_not_tried_and_says_so():
    given = snapshot([node("n1", 4)], QUEUES, gang("x", 1, 4, "training"))
    memory = Memory(backing_off=(Rest(gang="ns/x", why="1 of 2 members could be bound", until=1003.0, seconds=3.0),))
    result, after = run_session(given, policy(), now=1000.0, memory=memory)
    assert not result.binds
    assert code(result, "x") == "BackingOff"
    result, _ = run_session(given, policy(), now=1004.0, memory=after)
    assert [bind.pod for bind in result.binds] == ["ns/x-0"]


def test_who_was_evicted_cools_down_under_whatever_name_it_comes_back():
    world = World(
        snapshot([node("n1", 4)], QUEUES, gang("job", 1, 4, "training", on=["n1"]), service("svc", 1, 4)),
        policy(reclaim={"cooldownSeconds": 100.0}),
    )
    assert evicted(world.step()) == ["job"]
    assert world.memory is not None
    assert [rest.gang for rest in world.memory.spared] == ["ns/Job/job"]
    group, pods = gang("job-again", 1, 4, "training", on=["n2"], group={"owner_name": "job"})
    later = snapshot([node("n2", 4)], QUEUES, (group, pods), service("svc", 1, 4))
    kept, _ = run_session(later, world.policy, now=1099.0, memory=world.memory)
    assert not kept.evictions
    fallen, _ = run_session(later, world.policy, now=1101.0, memory=world.memory)
    assert evicted(fallen) == ["job-again"]


def test_without_a_cool_down_nothing_is_kept():
    given = snapshot([node("n1", 4)], QUEUES, gang("job", 1, 4, "training", on=["n1"]), service("svc", 1, 4))
    _, after = run_session(given, policy(reclaim={"cooldownSeconds": 0.0}), now=1000.0)
    assert after.spared == ()


def test_memory_of_an_engine_before_rests_can_be_read():
    old = msgspec.msgpack.encode({"version": 1, "reservations": [], "submitted": {}, "told": {}})
    assert msgspec.msgpack.decode(old, type=Memory) == Memory()
