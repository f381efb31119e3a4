"""What is kept of gangs from one session to the next: numbers that stay, the order of names, and who is a member. A
gang keeps its number as long as it has a PodGroup or a member; its position, which sessions use, is its place among the
names of the snapshot's PodGroups and moves as others come and go."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from scheduler_core.model.edition import Edition, Step
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.same_gang import lasting_name
from scheduler_core.state.group_facts import GroupFacts
from scheduler_core.state.names import Names, name_of
from scheduler_core.state.status import Index, Ints

Kinds = npt.NDArray[np.object_]
_NONE = {""}


class GangRows:
    """Gangs by number and by position.

    What a session is given (names, lasting names, numbers, facts, kinds) is never changed in place: a
    change makes new ones.

    Attributes:
        names, lasting: by position, namespace/name, and the name that a PodGroup made anew would have too.
        numbers: int64 (G,), number by position. position: int32 (numbers + 1,), position by number, -1 = the snapshot
            has no such PodGroup; the last entry is where "no gang" (-1) points.
        facts: what the PodGroups say, by position.
        declarations: PodGroups of which no two declare the same minimum; facts.declaration points here.
        name_rank: int64 (G,), place in the order of names by position.
        queue_names: names of queues by id. queue_ids: int32 (G,), by position.
        versions: int64 by number, how often what is kept here of a gang has changed, its members not included.
        changed: members by number, of gangs that have other members than when this was last emptied."""

    def __init__(self) -> None:
        self.numbers: Ints = np.zeros(0, dtype=np.int64)
        self.queue_names: list[str] = []
        self._kinds: Kinds = np.zeros(0, dtype=np.object_)
        self._queue_id: dict[str, int] = {}
        self._number: dict[str, int] = {}
        self._names: list[str] = []
        self._has_group: list[bool] = []
        self._members: list[list[int]] = []
        self._free: list[int] = []
        self._facts = GroupFacts.empty(0)
        self.declarations: list[PodGroup] = []
        self._declaration_of: dict[Hashable, int] = {}
        self._queue_ids: Index = np.zeros(0, dtype=np.int32)
        self.versions: Ints = np.zeros(0, dtype=np.int64)
        self.changed: dict[int, list[int]] = {}
        self._stale = True
        self.arrange(())

    @property
    def size(self) -> int:
        return len(self._names)

    @property
    def kinds(self) -> Kinds:
        """str by number, the kind of who owns the members, the first by name where they differ."""
        return self._kinds

    def fork(self) -> GangRows:
        other = object.__new__(GangRows)
        other.__dict__.update(self.__dict__)
        other._queue_id, other._number = dict(self._queue_id), dict(self._number)
        other.declarations, other._declaration_of = list(self.declarations), dict(self._declaration_of)
        other._names, other._has_group, other._free = list(self._names), list(self._has_group), list(self._free)
        # A list of members is replaced, never changed.
        other._members, other.queue_names = list(self._members), list(self.queue_names)
        other.versions, other.changed = self.versions.copy(), dict(self.changed)
        other._facts, other._queue_ids = self._facts.at(np.arange(len(self._queue_ids))), self._queue_ids.copy()
        return other

    def apply(self, step: Step) -> None:
        """Follow the PodGroups of a snapshot to the next. O(changes), and a copy of the lists when some come or go."""
        if not (step.removed or step.added or step.changed):
            return
        self._stale = True
        numbers = self.numbers
        if step.removed:
            for _, name in step.removed:
                self._has_group[self._number[name]] = False
                self._release(self._number[name])
            numbers = np.delete(numbers, [at for at, _ in step.removed])
        if step.added:
            at = [place for place, _, _ in step.added]
            come = [self.number_of(name) for _, name, _ in step.added]
            for number in come:
                self._has_group[number] = True
            self._write(come, [group for _, _, group in step.added])
            numbers = np.insert(numbers, np.array(at) - np.arange(len(at)), come)
        if step.changed:
            self._write([self._number[name] for _, name, _ in step.changed], [group for _, _, group in step.changed])
        self.numbers = numbers

    def arrange(self, groups: Sequence[PodGroup]) -> bool:
        """Bring what is kept by position up to these PodGroups; False when nothing has changed. O(gangs)."""
        if not self._stale:
            return False
        self._stale = False
        self.position: Index = np.full(len(self._names) + 1, -1, dtype=np.int32)
        self.position[self.numbers] = np.arange(len(self.numbers), dtype=np.int32)
        self.facts = self._facts.at(self.numbers)
        self.queue_ids: Index = self._queue_ids[self.numbers]
        self.names, self.lasting = Names(groups, name_of), Names(groups, lasting_name)
        self.name_rank: Ints = np.arange(len(groups), dtype=np.int64)
        # An edition lies in the order of names; a list that was made by hand may not.
        if not isinstance(groups, Edition):
            names = [name_of(group) for group in groups]
            self.name_rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        return True

    def _write(self, numbers: list[int], groups: list[PodGroup]) -> None:
        self._facts.write(numbers, groups, [self._declaration(group) for group in groups])
        self._queue_ids[numbers] = [self._queue_number(group.queue) for group in groups]
        self.versions[numbers] += 1

    def _queue_number(self, name: str) -> int:
        number = self._queue_id.get(name)
        if number is None:
            number = self._queue_id[name] = len(self.queue_names)
            self.queue_names.append(name)
        return number

    def _declaration(self, group: PodGroup) -> int:
        """Number of what the PodGroup declares of its minimum, -1 = nothing."""
        resources, request = group.min_resources, group.card_request
        if resources is None and not request:
            return -1
        amount = None if resources is None else (resources.cpu_milli, resources.memory_mib)
        key = (amount, *sorted(request.items()), None, *sorted(group.min_scalars.items()))
        number = self._declaration_of.get(key)
        if number is None:
            number = self._declaration_of[key] = len(self.declarations)
            self.declarations.append(group)
        return number

    def number_of(self, name: str) -> int:
        """Number of a gang, given out when it is first heard of."""
        number = self._number.get(name)
        if number is not None:
            return number
        self._stale = True
        if self._free:
            number = self._free.pop()
            self._names[number] = name
        else:
            number = len(self._names)
            self._names.append(name)
            self._has_group.append(False)
            self._members.append([])
            if number >= len(self._queue_ids):
                self._facts = self._facts.grown(2 * number + 64)
                grown: Index = np.zeros(2 * number + 64, dtype=np.int32)
                grown[: len(self._queue_ids)] = self._queue_ids
                self._queue_ids = grown
                self._kinds = np.concatenate([self._kinds, np.full(len(grown) - len(self._kinds), "", np.object_)])
                self.versions = np.concatenate(
                    [self.versions, np.zeros(len(grown) - len(self.versions), dtype=np.int64)]
                )
        self._number[name] = number
        return number

    def _release(self, number: int) -> None:
        """Take the number back once nothing refers to it."""
        if not self._has_group[number] and not self._members[number]:
            del self._number[self._names[number]]
            self._free.append(number)

    def change_members(
        self, gone: dict[int, list[int]], come: dict[int, list[int]], ranks: list[tuple[float, float, str]],
        kinds: list[str],
    ) -> Ints:  # fmt: skip
        """Task slots leave and join gangs (by number). ``ranks``, ``kinds``: by slot, ``rank`` and ``owner_kind`` of
        :class:`scheduler_core.model.pod_notes.PodNotes`. Returns: int64 (2, slots): slots of the gangs that changed,
        and the place of each in its gang."""
        slots: list[int] = []
        places: list[int] = []
        if gone or come:
            self._kinds = self._kinds.copy()
        for number in {**gone, **come}:
            members = self._members[number]
            if number in gone:
                left = set(gone[number])
                members = [slot for slot in members if slot not in left]
            members = [*members, *come.get(number, ())]
            if len(members) > 1:
                members.sort(key=ranks.__getitem__)
            self._members[number] = self.changed[number] = members
            above = min({*map(kinds.__getitem__, members)} - _NONE, default="")
            if above != self._kinds[number]:
                self._kinds[number] = above
                self.versions[number] += 1
            slots += members
            places += range(len(members))
            if not members:
                self._release(number)
        return np.array([slots, places], dtype=np.int64)
