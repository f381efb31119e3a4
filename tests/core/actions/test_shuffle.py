"""shuffle: what plugins name goes, whole gangs where tide rules or the job's policy say so, none that is protected."""

from __future__ import annotations

import msgspec

from scheduler_core.actions.shuffle import Shuffle
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.session import Session
from scheduler_core.model.memory import Memory
from scheduler_core.model.podgroup import EvictedPolicy
from scheduler_core.plugins.capacity_card import CapacityCard
from scheduler_core.state import invariants
from scheduler_core.state.workspace import Workspace
from tests.core.small_cluster import gang, node, policy, queue, snapshot


def asks(*pods, why="out of its window"):
    """A plugin that wants these pods gone."""

    class Asks(Plugin):
        name = "asks"

        def victim_tasks(self, candidates):
            keys = self.session.tasks.keys
            return {task: why for task in candidates if keys[task].removeprefix("ns/") in pods}

    return Asks({})


def shuffled(given, *plugins, compat=False, tide=False):
    rules = msgspec.structs.replace(policy("shuffle"), compatibility="volcano" if compat else "")
    tiers = [[(plugin, {})] for plugin in plugins]
    if tide:
        tiers.append([(CapacityCard({}), {})])
    session = Session(given, rules, tiers, now=100.0, seed=0, memory=Memory(), workspace=Workspace())
    Shuffle({}).execute(session)
    invariants.check(session.cluster, "shuffle")
    return session


def gone(session):
    return {eviction.pod.removeprefix("ns/"): eviction.role.value for eviction in session.trace.evictions}


def cluster(*gangs):
    return snapshot([node("n1", 8)], [queue("q", None)], *gangs)


def job(name, pods=2, **more):
    return gang(name, pods, 1, "q", on=["n1"] * pods, **more)


def test_the_named_tasks_go_alone_where_that_harms_nobody_else():
    session = shuffled(cluster(job("x", policy=EvictedPolicy.NONE)), asks("x-0"))
    assert gone(session) == {"x-0": "victim"}


def test_a_gang_whose_policy_ends_it_goes_whole():
    session = shuffled(cluster(job("x"), job("y")), asks("x-0"))
    assert gone(session) == {"x-0": "victim", "x-1": "sibling"}


def test_a_gang_goes_whole_under_tide_rules():
    session = shuffled(cluster(job("x", policy=EvictedPolicy.NONE)), asks("x-1"), tide=True)
    assert gone(session) == {"x-0": "sibling", "x-1": "victim"}


def test_its_surplus_goes_alone_under_tide_rules_too():
    session = shuffled(cluster(job("x", 3, least=1, policy=EvictedPolicy.NONE)), asks("x-1", "x-2"), tide=True)
    assert gone(session) == {"x-1": "victim", "x-2": "victim"}
    session = shuffled(cluster(job("x", 3, least=2, policy=EvictedPolicy.NONE)), asks("x-1", "x-2"), tide=True)
    assert gone(session) == {"x-0": "sibling", "x-1": "victim", "x-2": "victim"}


def test_protected_ones_stay():
    held = job("group", group={"preemptable": False})
    pods = job("pod", preemptable=False)
    system = job("system", priority_class="system-node-critical")
    mixed = job("mixed")
    mixed = (mixed[0], [msgspec.structs.replace(mixed[1][0], preemptable=False), mixed[1][1]])
    session = shuffled(cluster(held, pods, system, mixed), asks("group-0", "pod-0", "system-0", "mixed-1"))
    assert gone(session) == {}


def test_with_compatibility_exactly_the_named_ones_go():
    given = cluster(job("x"), job("critical", priority_class="system-node-critical"), job("pod", preemptable=False))
    session = shuffled(given, asks("x-0", "critical-0", "pod-0"), compat=True, tide=True)
    assert gone(session) == {"critical-0": "victim", "x-0": "victim"}


def test_the_first_tier_that_names_anybody_decides():
    session = shuffled(cluster(job("x"), job("y")), asks(), asks("y-0"), asks("x-0"))
    assert sorted(gone(session)) == ["y-0", "y-1"]


def test_each_gang_has_its_record():
    session = shuffled(cluster(job("x"), job("y")), asks("x-0", "y-1"))
    records = session.trace.reclaims
    assert [(r.action, r.reclaimer, [v.gang for v in r.victims]) for r in records] == [
        ("shuffle", "", ["ns/x"]),
        ("shuffle", "", ["ns/y"]),
    ]
    assert records[0].freed.cards == {"NVIDIA-H200": 2000}
    assert records[0].rule == "plugin asks sends it away: out of its window"
    assert session.trace.evictions[0].reason == "plugin asks: out of its window"


def test_nobody_asked_nobody_goes():
    assert gone(shuffled(cluster(job("x")))) == {}
