"""Which node a task preempts on, by the rules of preempt's topology-aware mode.

On each candidate node all that may go leaves in a dry run, and comes back from the highest priority down as long as the
task still fits; the node is the one with the lowest top priority, then the lowest sum, the fewest victims, the latest
start of its top victims, the first name. Source: volcano-semantics 3.4."""

import math
from collections.abc import Sequence

import msgspec

from scheduler_core.actions.support.placement import allowed_options
from scheduler_core.algorithms.pod_preemption import Victim, node_order
from scheduler_core.algorithms.smallest_set import everything
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.candidates import Spot
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement


class Limits(msgspec.Struct, frozen=True, gc=False):
    """How many nodes are tried: a percentage of all, at least and at most so many."""

    percentage: int
    least: int
    most: int

    def of(self, nodes: int) -> int:
        """Number of candidates among so many nodes."""
        return min(nodes, max(self.least, min(self.most, nodes * self.percentage // 100)))


class NodeChoice(msgspec.Struct, frozen=True, gc=False):
    spot: Spot
    leaving: tuple[Unit, ...]


def choose_node(
    session: Session, statement: Statement, task: int, units: Sequence[Unit], limits: Limits | None
) -> NodeChoice | None:
    """The best node for one task, given the bundles that may go; the statement is left as it was. ``limits``: None =
    all nodes are candidates. O(nodes x bundles there)."""
    by_node: dict[int, list[Unit]] = {}
    for unit in everything(units):
        for node in sorted({int(session.tasks.node[member]) for member in unit.members}):
            by_node.setdefault(node, []).append(unit)
    curable = session.candidates.view(session.cluster.class_of(task)).curable
    nodes = [node for node in sorted(by_node) if node >= 0 and curable[node]]
    if limits is not None:
        nodes = nodes[: limits.of(len(session.nodes))]
    best: tuple[tuple[object, ...], NodeChoice] | None = None
    for node in nodes:
        found = _on_node(session, statement, task, node, by_node[node])
        if found is None:
            continue
        victims = [_victim(session, member) for unit in found.leaving for member in unit.members]
        key = node_order(session.axes.nodes[node], victims)
        if best is None or key < best[0]:
            best = key, found
    return None if best is None else best[1]


def _on_node(session: Session, statement: Statement, task: int, node: int, units: Sequence[Unit]) -> NodeChoice | None:
    """The bundles that are needed on one node, or None where even all of them are not enough."""

    def spot(leaving: Sequence[Unit]) -> Spot | None:
        if any(sum(other.gang == unit.gang for other in leaving) > unit.spare for unit in leaving if unit.spare):
            return None
        point = statement.checkpoint()
        for member in sorted((m for unit in leaving for m in unit.members), key=session.tasks.keys.__getitem__):
            statement.evict(member)
        found = spot_on(session, task, node)
        statement.rollback(point)
        return found

    # Of a gang that can spare only some, the least important stay on offer.
    kept: list[Unit] = []
    for unit in sorted(units, key=lambda unit: _importance(session, unit), reverse=True):
        if not unit.spare or sum(other.gang == unit.gang for other in kept) < unit.spare:
            kept.append(unit)
    if spot(kept) is None:
        return None
    for unit in sorted(kept, key=lambda unit: _importance(session, unit)):
        fewer = [other for other in kept if other is not unit]
        if spot(fewer) is not None:
            kept = fewer
    found = spot(kept)
    assert found is not None, "it fitted with the very same bundles"
    return NodeChoice(found, tuple(kept))


def spot_on(session: Session, task: int, node: int) -> Spot | None:
    """Where the task would be on the node now, queue and filters asked."""
    cls = session.cluster.class_of(task)
    options, _ = allowed_options(session, session.queue_of(int(session.tasks.gang[task])), cls, task=task)
    if not any(options) or not session.candidates.allows(task, node):
        return None
    return session.candidates.spot_on(cls, node, options, now=False)


def _victim(session: Session, task: int) -> Victim:
    started = float(session.tasks.started[task])
    if math.isnan(started):
        started = session.tasks.pod(task).created
    return Victim(task, session.tasks.keys[task], int(session.tasks.priority[task]), started, False)


def _importance(session: Session, unit: Unit) -> tuple[int, float, str]:
    """The more important first: higher priority, then earlier start."""
    victims = [_victim(session, member) for member in unit.members]
    return -max(victim.priority for victim in victims), min(victim.started for victim in victims), unit.name
