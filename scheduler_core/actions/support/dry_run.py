"""What would fit on a node if a pod left it: tried out in a statement that is always taken back."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_core.actions.support.placement import allowed_options
from scheduler_core.framework.candidates import Spot
from scheduler_core.framework.session import Session
from scheduler_core.framework.statement import Statement
from scheduler_core.state.status import CHARGED


class DryRun:
    """Tasks are taken away and put back; :meth:`spot` runs quota, filters and single cards anew each time. Use it as a
    context: at the end everything is as it was."""

    def __init__(self, session: Session, task: int) -> None:
        self._session, self._task = session, task
        self._statement: Statement | None = None
        self._gone: dict[int, None] = {}

    def __enter__(self) -> DryRun:
        self._statement = self._session.statement()
        self._gone = {}
        return self

    def __exit__(self, *_: object) -> None:
        assert self._statement is not None
        self._statement.discard()
        self._statement = None

    def without(self, tasks: Iterable[int]) -> None:
        """Let exactly these tasks be leaving, in the order of their names."""
        assert self._statement is not None
        self._statement.rollback(0)
        keys = self._session.tasks.keys
        for task in sorted(tasks, key=keys.__getitem__):
            if CHARGED[self._session.tasks.status[task]]:
                self._statement.evict(task)

    def spot(self, node: int) -> Spot | None:
        """Where the task would be on the node once they have left, or None."""
        session = self._session
        cls = session.cluster.class_of(self._task)
        options, _ = allowed_options(session, session.queue_of(int(session.tasks.gang[self._task])), cls)
        if not any(options) or not session.candidates.allows(self._task, node):
            return None
        return session.candidates.spot_on(cls, node, options, now=False)
