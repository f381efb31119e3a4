"""preempt: who may take, what is tried, what is written down. Who falls is told in tests/golden/preempt.yaml."""

from __future__ import annotations

import msgspec

from scheduler_core.model.pod import PodPhase
from scheduler_core.model.podgroup import EvictedPolicy, GangPhase
from scheduler_core.model.policy import PluginOption, Policy
from scheduler_core.model.queue import NodeGroups
from scheduler_core.model.resources import Amount
from tests.core.small_cluster import H, World, binds, decide, evicted, gang, node, queue, snapshot


def rules(*, actions="enqueue allocate preempt backfill", arguments=None, capacity=False, **switches):
    counted = (PluginOption(name="capacity-card"),) if capacity else ()
    return Policy(
        actions=tuple(actions.split()),
        tiers=(
            (
                PluginOption(name="priority"),
                PluginOption(name="gang", switches=switches or {"preemptable": False}),
                PluginOption(name="conformance"),
            ),
            (PluginOption(name="predicates"), *counted, PluginOption(name="nodeorder")),
        ),
        action_arguments={"preempt": arguments or {}},
    )


def ranked(name, pods, cards, priority, *, group=None, **more):
    return gang(name, pods, cards, "q", group={"priority": priority, **(group or {})}, priority=priority, **more)


def cluster(nodes, *gangs):
    return snapshot([node(f"n{i + 1}", count) for i, count in enumerate(nodes)], [queue("q", None)], *gangs)


def test_all_tasks_of_a_gang_or_nobody_falls():
    low = [ranked(f"low{i}", 1, 4, 1, on=[f"n{i}"]) for i in (1, 2)]
    result = decide(cluster([4, 4], *low, ranked("high", 2, 4, 9)), rules())
    assert evicted(result) == ["low1", "low2"]
    assert decide(cluster([4, 4], *low, ranked("high", 3, 4, 9)), rules()).evictions == ()


def test_tasks_of_several_kinds_share_what_one_gang_leaves():
    low = [ranked("wide", 2, 4, 1, on=["n1", "n2"], started=900.0), ranked("other", 1, 4, 1, on=["n3"], started=999.0)]
    group, pods = ranked("high", 3, 2, 9)
    pods[2] = msgspec.structs.replace(pods[2], cpu_milli=2000)
    result = decide(cluster([4, 4, 4], *low, (group, pods)), rules())
    assert len(result.pipelined) == 3
    assert evicted(result) == ["wide"]


def test_only_nodes_of_the_queues_own_groups_are_looked_at():
    """However many cheaper victims there are where the gang may not go."""
    label = "volcano.sh/nodegroup-name"
    nodes = [node(f"n{i:02}", 4, labels={label: "A" if i == 30 else "B"}) for i in range(31)]
    own = queue("q", None, node_groups=NodeGroups(required=("A",)))
    low = [ranked(f"low{i:02}", 1, 4, 1, on=[f"n{i:02}"], started=900.0 - 20 * i) for i in range(31)]
    policy = rules()
    tier = (*policy.tiers[1], PluginOption(name="nodegroup"))
    policy = msgspec.structs.replace(policy, tiers=(policy.tiers[0], tier))
    high = ranked("high", 1, 4, 9)
    result = decide(snapshot(nodes, [own], *low, high), policy)
    assert evicted(result) == ["low30"]
    # None is evicted where two are wanted and the group has one node.
    assert evicted(decide(snapshot(nodes, [own], *low, ranked("high", 2, 4, 9)), policy)) == []


def test_free_room_is_used_before_anybody_falls():
    low = ranked("low", 1, 4, 1, on=["n1"])
    result = decide(cluster([4, 2], low, ranked("high", 1, 2, 9)), rules())
    assert (evicted(result), binds(result)) == ([], {"high-0": "n2"})


def test_a_running_service_gets_its_replicas_by_the_same_rule():
    low = ranked("low", 1, 4, 1, on=["n1"])
    web = ranked("web", 2, 4, 9, on=["n2"], least=1, kind="ReplicaSet")
    result = decide(cluster([4, 4], low, web), rules())
    assert evicted(result) == ["low"]


def test_nobody_else_falls_while_a_victim_still_leaves_the_nominated_node():
    leaving = ranked("gone", 1, 4, 1, on=["n1"], deleted=990.0)
    low = ranked("low", 1, 4, 1, on=["n2"])
    given = cluster([4, 4, 1], leaving, low, ranked("blocker", 1, 4, 9), ranked("high", 1, 4, 9, nominated_node="n1"))
    # What leaves n1 is promised to "blocker", which comes first by name.
    assert evicted(decide(given, rules())) == []
    given = cluster([4, 4, 1], leaving, low, ranked("blocker", 1, 4, 9), ranked("high", 1, 4, 9, nominated_node="n3"))
    assert evicted(decide(given, rules())) == ["low"]


