"""Who is in which gang and what that comes to, kept between snapshots and counted anew for gangs that changed.
Everything here is by number of the gang (see :class:`scheduler_core.state.gang_rows.GangRows`); what a session is given
is arranged by position."""

from __future__ import annotations

import numpy as np

from scheduler_core.algorithms.member_sums import Asked, count_members, lay_out, queue_sums, sum_use
from scheduler_core.state.axes import LEDGER_CARDS
from scheduler_core.state.status import CHARGED, FAILED, SUCCEEDED, Bools, Index, Ints, TaskStatus
from scheduler_core.state.task_class import ClassTable
from scheduler_core.state.task_table import TaskTable

_ENDED: Bools = np.isin(np.arange(len(TaskStatus)), (SUCCEEDED, FAILED))


class MemberRows:
    """Members and sums by gang.

    Attributes:
        counts: int64 (statuses, numbers), members by status. totals: int64 (statuses,), sums of these.
        held: int64 (numbers, card types), milli-cards that members hold, or ask for at their first choice.
        idle: bool (numbers,), some member asks for nothing but a place.
        start, member: int64 by position, as :class:`scheduler_core.state.gang_table.GangTable` has them."""

    def __init__(self, types: int) -> None:
        self.counts: Ints = np.zeros((len(TaskStatus), 0), dtype=np.int64)
        self.totals: Ints = np.zeros(len(TaskStatus), dtype=np.int64)
        self.held: Ints = np.zeros((0, max(1, types)), dtype=np.int64)
        self.idle: Bools = np.zeros(0, dtype=np.bool_)
        self.start: Ints = np.zeros(1, dtype=np.int64)
        self.member: Ints = np.zeros(0, dtype=np.int64)
        # The places of each number's members in ``_slots``, of which ``member`` is the part with positions.
        self._slots: Ints = self.member
        self._first: Ints = np.zeros(0, dtype=np.int64)
        self._size: Ints = np.zeros(0, dtype=np.int64)
        # What each gang takes of a quota, for these charges; gangs that have to be summed again.
        self._use: Ints = np.zeros((0, LEDGER_CARDS + types), dtype=np.int64)
        self._charge: Ints = np.zeros((3, 0), dtype=np.int64)
        self._unsummed: Bools = np.zeros(0, dtype=np.bool_)
        self._shared = False

    def fork(self) -> MemberRows:
        """The same rows, independent; they are copied once one of the two changes."""
        other = object.__new__(MemberRows)
        self._shared = True
        other.__dict__.update(self.__dict__)
        return other

    def change(self, members: dict[int, list[int]], numbers: Ints, size: int) -> None:
        """Gangs have these members now, in this order. O(members), as one copy of them. ``members``: task slots in
        their order, by number. ``numbers``: int64 (G,), number by position. ``size``: how many numbers there are."""
        self._make_room(size)
        changed = np.fromiter(members.keys(), dtype=np.int64, count=len(members))
        sizes = np.fromiter(map(len, members.values()), dtype=np.int64, count=len(members))
        fresh = np.array([slot for slots in members.values() for slot in slots], dtype=np.int64)
        self.start, self._slots = lay_out(changed, sizes, fresh, numbers, self._slots, self._first, self._size)
        self.member = self._slots[: self.start[-1]]

    def count(self, numbers: Ints, tasks: TaskTable, classes: ClassTable) -> None:
        """Count gangs (by number) again whose members, or what these hold, have changed."""
        if not numbers.size:
            return
        self._own()
        columns = classes.columns
        asked = Asked(columns.first_card, columns.milli, columns.best_effort)
        count_members(
            numbers, self._first, self._size, self._slots, tasks.status, tasks.cls, tasks.card, _ENDED, asked,
            self.counts, self.held, self.idle, self.totals,
        )  # fmt: skip
        self._unsummed[numbers] = True

    def use(self, charge: Ints, tasks: TaskTable, numbers: Ints, queue: Index, queues: int) -> Ints:
        """int64 (D, queues): what bound and running members take of their queues. O(gangs). ``charge``: int64 (3,
        classes), cpu, memory and milli-cards that a task counts. ``numbers``: int64 (G,). ``queue``: int32 (G,), -1 =
        none."""
        known = self._charge.shape[1]
        if known > charge.shape[1] or not np.array_equal(self._charge, charge[:, :known]):
            self._own()
            self._unsummed[:] = True
        stale = np.flatnonzero(self._unsummed)
        if stale.size:
            self._own()
            sum_use(
                stale, self._first, self._size, self._slots, CHARGED, tasks.status, tasks.cls, tasks.card, charge,
                self._use,
            )  # fmt: skip
            self._unsummed[:] = False
        self._charge = charge.copy()
        return queue_sums(self._use, numbers, queue, queues)

    def _make_room(self, size: int) -> None:
        more = size - len(self._first)
        if more <= 0:
            self._own()
            return
        more += size
        self.counts = np.concatenate([self.counts, np.zeros((len(self.counts), more), dtype=np.int64)], axis=1)
        self.held = np.concatenate([self.held, np.zeros((more, self.held.shape[1]), dtype=np.int64)])
        self.idle = np.concatenate([self.idle, np.zeros(more, dtype=np.bool_)])
        self._use = np.concatenate([self._use, np.zeros((more, self._use.shape[1]), dtype=np.int64)])
        self._unsummed = np.concatenate([self._unsummed, np.zeros(more, dtype=np.bool_)])
        self._first = np.concatenate([self._first, np.zeros(more, dtype=np.int64)])
        self._size = np.concatenate([self._size, np.zeros(more, dtype=np.int64)])
        self.totals, self._shared = self.totals.copy(), False

    def _own(self) -> None:
        if self._shared:
            self._shared = False
            self.counts, self.held, self.idle = self.counts.copy(), self.held.copy(), self.idle.copy()
            self.totals = self.totals.copy()
            self._use, self._unsummed = self._use.copy(), self._unsummed.copy()
            self._first, self._size = self._first.copy(), self._size.copy()
