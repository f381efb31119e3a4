"""reclaim and preempt with compatibility: volcano: pod by pod, in upstream's order, with upstream's defects."""

from __future__ import annotations

import msgspec

from scheduler_core.actions.support.upstream_victims import victim_order
from scheduler_core.framework.session import Session
from scheduler_core.model.memory import Memory
from scheduler_core.plugins.priority import Priority
from scheduler_core.state.workspace import Workspace
from tests.core.small_cluster import (
    World,
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


def upstream(*args, **more):
    return msgspec.structs.replace(policy(*args, **more), compatibility="volcano")


def taken(result):
    return [eviction.pod.removeprefix("ns/") for eviction in result.evictions]


QUEUES = [inference(), training()]


def test_victims_come_queue_by_queue_then_the_last_gang_then_its_last_task():
    given = snapshot(
        [node("n1", 8)],
        [queue("a", None, created=1.0), queue("b", None, created=2.0)],
        gang("old", 2, 1, "a", on=["n1", "n1"], group={"created": 1.0}),
        gang("new", 1, 1, "a", on=["n1"], group={"created": 2.0}),
        gang("high", 1, 1, "a", on=["n1"], group={"created": 3.0, "priority": 9}),
        gang("last", 2, 1, "b", on=["n1", "n1"], group={"created": 0.0, "priority": 99}),
    )
    session = Session(
        given, upstream(), [[(Priority({}), {})]], now=0.0, seed=0, memory=Memory(), workspace=Workspace()
    )
    tasks = range(len(given.pods))
    order = victim_order(session, [task for task in tasks if session.tasks.live[task]], 0)
    names = [session.tasks.keys[task].removeprefix("ns/") for task in order]
    assert names == ["last-1", "last-0", "new-0", "old-1", "old-0", "high-0"]


def test_the_first_node_by_name_is_taken_whatever_it_costs():
    given = snapshot(
        [node("n1", 2), node("n2", 2)],
        QUEUES,
        gang("dear", 1, 2, "training", on=["n1"], started=0.0, group={"priority": 9}),
        gang("cheap", 1, 2, "training", on=["n2"], started=999.0),
        service("web", 1, 2),
    )
    assert taken(decide(given, upstream())) == ["dear-0"]
    assert taken(decide(given, policy())) == ["cheap-0"]


def test_members_fall_from_their_gangs_and_siblings_are_left_alone():
    given = snapshot(
        [node("n1", 2), node("n2", 2)],
        QUEUES,
        gang("wide", 2, 2, "training", on=["n1", "n2"]),
        service("web", 1, 2),
    )
    result = decide(given, upstream())
    assert taken(result) == ["wide-0"]
    assert [eviction.role.value for eviction in result.evictions] == ["victim"]


def test_a_task_that_finds_nobody_does_not_stop_the_others():
    group, pods = service("web", 2, 2, least=1)
    pods[0] = msgspec.structs.replace(pods[0], node_selector={"kubernetes.io/hostname": "nowhere"})
    given = snapshot([node("n1", 2)], QUEUES, gang("job", 1, 2, "training", on=["n1"]), (group, pods))
    result = decide(given, upstream())
    assert [bind.pod for bind in result.pipelined] == ["ns/web-1"]


def test_nothing_is_kept_where_the_gang_could_not_run():
    given = snapshot([node("n1", 2)], QUEUES, gang("job", 1, 2, "training", on=["n1"]), service("web", 2, 2, least=2))
    assert decide(given, upstream()).evictions == ()


def test_nothing_stays_promised_beyond_the_session():
    world = World(
        snapshot([node("n1", 2)], QUEUES, gang("job", 1, 2, "training", on=["n1"]), service("web", 1, 2)), upstream()
    )
    assert evicted(world.step()) == ["job"]
    assert world.memory.reservations == ()
    assert world.step().evictions == ()


def test_queues_that_are_not_reclaimable_and_protected_pods_stay():
    given = snapshot(
        [node("n1", 2), node("n2", 2)],
        [inference(), training(), training("kept", reclaimable=False)],
        gang("kept", 1, 2, "kept", on=["n1"]),
        gang("pod", 1, 2, "training", on=["n2"], preemptable=False),
        service("web", 1, 2),
    )
    assert decide(given, upstream()).evictions == ()
