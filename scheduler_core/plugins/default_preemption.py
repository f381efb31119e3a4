"""Plugin ``default-preemption``: a pod that finds no node takes one from pods of lower priority.

Extension points: post_filter.
On each node all pods of lower priority leave in a dry run; if the pod then passes every filter, they come back one by
one as long as it still does: those that a disruption budget protects first, then by priority, start and name. The node
is chosen by six rules: fewest violated budgets, lowest top priority, lowest sum, fewest victims, latest start of the
top victims, first name.
A pod may ask if its preemptionPolicy allows it and its earlier nomination, if it has one, is lost: the node can no
longer take it at all, or no pod of lower priority is leaving there any more.
Source: document 001, 3.3. On purpose: system pods and pods that say ``volcano.sh/preemptable: "false"`` are no victims,
and the last rule is the first name, not a draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec

from scheduler_core.algorithms.pod_preemption import Victim, importance, node_order, reprieve_order
from scheduler_core.algorithms.protection import system_rule
from scheduler_core.framework.disruption_budgets import DisruptionBudgets
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.pod_points import Nomination
from scheduler_core.state.status import CHARGED, RELEASING

if TYPE_CHECKING:
    from collections.abc import Iterable


class DryRun(Protocol):
    """What the cycle lets this plugin try out, see ``actions.support.dry_run``."""

    def __enter__(self) -> DryRun: ...
    def __exit__(self, *_: object) -> None: ...
    def without(self, tasks: Iterable[int]) -> None:
        """Let exactly these tasks be leaving."""

    def spot(self, node: int) -> object | None:
        """Where the pod would be on the node then."""


class DefaultPreemption(Plugin):
    name: ClassVar[str] = "default-preemption"

    def post_filter(self, task: int, dry_run: DryRun) -> Nomination | None:
        """The node to make room on and who leaves it, or None; O(nodes x pods of lower priority there)."""
        if not self._eligible(task):
            return None
        session = self.session
        lower = self._lower(task)
        best: tuple[tuple[int, int, int, int, float, str], Nomination] | None = None
        with dry_run as dry:
            for node, victims in sorted(lower.items()):
                chosen = self._on_node(dry, node, victims)
                if chosen is None:
                    continue
                key = node_order(session.axes.nodes[node], chosen)
                if best is None or key < best[0]:
                    best = (key, Nomination(node, tuple(victim.task for victim in chosen)))
        return None if best is None else best[1]

    def _eligible(self, task: int) -> bool:
        """Conditions 1 to 4 of the document."""
        session = self.session
        pod = session.tasks.pod(task)
        if pod.preemption_policy == "Never":
            return False
        nominated = next((e.nominated for e in session.memory.queue if e.pod == pod.key), "") or pod.nominated_node
        node = session.axes.node_index.get(nominated, -1)
        if node < 0:
            return True
        view = session.candidates.view(session.cluster.class_of(task))
        if not view.allowed[node]:
            return True
        tasks = session.tasks
        leaving = (tasks.node == node) & (tasks.status == RELEASING) & tasks.live & (tasks.priority < pod.priority)
        return not bool(leaving.any())

    def _lower(self, task: int) -> dict[int, list[Victim]]:
        """Pods of lower priority by node, on the nodes that no filter rules out for good."""
        session, tasks = self.session, self.session.tasks
        view = session.candidates.view(session.cluster.class_of(task))
        open_to = view.allowed | view.curable
        priority = int(tasks.priority[task])
        found = tasks.live & CHARGED[tasks.status] & (tasks.node >= 0) & (tasks.priority < priority) & (tasks.gang >= 0)
        by_node: dict[int, list[Victim]] = {}
        for other in found.nonzero()[0].tolist():
            node = int(tasks.node[other])
            pod = tasks.pod(other)
            if not open_to[node] or tasks.protected[other] or system_rule(pod) is not None:
                continue
            started = pod.created if math.isnan(tasks.started[other]) else float(tasks.started[other])
            by_node.setdefault(node, []).append(Victim(other, pod.key, int(tasks.priority[other]), started, False))
        return {node: self._budgeted(victims) for node, victims in by_node.items()}

    def _budgeted(self, victims: list[Victim]) -> list[Victim]:
        """Mark those whose leaving a disruption budget forbids."""
        order = [victim.task for victim in sorted(victims, key=importance)]
        refused = DisruptionBudgets(self.session).violations(order)
        return [msgspec.structs.replace(victim, violates=victim.task in refused) for victim in victims]

    def _on_node(self, dry: DryRun, node: int, victims: Sequence[Victim]) -> list[Victim] | None:
        """The victims that are needed on one node, or None where even all of them are not enough."""
        leaving = list(victims)
        dry.without(victim.task for victim in leaving)
        if dry.spot(node) is None:
            return None
        for victim in reprieve_order(victims):
            fewer = [other for other in leaving if other.task != victim.task]
            dry.without(other.task for other in fewer)
            if dry.spot(node) is not None:
                leaving = fewer
        return leaving
