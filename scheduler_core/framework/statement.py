"""A transaction over the session's tables: operations take effect at once and can be taken back exactly. Each operation
keeps where its task was, so that undo restores the very same integers. Source: volcano-semantics 2.6, with its defects
left out (undo of an eviction restores Bound as well as Running)."""

from collections.abc import Sequence

import msgspec

from scheduler_core.state.cluster import Cluster, Place
from scheduler_core.state.status import CHARGED, TaskStatus


class Operation(msgspec.Struct, frozen=True, gc=False):
    """One change: the task, where it was and where it went."""

    task: int
    before: Place
    after: Place


class Statement:
    """Evict, pipeline and allocate until :meth:`commit` or :meth:`discard`. Raises ValueError: an operation that its
    task's status does not allow (a bug in the caller)."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.operations: list[Operation] = []
        self.open = True

    def evict(self, task: int) -> None:
        """Bound, running or allocated task starts to leave; its room counts as releasing."""
        before = self._cluster.place_of(task)
        if not CHARGED[before.status]:
            raise ValueError(f"cannot evict a task that is {before.status.name}")
        self._do(task, Place(TaskStatus.RELEASING, before.node, before.card, before.indices))

    def pipeline(self, task: int, node: int, card: int = -1, indices: tuple[int, ...] = ()) -> None:
        """Promise room on ``node`` that is free or leaving."""
        self._expect(task, TaskStatus.PENDING)
        self._do(task, Place(TaskStatus.PIPELINED, node, card, indices))

    def unpipeline(self, task: int) -> None:
        """Take a promise back, to place the task anew."""
        self._expect(task, TaskStatus.PIPELINED)
        self._do(task, Place(TaskStatus.PENDING))

    def allocate(self, task: int, node: int, card: int = -1, indices: tuple[int, ...] = ()) -> None:
        """Give the task room that is free now; it is bound when the session ends."""
        self._expect(task, TaskStatus.PENDING)
        self._do(task, Place(TaskStatus.ALLOCATED, node, card, indices))

    def hold(self, task: int) -> None:
        """Turn an allocation of this session into a promise of the same place: its gang cannot start yet."""
        self._expect(task, TaskStatus.ALLOCATED)
        before = self._cluster.place_of(task)
        self._do(task, Place(TaskStatus.PIPELINED, before.node, before.card, before.indices))

    def checkpoint(self) -> int:
        return len(self.operations)

    def rollback(self, checkpoint: int) -> None:
        """Undo everything since ``checkpoint``, the last operation first."""
        while len(self.operations) > checkpoint:
            operation = self.operations.pop()
            self._cluster.move(operation.task, operation.before)

    def repeat(self, operations: Sequence[Operation]) -> None:
        """Do operations again that were rolled back."""
        for operation in operations:
            self._do(operation.task, operation.after)

    def discard(self) -> None:
        self.rollback(0)
        self.open = False

    def commit(self) -> tuple[Operation, ...]:
        """Keep everything and close; returns the operations in order."""
        self.open = False
        return tuple(self.operations)

    def _expect(self, task: int, wanted: TaskStatus) -> None:
        status = TaskStatus(int(self._cluster.tasks.status[task]))
        if status is not wanted:
            raise ValueError(f"task is {status.name}, expected {wanted.name}")

    def _do(self, task: int, after: Place) -> None:
        if not self.open:
            raise ValueError("the statement is closed")
        before = self._cluster.move(task, after)
        self.operations.append(Operation(task, before, after))
