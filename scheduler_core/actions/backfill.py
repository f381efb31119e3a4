"""Action ``backfill``: tasks that ask for nothing but a place.

Source: volcano-semantics 3.3. The gang is kept whole here as well: nothing is bound unless it is ready. Without this
action they are not placed, except the per-pod cycle, which takes them like any other pod, as kube-scheduler does."""

from typing import ClassVar

import numpy as np

from scheduler_core.actions.allocate import candidates
from scheduler_core.actions.support.placement import place
from scheduler_core.actions.support.rotation import Rotation
from scheduler_core.framework.plugin import Action
from scheduler_core.framework.session import Session


class Backfill(Action):
    name: ClassVar[str] = "backfill"

    def execute(self, session: Session) -> None:
        """Each gang once, in order."""
        if not session.gangs.has_best_effort.any():
            return
        waiting = np.flatnonzero(session.gangs.has_best_effort & candidates(session)).tolist()
        rotation = Rotation(session, [gang for gang in waiting if self._tasks(session, gang)])
        while (queue := rotation.best_queue()) is not None:
            gang = rotation.pop(queue)
            statement = session.statement()
            for task in self._tasks(session, gang):
                place(session, statement, task, future=False)
            if session.is_ready(gang) and not session.short_of_start(gang):
                session.commit(statement)
            else:
                statement.discard()

    def _tasks(self, session: Session, gang: int) -> list[int]:
        return [task for task in session.pending_tasks(gang) if session.cluster.class_of(task).best_effort]
