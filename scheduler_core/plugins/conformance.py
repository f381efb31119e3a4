"""Plugin ``conformance``: what the cluster itself needs is never a victim.

Extension points: preemptable, reclaimable, unified_evictable.
Source: volcano-semantics 4.3. The same rule also holds without this plugin (contracts 3.2); here it takes part in
the vote, so that it is seen in the votes of a reclaim."""

from collections.abc import Sequence
from typing import ClassVar

from scheduler_core.algorithms.protection import system_rule
from scheduler_core.framework.combine import Opinion
from scheduler_core.framework.gang_votes import GangOpinion
from scheduler_core.framework.plugin import Plugin
from scheduler_core.state.status import Bools


class Conformance(Plugin):
    name: ClassVar[str] = "conformance"
    guards: ClassVar[frozenset[str]] = frozenset({"preemptable", "reclaimable", "unified_evictable"})

    def reclaimable(self, reclaimer: int, candidates: Sequence[int]) -> Opinion:
        """All candidates but system pods."""
        rules = {task: system_rule(self.session.tasks.pod(task)) for task in candidates}
        refused = {task: rule for task, rule in rules.items() if rule is not None}
        return Opinion(frozenset(task for task, rule in rules.items() if rule is None), refused)

    def reclaimable_gangs(self, reclaimer: int, candidates: Bools) -> GangOpinion:
        """All candidates: a gang with system pods is never a candidate, and of a gang all of it is."""
        return GangOpinion(candidates)

    preemptable = reclaimable
    unified_evictable = reclaimable
