"""A place in the queue and a cool-down belong to the workload that has earned them, not to the next one of its name."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core import Memory, run_session
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.same_gang import goes_on
from tests import builders as b
from tests.core.small_cluster import World, evicted, gang, inference, node, policy, service, snapshot, training


@pytest.mark.parametrize(("created", "since"), [(5, 5), (10, 10), (50, 50)])
def test_a_recreated_job_does_not_inherit_the_place_of_the_old_one(created, since):
    wants = b.pod("worker", "", card="A", count=8)
    template = {"metadata": {"annotations": wants["metadata"]["annotations"]}, "spec": wants["spec"]}
    objects = [
        *b.priority_classes(),
        b.queue("qt", {"A": 8}, **b.TRAINING),
        b.node("n1", "A", 4),
        b.job("held", "qt", 1, evicted="RestartJob", created=created, template=template),
    ]
    memory = Memory(submitted={"default/Job/held": b.now(10)})
    result, after = run_session(b.snapshot(objects), b.founding_policy(), now=b.now(100), memory=memory)
    (gang,) = result.podgroups
    assert gang.waiting_since == b.now(since)
    assert after.submitted == ({"default/Job/held": b.now(10)} if created <= 10 else {})
    # Only the one place is forgotten.
    others = msgspec.structs.replace(memory, submitted={**memory.submitted, "default/Job/gone": b.now(1)})
    _, after = run_session(b.snapshot(objects), b.founding_policy(), now=b.now(100), memory=others)
    assert after.submitted["default/Job/gone"] == b.now(1)


@pytest.fixture
def fallen() -> World:
    """A gang of the owner ``uid-1``, submitted at 3, has been evicted at 1000 and its pods have gone."""
    owned = gang("job", 1, 4, "training", on=["n1"], group={"owner_uid": "uid-1", "created": 3.0})
    queues = [inference(), training()]
    given = snapshot([node("n1", 4)], queues, owned, service("svc", 1, 4))
    world = World(given, policy(reclaim={"cooldownSeconds": 100.0}))
    assert evicted(world.step()) == ["job"]
    return world


def again(owner: str, **more):
    """A PodGroup of the owner's name, made at 1005."""
    group = {"owner_name": "job", "owner_uid": owner, "created": 1005.0}
    return gang("job-again", 1, 4, "training", group=group, **more)


@pytest.mark.parametrize(("owner", "since"), [("uid-1", 3.0), ("uid-2", 1005.0)])
def test_the_owner_decides_who_keeps_the_place(fallen, owner, since):
    later = snapshot([node("n2", 2)], [inference(), training()], again(owner))
    result, after = run_session(later, fallen.policy, now=1010.0, memory=fallen.memory)
    assert [outcome.waiting_since for outcome in result.podgroups] == [since]
    assert after.submitted == ({"ns/Job/job": 3.0} if owner == "uid-1" else {})
    assert after.owners == ({"ns/Job/job": "uid-1"} if owner == "uid-1" else {})


@pytest.mark.parametrize(("owner", "falls"), [("uid-1", []), ("uid-2", ["job-again"])])
def test_the_owner_decides_who_keeps_the_cool_down(fallen, owner, falls):
    later = snapshot([node("n2", 4)], [inference(), training()], again(owner, on=["n2"]), service("svc", 1, 4))
    result, after = run_session(later, fallen.policy, now=1010.0, memory=fallen.memory)
    assert evicted(result) == falls
    assert after.owners == {"ns/Job/job": owner}


def test_a_memory_without_owners_can_be_read_and_written():
    memory = msgspec.msgpack.decode(msgspec.msgpack.encode({"version": 1, "submitted": {"a/Job/x": 1.0}}), type=Memory)
    assert memory == Memory(submitted={"a/Job/x": 1.0})


@pytest.mark.parametrize(
    ("known", "owner", "made", "submitted", "same"),
    [
        ("uid-1", "uid-1", 50.0, None, True),
        ("uid-1", "uid-2", 5.0, 5.0, False),
        ("", "uid-1", 10.0, None, True),
        ("uid-1", "", 11.0, 5.0, False),
        ("", "", None, 5.0, True),
        ("", "", None, 11.0, False),
        ("", "", None, None, False),
    ],
)
def test_the_uid_comes_before_the_times(known, owner, made, submitted, same):
    group = PodGroup(
        namespace="a", name="x", created=60.0, submitted=submitted, owner_kind="Job", owner_name="x", owner_uid=owner,
        owner_created=made,
    )  # fmt: skip
    assert goes_on(group, owner_uid=known, at=10.0) is same
