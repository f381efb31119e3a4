"""gangpreempt and gangreclaim: bundles, what they are worth, and the order of taking. Stories: tests/golden."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from scheduler_core.actions.support.bundles_by_worth import Demand, in_order, offers
from scheduler_core.actions.support.guards import Guards
from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.plugins.capacity_card import CapacityCard
from scheduler_core.plugins.gang import Gang
from scheduler_core.plugins.priority import Priority
from tests.core import open_session
from tests.core.small_cluster import A, H, World, decide, evicted, gang, node, policy, queue, service, snapshot

NONE = EvictedPolicy.NONE


def opened(given, *more, compat=False):
    rules = msgspec.structs.replace(policy("gangpreempt"), compatibility="volcano" if compat else "")
    tiers = [[(Priority({}), {}), (Gang({}), {}), *((plugin, {}) for plugin in more)]]
    return open_session.opened(given, rules, tiers=tiers, now=100.0)


def offered(session, name, wants="wants", *, allow_whole=True):
    guards = Guards(session)
    position = {name.removeprefix("ns/"): i for i, name in enumerate(session.gangs.names)}
    demand = Demand(session, session.pending_tasks(position[wants]))
    everybody = frozenset(range(len(session.tasks)))
    found = offers(session, guards, position[name], demand, everybody, allow_whole=allow_whole)
    names = [[part.name.removeprefix("ns/").replace(" ns/", " ") for part in offer.parts] for offer in found]
    return names, [offer.worth for offer in found]


def cluster(*gangs, nodes=None, queues=None):
    wants = gang("wants", 1, 4, "q", cpu=0, memory=0, group={"priority": 9})
    return snapshot(nodes or [node("n1", 8)], queues or [queue("q", None)], *gangs, wants)


def job(name, pods, cards, *, on="n1", **more):
    return gang(name, pods, cards, "q", on=[on] * pods, cpu=0, memory=0, **more)


def test_safe_is_what_is_above_the_minimum_and_whole_is_everybody():
    session = opened(cluster(job("x", 3, 1, least=2, policy=NONE)))
    assert offered(session, "x")[0] == [["x x-0"], ["x"]]
    assert offered(session, "x", allow_whole=False)[0] == [["x x-0"]]


def test_a_job_that_its_first_loss_ends_has_nothing_to_spare():
    assert offered(opened(cluster(job("x", 3, 1, least=1))), "x")[0] == [["x"]]
    assert offered(opened(cluster(job("x", 3, 1, least=1)), compat=True), "x")[0] == [["x x-0", "x x-1"], ["x"]]


def test_the_minima_of_roles_are_kept():
    group, pods = job("x", 4, 1, least=2, policy=NONE, group={"min_task_member": {"ps": 1, "worker": 1}})
    pods = [
        msgspec.structs.replace(pod, role=role) for pod, role in zip(pods, ["ps", "ps", "ps", "worker"], strict=True)
    ]
    assert offered(opened(cluster((group, pods))), "x")[0] == [["x x-0", "x x-1"], ["x"]]


def test_a_gang_that_cannot_run_anyway_has_all_to_spare_but_not_under_tide_rules():
    broken = job("x", 2, 1, least=3, policy=NONE)
    assert offered(opened(cluster(broken)), "x")[0] == [["x x-0", "x x-1"]]
    assert offered(opened(cluster(broken), CapacityCard({})), "x")[0] == [["x"]]


def test_worth_is_what_the_demand_can_use_over_what_the_gang_holds():
    nodes = [node("n1", 8), node("n2", 8, A)]
    group, pods = job("x", 2, 2)
    pods[1] = msgspec.structs.replace(pods[1], node="n2", card=msgspec.structs.replace(pods[1].card, names=(A,)))
    session = opened(cluster((group, pods), job("y", 1, 2), job("z", 1, 8), nodes=nodes))
    assert offered(session, "x")[1] == [Fraction(1)]  # Only the named card counts, on both sides.
    assert offered(session, "y")[1] == [Fraction(1)]
    assert offered(session, "z")[1] == [Fraction(1, 2)]


def test_bundles_go_safe_first_then_the_last_in_line_then_the_worthiest():
    session = opened(
        cluster(
            job("elastic", 2, 1, least=1, policy=NONE, group={"priority": 5}),
            job("low", 1, 8, group={"priority": 1}),
            job("same", 1, 2, group={"priority": 3}),
            job("same-wide", 1, 8, group={"priority": 3}),
        )
    )
    guards, names = Guards(session), session.gangs.names
    demand = Demand(session, session.pending_tasks(names.index("ns/wants")))
    everybody = frozenset(range(len(session.tasks)))
    found = [
        offer
        for gang in range(len(names) - 1)
        for offer in offers(session, guards, gang, demand, everybody, allow_whole=True)
    ]
    order = [
        (names[offer.gang].removeprefix("ns/"), offer.whole) for offer in in_order(session, found, 0, across=False)
    ]
    assert order == [("elastic", False), ("low", True), ("same", True), ("same-wide", True), ("elastic", True)]


def test_nobody_is_evicted_where_free_room_is_enough():
    given = snapshot(
        [node("n1", 4), node("n2", 4)],
        [queue("q", None)],
        gang("low", 1, 4, "q", on=["n1"]),
        gang("wants", 1, 4, "q", group={"priority": 9}),
    )
    result = decide(given, policy("enqueue gangpreempt"))
    assert result.evictions == ()


def test_freed_room_stays_with_whom_it_was_freed_for_and_nothing_goes_to_and_fro():
    given = snapshot(
        [node("n1", 4)],
        [queue("i", {H: 4}, priority=9, reclaimable=False), queue("t", {H: 4})],
        gang("low", 2, 2, "t", on=["n1", "n1"]),
        service("wants", 1, 4, "i"),
    )
    world = World(given, policy("enqueue allocate gangreclaim"))
    first = world.step()
    assert (evicted(first), first.reclaims[0].action) == (["low"], "gangreclaim")
    assert [kept.pod for kept in world.memory.reservations] == ["ns/wants-0"]
    assert all(world.step().evictions == () for _ in range(5))