def test_a_pod_that_asks_for_nothing_takes_only_from_such():
    idle = ranked("idle", 1, 0, 1, on=["n1"], cpu=0, memory=0)
    busy = ranked("busy", 1, 1, 1, on=["n1"])
    wants = ranked("wants", 1, 0, 9, cpu=0, memory=0, phase=GangPhase.INQUEUE)
    given = snapshot([node("n1", 4, pods=2)], [queue("q", None)], idle, busy, wants)
    result = decide(given, rules())
    assert evicted(result) == ["idle"]
    given = snapshot([node("n1", 4, pods=1)], [queue("q", None)], busy, wants)
    assert evicted(decide(given, rules())) == []


def test_nobody_falls_for_a_gang_that_was_refused_for_more_than_an_amount():
    closed = queue("q", None, problem="parent cycle")
    given = snapshot([node("n1", 4)], [closed], ranked("low", 1, 4, 1, on=["n1"]), ranked("high", 1, 4, 9))
    assert decide(given, rules()).evictions == ()


def test_it_is_written_down():
    low = ranked("low", 2, 2, 1, on=["n1", "n2"], started=900.0)
    result = decide(cluster([2, 2], low, ranked("high", 1, 2, 9)), rules())
    (record,) = result.reclaims
    assert (record.reclaimer, record.action, record.queue) == ("ns/high", "preempt", "q")
    assert (record.needed.cards, record.freed.cards) == ({H: 2000}, {H: 4000})
    assert record.victims[0].work_lost_card_seconds == 400.0
    assert sorted((e.pod, e.role.value, e.action, e.reclaimer) for e in result.evictions) == [
        ("ns/low-0", "victim", "preempt", "ns/high"),
        ("ns/low-1", "sibling", "preempt", "ns/high"),
    ]
    assert "preempts for 2 x NVIDIA-H200" in result.evictions[0].reason


def test_freed_room_stays_with_whom_it_was_freed_for():
    world = World(cluster([4], ranked("low", 1, 4, 1, on=["n1"]), ranked("high", 1, 4, 9)), rules())
    assert evicted(world.step()) == ["low"]
    (kept,) = world.memory.reservations
    assert (kept.pod, kept.node, kept.victims) == ("ns/high-0", "n1", ("ns/low-0",))
    assert world.step().evictions == ()
    seen = [world.step() for _ in range(3)]
    assert all(result.evictions == () for result in seen)


def test_own_tasks_that_end_the_job_when_they_go_stay():
    group, pods = ranked("x", 3, 2, 5, on=["n1", "n1"], least=1, policy=EvictedPolicy.RESTART_JOB)
    pods[2] = msgspec.structs.replace(pods[2], priority=9)
    assert decide(cluster([4], (group, pods)), rules()).evictions == ()
    group = msgspec.structs.replace(group, evicted_policy=EvictedPolicy.NONE)
    result = decide(cluster([4], (group, pods)), rules())
    assert [eviction.pod for eviction in result.evictions] == ["ns/x-0"]
    assert result.reclaims[0].rule.startswith("a task of higher priority takes the place of one of its own gang")


def test_gangs_alike_are_not_tried_again_where_the_first_found_nobody():
    gangs = [ranked(f"w{i}", 1, 4, 1) for i in range(4)]
    given = cluster([4], ranked("held", 1, 4, 9, on=["n1"]), *gangs)
    assert decide(given, rules()).evictions == ()


def test_own_tasks_go_where_one_can_be_spared_of_several():
    group, pods = ranked("x", 4, 1, 5, on=["n1", "n2", "n3"], least=2, policy=EvictedPolicy.NONE)
    pods[3] = msgspec.structs.replace(pods[3], priority=9)
    result = decide(cluster([1, 1, 1], (group, pods)), rules())
    assert [eviction.pod for eviction in result.evictions] == ["ns/x-0"]


def test_a_gang_is_not_taken_both_by_the_member_and_whole():
    group, pods = ranked("low", 2, 1, 1, on=["n1", "n2"], least=1, policy=EvictedPolicy.NONE)
    pods[1] = msgspec.structs.replace(pods[1], phase=PodPhase.PENDING, started=None)
    result = decide(cluster([1, 1], (group, pods), ranked("high", 2, 1, 9)), rules())
    assert [eviction.pod for eviction in result.evictions] == ["ns/low-0", "ns/low-1"]


def test_a_job_without_pods_takes_from_nobody_and_says_why():
    low = ranked("low", 1, 4, 1, on=["n1"])
    asked = {"min_resources": Amount(4000, 4096), "card_request": {H: 4000}, "waits_for_admission": True}
    group, _ = ranked("high", 1, 4, 9, group=asked)
    given = msgspec.structs.replace(cluster([4], low, (group, [])), queues=(queue("q", {H: 4}),))
    result = decide(given, rules(capacity=True))
    (reason,) = result.reasons
    assert not result.evictions
    assert (reason.podgroup, reason.code.value) == ("ns/high", "WaitingForQuota")
    assert "It has no pods yet, so no gang of lower priority is evicted for it" in reason.message
