"""A score by use is asked for all nodes once a class, then for nodes that have changed."""

from __future__ import annotations

import msgspec

from scheduler_core import PluginOption
from scheduler_core.framework.plugin import Plugin
from scheduler_core.plugins import PLUGINS
from scheduler_core.state.axes import CPU
from tests.core.small_cluster import H, decide, gang, node, policy, queue, snapshot

NODES, KINDS, GANGS, MEMBERS = 150, 3, 30, 8


class Fullest(Plugin):
    """The node with the least cpu left, by its name; counts for how many nodes it is asked."""

    name = "fullest"
    asked: list[int]

    def node_order(self, cls, where):
        left = self.session.nodes.future[CPU, where]
        self.asked.append(len(left))
        return -left.astype(float)


def test_no_task_has_all_nodes_scored(monkeypatch):
    monkeypatch.setattr(Fullest, "asked", [], raising=False)
    monkeypatch.setitem(PLUGINS, "fullest", Fullest)
    monkeypatch.setattr("scheduler_core.scheduler._tables", None)
    rules = policy("enqueue allocate", nodeorder={"leastrequested.weight": 0, "balancedresource.weight": 0})
    rules = msgspec.structs.replace(rules, tiers=(*rules.tiers, (PluginOption(name="fullest"),)))
    nodes = [node(f"n{number:03}") for number in range(NODES)]
    gangs = [gang(f"g{number:02}", MEMBERS, 1, "all", cpu=1000 + number % KINDS) for number in range(GANGS)]
    result = decide(snapshot(nodes, [queue("all", {H: 8 * NODES})], *gangs), rules)
    assert len({bind.node for bind in result.binds}) == GANGS * MEMBERS // 8
    assert sum(count > NODES // 2 for count in Fullest.asked) == KINDS
    assert sum(Fullest.asked) <= KINDS * (NODES + GANGS * MEMBERS)
