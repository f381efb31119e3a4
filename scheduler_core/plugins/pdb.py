"""Plugin ``pdb``: no pod is taken that a PodDisruptionBudget protects.

Extension points: preemptable, reclaimable, unified_evictable; with ``compatibility: volcano`` victim_tasks too.
The candidates are gone through in their order, and each that goes uses up one disruption of every budget that covers
it; what this session has evicted before counts. Without a status a budget is counted out from its spec.
Source: volcano-semantics 4.12 and pitfall 20: eviction deletes pods, so the API server does not look at budgets.
On purpose different from upstream (``compatibility: volcano`` decides as it does): budgets hold in reclaim, preempt and
their gang forms without this plugin too, for candidates that all others let go; a pod without labels is protected by
no budget and may go, upstream never lets it; the plugin names no pod for the action shuffle, upstream names every pod
that no budget protects, so that shuffle beside pdb empties the cluster."""

from collections.abc import Sequence
from typing import ClassVar

from scheduler_core.framework.combine import Opinion
from scheduler_core.framework.disruption_budgets import DisruptionBudgets
from scheduler_core.framework.plugin import Plugin
from scheduler_core.framework.session import Session
from scheduler_core.model.rules import Rule


class Pdb(Plugin):
    name: ClassVar[str] = "pdb"

    def open(self, session: Session) -> None:
        super().open(session)
        self._budgets = DisruptionBudgets(session)

    def preemptable(self, evictor: int, candidates: Sequence[int]) -> Opinion:
        """Candidates in their order, as long as every budget that covers them lasts."""
        refused = self._refused(candidates)
        return Opinion(frozenset(task for task in candidates if task not in refused), refused)

    reclaimable = preemptable

    def unified_evictable(self, evictor: int, candidates: Sequence[int]) -> Opinion:
        """The same; upstream's plugin has no say here."""
        return Opinion(None) if self.session.compat else self.preemptable(evictor, candidates)

    def victim_tasks(self, candidates: Sequence[int]) -> dict[int, str]:
        """None; upstream names all that no budget protects."""
        if not self.session.compat:
            return {}
        refused = self._refused(candidates)
        return {task: Rule.NO_BUDGET.text() for task in candidates if task not in refused}

    def _refused(self, candidates: Sequence[int]) -> dict[int, str]:
        tasks = self.session.tasks
        if not self.session.compat:
            return self._budgets.violations(candidates)
        bare = {task: "has no labels" for task in candidates if not tasks.pod(task).labels}
        return bare | self._budgets.violations(task for task in candidates if task not in bare)
