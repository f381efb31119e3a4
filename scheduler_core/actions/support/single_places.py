"""Places of single tasks for the per-pod cycle, by the compiled code of the turns."""

import numpy as np

from scheduler_core.actions.support.policy_forms import policy_forms
from scheduler_core.actions.support.turns import CompiledTurns
from scheduler_core.framework.kernels.held import PLACE, PROMISE, TAKE_BACK, go_on
from scheduler_core.framework.session import Session
from scheduler_core.state.status import PENDING, PIPELINED, Bools, Floats, Index
from scheduler_core.state.task_class import TaskClass


class SinglePlaces(CompiledTurns):
    """Gives tasks that wait places at once, and takes them back, with promises that they had before."""

    def __init__(self, session: Session) -> None:
        tasks, gangs = session.tasks, session.gangs
        due = tasks.live & (tasks.gang >= 0) & ((tasks.status == PENDING) | (tasks.status == PIPELINED))
        slots: Index = np.flatnonzero(due).astype(np.int32)
        slots = slots[gangs.queue[tasks.gang[slots]] >= 0]
        super().__init__(session, policy_forms(session), np.zeros(len(gangs), dtype=np.bool_), slots)
        self._grip()

    def best(self, task: int) -> bool:
        """Allocate on the best node where the task fits at once; False where there is none."""
        return self._do(PLACE, task)

    def on(self, task: int, node: int, card: int = -1) -> bool:
        """The same on one node and, where it is given, on cards of one type."""
        return self._do(PLACE, task, node, card)

    def give_back(self, task: int, *, promise: bool = False) -> None:
        """Take back a place or a promise; or turn a place into a promise."""
        self._do(PROMISE if promise else TAKE_BACK, task)

    def _do(self, act: int, task: int, node: int = -1, card: int = -1) -> bool:
        if len(self._session.nodes.log) != self._seen:
            self._hear()
        self._act[:] = act, task, node, card
        while (answer := go_on(self._held)) < 0:
            self._answers()[answer]()
        self._tell()
        return answer == 1

    def _looked_at(self, cls: TaskClass, options: list[bool], task: int) -> tuple[Bools | None, Floats | None]:
        """Every node is looked at, in a large cluster too."""
        return self._session.candidates.of_task(task)
