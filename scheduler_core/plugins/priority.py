"""Plugin ``priority``: higher priority first, among tasks and among gangs.

Extension points: task_order, job_order, job_starving, preemptable, unified_evictable.
Source: volcano-semantics 4.2."""

from collections.abc import Sequence
from typing import ClassVar

from scheduler_core.framework.combine import Opinion
from scheduler_core.framework.forms import Form, StaticKey
from scheduler_core.framework.plugin import Plugin
from scheduler_core.model.rules import Rule


class Priority(Plugin):
    name: ClassVar[str] = "priority"

    def task_order(self, task: int) -> tuple[int]:
        return (-int(self.session.tasks.priority[task]),)

    def job_order(self, gang: int) -> tuple[int]:
        return (-self.session.group(gang).priority,)

    def compiled_form(self, point: str) -> Sequence[Form] | None:
        """Priorities do not change in a session."""
        if point == "task_order":
            return [StaticKey(-self.session.tasks.priority)]
        if point == "job_order":
            return [StaticKey(-self.session.cluster.workspace.facts.priority)]
        return None

    def job_starving(self, gang: int) -> bool:
        """A gang starves until all its replicas have a place, not only minMember (pitfall 2)."""
        return self.session.gangs.pending(gang) > 0

    def unified_evictable(self, taker: int, candidates: Sequence[int]) -> Opinion:
        """Strictly lower gangs of the taker's own queue, all candidates of other queues."""
        session = self.session
        own = int(session.tasks.gang[taker])
        queue, priority = session.queue_of(own), session.group(own).priority
        allowed, refused = [], {}
        for task in candidates:
            gang = int(session.tasks.gang[task])
            if session.queue_of(gang) != queue or session.group(gang).priority < priority:
                allowed.append(task)
            else:
                refused[task] = Rule.PRIORITY.text()
        return Opinion(frozenset(allowed), refused)

    def preemptable(self, preemptor: int, candidates: Sequence[int]) -> Opinion:
        """Strictly lower priority: of the gang for another gang's tasks, of the task inside the same gang."""
        session = self.session
        own = int(session.tasks.gang[preemptor])
        allowed, refused = [], {}
        for task in candidates:
            gang = int(session.tasks.gang[task])
            if gang == own:
                lower = session.tasks.priority[task] < session.tasks.priority[preemptor]
            else:
                lower = session.group(gang).priority < session.group(own).priority
            if lower:
                allowed.append(task)
            else:
                refused[task] = Rule.PRIORITY.text()
        return Opinion(frozenset(allowed), refused)
