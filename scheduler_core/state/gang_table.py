"""Gangs as columns, and who is in them."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from scheduler_core.model.podgroup import PodGroup
from scheduler_core.state.gang_rows import GangRows
from scheduler_core.state.member_rows import MemberRows
from scheduler_core.state.status import (
    GATED,
    PENDING,
    PIPELINED,
    READY,
    RELEASING,
    SCHEDULED,
    VALID,
    Bools,
    Index,
    Ints,
)
from scheduler_core.state.task_table import TaskTable

_READY: list[bool] = READY.tolist()
_SCHEDULED: list[bool] = SCHEDULED.tolist()
_VALID: list[bool] = VALID.tolist()


class GangTable:
    """One row a PodGroup, in the order of their names.

    Attributes:
        groups: the PodGroups. names: namespace/name. lasting: the name that one made anew would have too.
        numbers: int64 (G,), what the workspace calls the gang in every session. name_rank: int64 (G,), place by name.
        queue: int32 (G,), position in the ledger, -1 = the queue does not exist. min_member: int64 (G,).
        queue_list, least: ``queue`` and ``min_member`` once more as lists, for look-ups of one gang.
        counts: int64 (statuses, G), members by status.
        ready_count, scheduled_count, valid_count: int64 (G,), sums of ``counts`` over the statuses of those names.
        versions: int64 (G,), how often its members have changed; what was summed over them holds while it stays.
        has_best_effort: bool (G,), whether a member asks for nothing but a place.
        member: int64 (members,), task slots by gang; ``start``: int64 (G + 1,), those of gang ``g`` are
            ``member[start[g]:start[g + 1]]``, by the number at the end of their names, then creation, then name."""

    def __init__(
        self, groups: Sequence[PodGroup], rows: GangRows, members: MemberRows, queue: Index, tasks: TaskTable
    ) -> None:
        self.groups, self.queue, self.min_member = groups, queue, rows.facts.least
        self.names, self.lasting, self.numbers, self.name_rank = rows.names, rows.lasting, rows.numbers, rows.name_rank
        self._kinds = rows.kinds
        self._tasks = tasks
        # Few statuses are in use at a time.
        used = np.flatnonzero(members.totals).tolist()
        self.counts: Ints = np.zeros((len(members.totals), len(groups)), dtype=np.int64)
        for status in used:
            members.counts[status].take(rows.numbers, out=self.counts[status], mode="clip")
        self.start, self.member = members.start, members.member
        self.versions: Ints = np.zeros(len(groups), dtype=np.int64)
        self.ready_count = self._sum(_READY, used)
        self.scheduled_count = self._sum(_SCHEDULED, used)
        self.valid_count = self._sum(_VALID, used)
        self.has_best_effort: Bools = members.idle[rows.numbers]

    def __len__(self) -> int:
        return len(self.groups)

    @cached_property
    def least(self) -> list[int]:
        found: list[int] = self.min_member.tolist()
        return found

    @cached_property
    def queue_list(self) -> list[int]:
        found: list[int] = self.queue.tolist()
        return found

    def _sum(self, statuses: list[bool], used: list[int]) -> Ints:
        """int64 (G,): members in some statuses, of those that are in use."""
        found: Ints = np.zeros(len(self), dtype=np.int64)
        for status in used:
            if statuses[status]:
                found += self.counts[status]
        return found

    def adjust(self, status: int, gang: int, by: int) -> None:
        """Count a member more or less in a status."""
        self.counts[status, gang] += by
        self.versions[gang] += 1
        if _READY[status]:
            self.ready_count[gang] += by
        if _SCHEDULED[status]:
            self.scheduled_count[gang] += by
        if _VALID[status]:
            self.valid_count[gang] += by

    def owner_kind(self, gang: int) -> str:
        """The kind of who owns the gang, or else its members; empty for none."""
        return self.groups[gang].owner_kind or self._kinds[self.numbers[gang]]

    def member_kinds(self, gangs: Ints) -> list[str]:
        """Of each gang the kind of who owns its members."""
        found: list[str] = self._kinds[self.numbers[gangs]].tolist()
        return found

    def members(self, gang: int) -> list[int]:
        """Slots of all its pods, by the number at the end of their names, then creation, then name."""
        found: list[int] = self.member[self.start[gang] : self.start[gang + 1]].tolist()
        return found

    def with_status(self, gang: int, *statuses: int) -> list[int]:
        """Its members in one of the statuses, by name."""
        members = self.member[self.start[gang] : self.start[gang + 1]]
        # As plain integers: comparing with members of the enum costs more than all the rest.
        wanted = [int(status) for status in statuses]
        there = self._tasks.status[members].tolist()
        found: list[int] = [t for t, status in zip(members.tolist(), there, strict=True) if status in wanted]
        if len(found) > 1:
            found.sort(key=self._tasks.keys.__getitem__)
        return found

    def with_tasks_to_place(self) -> list[int]:
        """Gangs with a member that waits or holds a promise."""
        found: list[int] = np.flatnonzero((self.counts[PENDING] > 0) | (self.counts[PIPELINED] > 0)).tolist()
        return found

    def in_need(self) -> list[int]:
        """Gangs with a member that waits, is gated or promised, or with fewer members in place than minMember. Not
        those of which all that is left is leaving."""
        counts = self.counts
        need = (counts[PENDING] > 0) | (counts[PIPELINED] > 0) | (counts[GATED] > 0)
        need |= (self.ready_count < self.min_member) & ((counts[RELEASING] == 0) | (self.ready_count > 0))
        found: list[int] = np.flatnonzero(need).tolist()
        return found

    def count(self, gang: int, status: int) -> int:
        return int(self.counts[status, gang])

    def pending(self, gang: int) -> int:
        return int(self.counts[PENDING, gang])

    def ready(self, gang: int) -> int:
        """R: bound, running, allocated or succeeded members (semantics 2.2)."""
        return int(self.ready_count[gang])

    def waiting(self, gang: int) -> int:
        """W: members that are promised room that is still leaving."""
        return int(self.counts[PIPELINED, gang])

    def valid(self, gang: int) -> int:
        """Members that are in place or still wanted."""
        return int(self.valid_count[gang])

    def scheduled(self, gang: int) -> int:
        """Members with a node or finished, as the phase counts them."""
        return int(self.scheduled_count[gang])

    def total(self, gang: int) -> int:
        return int(self.start[gang + 1] - self.start[gang])
