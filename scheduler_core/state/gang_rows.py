"""What is kept of gangs from one session to the next: numbers that stay, the order of names, and who is a member.

A gang keeps its number as long as it has a PodGroup or a member; its position, which sessions use, is its place among
the names of the snapshot's PodGroups and moves as others come and go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from scheduler_core.model.edition import Step
from scheduler_core.model.pod_notes import PodNotes
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.state.group_facts import GroupFacts
from scheduler_core.state.status import Index, Ints

_Value = TypeVar("_Value")


class GangRows:
    """Gangs by number and by position.

    What a session is given (names, lasting names, numbers, facts, kinds) is never changed in place: a
    change makes new ones.

    Attributes:
        names, lasting: by position, namespace/name, and the name that a PodGroup made anew would have too.
        numbers: int64 (G,), number by position. position: int32 (numbers + 1,), position by number, -1 = the snapshot
            has no such PodGroup; the last entry is where "no gang" (-1) points.
        facts: what the PodGroups say, by position.
        name_rank: int64 (G,), place in the order of names by position.
        queue_names: names of queues by id. queue_ids: int32 (G,), by position.
        versions: int64 by number, how often what is kept here of a gang has changed, its members not included.
        changed: members by number, of gangs that have other members than when somebody last emptied this.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.lasting: list[str] = []
        self.numbers: Ints = np.zeros(0, dtype=np.int64)
        self.queue_names: list[str] = []
        self._kinds: list[str] = []
        self._queue_id: dict[str, int] = {}
        self._number: dict[str, int] = {}
        self._names: list[str] = []
        # Whether positions follow the order of names, as they do but for lists that somebody made by hand.
        self._in_order = True
        self._has_group: list[bool] = []
        self._members: list[list[int]] = []
        self._free: list[int] = []
        self._facts = GroupFacts.empty(0)
        self._queue_ids: Index = np.zeros(0, dtype=np.int32)
        self.versions: Ints = np.zeros(0, dtype=np.int64)
        self.changed: dict[int, list[int]] = {}
        self._stale = True
        self.arrange()

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return len(self._names)

    @property
    def kinds(self) -> list[str]:
        """By number, the kind of who owns the members, the first by name where they differ."""
        return self._kinds

    def fork(self) -> GangRows:
        """The same rows, independent. O(gangs)."""
        other = object.__new__(GangRows)
        other.__dict__.update(self.__dict__)
        other._queue_id, other._number = dict(self._queue_id), dict(self._number)
        other._names, other._has_group, other._free = list(self._names), list(self._has_group), list(self._free)
        # A list of members is replaced, never changed.
        other._members, other.queue_names = list(self._members), list(self.queue_names)
        other.versions, other.changed = self.versions.copy(), dict(self.changed)
        other._facts, other._queue_ids = self._facts.at(np.arange(len(self._queue_ids))), self._queue_ids.copy()
        return other

    # PodGroups -------------------------------------------------------------------------------------------------------

    def apply(self, step: Step) -> None:
        """Follow the PodGroups of a snapshot to the next. O(changes), and a copy of the lists when some come or go."""
        if not (step.removed or step.added or step.changed):
            return
        self._stale = True
        names, lasting, numbers = self.names, self.lasting, self.numbers
        in_order = self._in_order
        if step.removed:
            gone = [at for at, _ in step.removed]
            for _, name in step.removed:
                self._has_group[self._number[name]] = False
                self._release(self._number[name])
            names, lasting, numbers = _without(names, gone), _without(lasting, gone), np.delete(numbers, gone)
        if step.added:
            at = [place for place, _, _ in step.added]
            come = [self.number_of(name) for _, name, _ in step.added]
            for number, (_, _, group) in zip(come, step.added, strict=True):
                self._has_group[number] = True
                self._write(number, group)
            names = _with(names, at, [name for _, name, _ in step.added])
            in_order = in_order and all(
                (place == 0 or names[place - 1] < names[place])
                and (place + 1 == len(names) or names[place] < names[place + 1])
                for place in at
            )
            lasting = _with(lasting, at, [lasting_name(group) for _, _, group in step.added])
            numbers = np.insert(numbers, np.array(at) - np.arange(len(at)), come)
        if step.changed:
            lasting = list(lasting)
            for place, name, group in step.changed:
                self._write(self._number[name], group)
                lasting[place] = lasting_name(group)
        self.names, self.lasting, self.numbers, self._in_order = names, lasting, numbers, in_order

    def arrange(self) -> bool:
        """Bring what is told by position up to date; False when nothing has changed. O(gangs)."""
        if not self._stale:
            return False
        self._stale = False
        self.position: Index = np.full(len(self._names) + 1, -1, dtype=np.int32)
        self.position[self.numbers] = np.arange(len(self.numbers), dtype=np.int32)
        self.facts = self._facts.at(self.numbers)
        self.queue_ids: Index = self._queue_ids[self.numbers]
        self.name_rank: Ints = np.arange(len(self.names), dtype=np.int64)
        if not self._in_order:
            self.name_rank[sorted(range(len(self.names)), key=self.names.__getitem__)] = np.arange(len(self.names))
        return True

    def _write(self, number: int, group: PodGroup) -> None:
        self._facts.write(number, group)
        queue = self._queue_id.get(group.queue)
        if queue is None:
            queue = self._queue_id[group.queue] = len(self.queue_names)
            self.queue_names.append(group.queue)
        self._queue_ids[number] = queue
        self.versions[number] += 1

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
            self._kinds.append("")
            if number >= len(self._queue_ids):
                self._facts = self._facts.grown(2 * number + 64)
                grown: Index = np.zeros(2 * number + 64, dtype=np.int32)
                grown[: len(self._queue_ids)] = self._queue_ids
                self._queue_ids = grown
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

    # Members ---------------------------------------------------------------------------------------------------------

    def change_members(self, gone: dict[int, list[int]], come: dict[int, list[int]], notes: Sequence[PodNotes]) -> Ints:
        """Task slots leave and join gangs (by number).

        Args:
            notes: by slot.

        Returns:
            int64 (2, slots): slots of the gangs that changed, and the place of each in its gang.
        """
        slots: list[int] = []
        places: list[int] = []
        if gone or come:
            self._kinds = list(self._kinds)
        for number in {**gone, **come}:
            members = self._members[number]
            if number in gone:
                left = set(gone[number])
                members = [slot for slot in members if slot not in left]
            members = [*members, *come.get(number, ())]
            if len(members) > 1:
                members.sort(key=lambda slot: notes[slot].rank)
            self._members[number] = self.changed[number] = members
            above = min({kind for slot in members if (kind := notes[slot].owner_kind)}, default="")
            if above != self._kinds[number]:
                self._kinds[number] = above
                self.versions[number] += 1
            slots += members
            places += range(len(members))
            if not members:
                self._release(number)
        return np.array([slots, places], dtype=np.int64)


def _without(values: list[_Value], at: Sequence[int]) -> list[_Value]:
    """The list without what stands at these positions (ascending), copied in stretches."""
    kept: list[_Value] = []
    start = 0
    for place in at:
        kept += values[start:place]
        start = place + 1
    return kept + values[start:]


def _with(values: list[_Value], at: Sequence[int], more: Sequence[_Value]) -> list[_Value]:
    """The list with ``more``, which stand at these positions of the result (ascending)."""
    kept: list[_Value] = []
    start = 0
    for count, (place, value) in enumerate(zip(at, more, strict=True)):
        kept += values[start : place - count]
        start = place - count
        kept.append(value)
    return kept + values[start:]


def lasting_name(group: PodGroup) -> str:
    """Name that stays the same when a controller makes the PodGroup anew: its owner's, else its own."""
    if group.owner_kind and group.owner_name:
        return f"{group.namespace}/{group.owner_kind}/{group.owner_name}"
    return f"{group.namespace}/{group.name}"
