"""Gangs as columns, and who is in them."""

from __future__ import annotations

import numpy as np

from scheduler_core.model.podgroup import PodGroup
from scheduler_core.state.status import READY, SCHEDULED, VALID, Index, Ints, TaskStatus
from scheduler_core.state.task_table import TaskTable


class GangTable:
    """One row a PodGroup, in the order of their names.

    Attributes:
        groups: the PodGroups. names: namespace/name.
        queue: int32 (G,), position in the ledger, -1 = the queue does not exist.
        counts: int64 (statuses, G), members by status.
        min_member: int64 (G,).
    """

    def __init__(
        self, groups: tuple[PodGroup, ...], names: list[str], queue: Index, min_member: Ints, tasks: TaskTable
    ) -> None:
        self.groups, self.names, self.queue, self.min_member = groups, names, queue, min_member
        self._tasks = tasks
        size, statuses = len(groups), len(TaskStatus)
        member = np.flatnonzero(tasks.live & (tasks.gang >= 0))
        gang = tasks.gang[member].astype(np.int64)
        order = np.argsort(gang, kind="stable")
        self._members = member[order]
        self._offsets = np.searchsorted(gang[order], np.arange(size + 1)).tolist()
        flat = np.bincount(tasks.status[member].astype(np.int64) * size + gang, minlength=statuses * size)
        self.counts: Ints = flat[: statuses * size].reshape(statuses, size).astype(np.int64)

    def __len__(self) -> int:
        return len(self.groups)

    def members(self, gang: int) -> list[int]:
        """Slots of all its pods, in no particular order."""
        found: list[int] = self._members[self._offsets[gang] : self._offsets[gang + 1]].tolist()
        return found

    def with_status(self, gang: int, *statuses: TaskStatus) -> list[int]:
        """Its members in one of the statuses, by name."""
        wanted = {int(status) for status in statuses}
        status, keys = self._tasks.status, self._tasks.keys
        return sorted((t for t in self.members(gang) if int(status[t]) in wanted), key=keys.__getitem__)

    def count(self, gang: int, status: TaskStatus) -> int:
        """Members in one status."""
        return int(self.counts[status, gang])

    def ready(self, gang: int) -> int:
        """R: bound, running, allocated or succeeded members (semantics 2.2)."""
        return int(self.counts[READY, gang].sum())

    def waiting(self, gang: int) -> int:
        """W: members that are promised room that is still leaving."""
        return int(self.counts[TaskStatus.PIPELINED, gang])

    def valid(self, gang: int) -> int:
        """Members that are in place or still wanted."""
        return int(self.counts[VALID, gang].sum())

    def scheduled(self, gang: int) -> int:
        """Members with a node or finished, as the phase counts them."""
        return int(self.counts[SCHEDULED, gang].sum())

    def total(self, gang: int) -> int:
        """N: all members."""
        total: int = self._offsets[gang + 1] - self._offsets[gang]
        return total
