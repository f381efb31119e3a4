"""What the PodDisruptionBudgets of a snapshot still allow in this session."""

import weakref
from collections.abc import Iterable

from scheduler_core.algorithms.allowance import allowance
from scheduler_core.framework.session import Session
from scheduler_core.model.rules import Rule
from scheduler_core.state.status import CHARGED, RELEASING, Bools


class DisruptionBudgets:
    """The budgets by namespace; what this session evicts counts against them, cumulatively."""

    def __init__(self, session: Session) -> None:
        # A session that is over goes at once, also where its hooks keep the budgets.
        self._session: Session = session if isinstance(session, weakref.ProxyType) else weakref.proxy(session)
        self._of_namespace: dict[str, list[int]] = {}
        self._budgets = session.snapshot.disruption_budgets
        for i, budget in enumerate(self._budgets):
            self._of_namespace.setdefault(budget.namespace, []).append(i)
        self._covering: dict[int, tuple[int, ...]] = {}
        self._allowed = [allowance(budget, session.snapshot.pods) for budget in self._budgets]

    def violations(self, tasks: Iterable[int]) -> dict[int, str]:
        """Those of the tasks that may not leave if the others before them do, each with the budget that says so. A task
        that is refused uses nothing up. O(tasks x budgets of their namespace) the first time."""
        if not self._budgets:
            return {}
        left = self._left()
        refused: dict[int, str] = {}
        for task in tasks:
            covering = self._of_task(task)
            short = next((i for i in covering if left[i] <= 0), None)
            if short is not None:
                refused[task] = Rule.BUDGET.text(name=self._budgets[short].name)
                continue
            for i in covering:
                left[i] -= 1
        return refused

    def cover_any(self, gangs: Bools) -> bool:
        """Whether a budget covers a member in place of one of the gangs, bool (G,)."""
        session = self._session
        members = (task for gang in gangs.nonzero()[0].tolist() for task in session.gangs.members(gang))
        return any(CHARGED[session.tasks.status[task]] and self._of_task(task) for task in members)

    def _left(self) -> list[int]:
        """Allowances, less what this session has evicted so far."""
        left, tasks = list(self._allowed), self._session.tasks
        for task in (tasks.live & (tasks.status == RELEASING)).nonzero()[0].tolist():
            if tasks.pod(task).deleted is None:
                for i in self._of_task(task):
                    left[i] -= 1
        return left

    def _of_task(self, task: int) -> tuple[int, ...]:
        known = self._covering.get(task)
        if known is None:
            pod = self._session.tasks.pod(task)
            here = self._of_namespace.get(pod.namespace, ())
            known = tuple(i for i in here if self._budgets[i].counts_eviction_of(pod))
            self._covering[task] = known
        return known
