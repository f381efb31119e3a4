"""reservation: who is elected, which nodes are locked, and for whom they stay open."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core.model.cards import CardRequest
from scheduler_core.model.memory import Election, Memory
from scheduler_core.model.pod import Pod, PodPhase
from scheduler_core.model.podgroup import GangPhase
from scheduler_core.model.policy import PluginOption, Policy
from tests.core.small_cluster import A, H, World, binds, decide, gang, node, queue, run_session, service, snapshot


def policy(actions="enqueue elect allocate reserve backfill", **arguments):
    return Policy(
        actions=tuple(actions.split()),
        tiers=(
            (
                PluginOption(name="priority"),
                PluginOption(name="gang"),
                PluginOption(name="reservation", arguments=arguments),
            ),
            (PluginOption(name="predicates"), PluginOption(name="nodeorder")),
        ),
    )


def waiting(name, pods, cards, *, created=0.0, priority=0, **more):
    return gang(name, pods, cards, "q", group={"created": created, "priority": priority}, **more)


def elected(given, rules=None, *, now=1000.0, memory=None):
    memory = run_session(given, rules or policy(), now=now, memory=memory, check=True)[1]
    return None if memory.election is None else (memory.election.gang.removeprefix("ns/"), memory.election.nodes)


FULL = [gang("runs", 2, 4, "q", on=["n1", "n2"])]
NODES = [node("n1", 4), node("n2", 4)]


def test_the_highest_priority_then_the_longest_waiting():
    gangs = [*FULL, waiting("late", 1, 4, created=3), waiting("early", 1, 4, created=2)]
    assert elected(snapshot(NODES, [queue("q", None)], *gangs))[0] == "early"
    gangs.append(waiting("high", 1, 4, created=9, priority=1))
    assert elected(snapshot(NODES, [queue("q", None)], *gangs))[0] == "high"


def test_a_standing_target_stays_whoever_comes():
    gangs = [*FULL, waiting("old", 1, 4), waiting("high", 1, 4, priority=1)]
    memory = Memory(election=Election(gang="ns/old", nodes=("n2",)))
    assert elected(snapshot(NODES, [queue("q", None)], *gangs), memory=memory) == ("old", ("n2",))


def test_nobody_is_elected_before_it_has_waited_long_enough():
    given = snapshot(NODES, [queue("q", None)], *FULL, waiting("young", 1, 4, created=950))
    assert elected(given, policy(waitingSeconds=60.0)) is None
    assert elected(given, policy(waitingSeconds=50.0))[0] == "young"


def test_nobody_is_elected_where_there_is_room_for_all():
    given = snapshot(NODES, [queue("q", None)], waiting("x", 1, 4), waiting("y", 1, 4))
    assert elected(given) is None


def test_a_gang_that_no_set_of_nodes_could_hold_is_passed_over():
    gangs = [*FULL, waiting("huge", 3, 4, priority=9), waiting("other", 1, 4)]
    assert elected(snapshot(NODES, [queue("q", None)], *gangs))[0] == "other"


def test_a_gang_that_asks_for_what_no_node_has_is_passed_over():
    strange = waiting("strange", 1, 0, priority=9)
    strange = (strange[0], [msgspec.structs.replace(pod, scalars={"example.com/fpga": 1}) for pod in strange[1]])
    assert elected(snapshot(NODES, [queue("q", None)], *FULL, strange)) is None
    assert elected(snapshot(NODES, [queue("q", None)], *FULL, strange, waiting("other", 1, 4)))[0] == "other"


def test_nodes_of_services_and_of_foreign_pods_are_not_waited_for():
    foreign = Pod(
        namespace="kube-system",
        name="agent",
        node="n2",
        phase=PodPhase.RUNNING,
        card=CardRequest((H,), "nvidia.com/gpu", 1000),
        card_indices=(0,),
    )
    held = [service("web", 1, 1, "q", on=["n1"]), gang("job", 1, 4, "q", on=["n3"])]
    nodes = [*NODES, node("n3", 4)]
    held[0] = (msgspec.structs.replace(held[0][0], service_type="inference"), held[0][1])
    given = snapshot(nodes, [queue("q", None)], *held, waiting("x", 1, 4), pods=[foreign])
    assert elected(given) == ("x", ("n3",))


def test_a_locked_node_stays_locked_and_more_join_where_it_is_not_enough():
    given = snapshot(NODES, [queue("q", None)], *FULL, waiting("x", 2, 4))
    memory = Memory(election=Election(gang="ns/x", nodes=("n2",)))
    assert elected(given, memory=memory) == ("x", ("n1", "n2"))
    given = snapshot(NODES, [queue("q", None)], *FULL, waiting("x", 1, 4))
    assert elected(given, memory=memory) == ("x", ("n2",))


def test_either_card_will_do():
    nodes = [node("n1", 4, A), node("n2", 4, H)]
    gangs = [gang("a", 1, 4, "q", on=["n1"], card=A), gang("h", 1, 3, "q", on=["n2"], card=H)]
    given = snapshot(nodes, [queue("q", None)], *gangs, waiting("x", 1, 4, card=f"{A}|{H}"))
    assert elected(given) == ("x", ("n2",))


def test_best_effort_pods_stay_off_locked_nodes_too():
    gangs = [gang("runs", 1, 4, "q", on=["n1"]), waiting("x", 1, 4), waiting("tiny", 1, 0, cpu=0, memory=0)]
    memory = Memory(election=Election(gang="ns/x", nodes=("n1",)))
    given = snapshot([node("n1", 4), node("n2", 2)], [queue("q", None)], *gangs)
    assert binds(run_session(given, policy(), now=1000.0, memory=memory, check=True)[0]) == {"tiny-0": "n2"}


@pytest.mark.parametrize("actions", ["enqueue allocate elect reserve", "enqueue allocate reserve"])
def test_a_target_that_is_gone_locks_nobody_out(actions):
    memory = Memory(election=Election(gang="ns/gone", nodes=("n1",)))
    given = snapshot([node("n1", 4)], [queue("q", None)], waiting("x", 1, 4))
    result, after = run_session(given, policy(actions), now=1000.0, memory=memory, check=True)
    assert binds(result) == {"x-0": "n1"}
    assert after.election is None


def test_without_the_actions_an_old_election_means_nothing():
    memory = Memory(election=Election(gang="ns/x", nodes=("n1",)))
    given = snapshot([node("n1", 4)], [queue("q", None)], waiting("x", 1, 8), waiting("y", 1, 4))
    result, after = run_session(given, policy("enqueue allocate"), now=1000.0, memory=memory, check=True)
    assert (binds(result), after.election) == ({"y-0": "n1"}, None)


def test_a_job_without_pods_is_elected_and_locks_nothing_yet():
    group, _ = waiting("x", 2, 4)
    group = msgspec.structs.replace(group, waits_for_admission=True, phase=GangPhase.PENDING)
    given = snapshot(NODES, [queue("q", None)], *FULL, (group, []))
    assert elected(given, policy("elect reserve")) == ("x", ())


def test_the_target_starts_and_the_nodes_are_open_again():
    world = World(snapshot(NODES, [queue("q", None)], *FULL, waiting("x", 1, 4)), policy())
    world.step()
    assert world.memory.election is not None
    pods = tuple(pod for pod in world.snapshot.pods if pod.name != "runs-0")
    world.snapshot = msgspec.structs.replace(world.snapshot, pods=pods)
    assert binds(world.step()) == {"x-0": "n1"}
    assert world.memory.election is None
    assert decide(world.snapshot, policy()).binds == ()
