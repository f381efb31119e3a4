"""Sorted lists that know how they differ from earlier editions of themselves. A reader of one edition after the other
need not compare them value by value."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar, overload

import msgspec

Value = TypeVar("Value")
# Values by key, None = it goes; and remarks by key.
Changes = tuple[Mapping[str, Value | None], Mapping[str, Any]]

# With more changes than this share of a list it is written anew, and no way leads back to the edition before.
REWRITE_SHARE = 4
# Entries of a block; twice as many at most.
_BLOCK = 256
# Entries that are looked up one by one before all of them are put side by side.
_LOOKS = 1000


class Step(msgspec.Struct, frozen=True, gc=False):
    """From one edition to the next, positions ascending. ``removed``: (position in the old edition, key). ``added``,
    ``changed``: (position in the new edition, key, value)."""

    removed: list[tuple[int, str]] = []
    added: list[tuple[int, str, Any]] = []
    changed: list[tuple[int, str, Any]] = []


class Edition(Sequence[Value]):
    """Values in the order of their keys, made by a :class:`Series`; equal to a plain tuple of the same. ``series``: who
    made it. ``number``: which edition it is."""

    __slots__ = ("_blocks", "_looks", "_size", "_starts", "_values", "number", "series")

    def __init__(self, series: Series[Value], number: int, blocks: tuple[tuple[Value, ...], ...], size: int) -> None:
        self.series, self.number = series, number
        self._blocks, self._size = blocks, size
        self._values: tuple[Value, ...] | None = None
        self._starts: list[int] = []
        self._looks = 0

    @property
    def values(self) -> tuple[Value, ...]:
        if self._values is None:
            self._values = tuple(chain.from_iterable(self._blocks))
        return self._values

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Value]:
        return chain.from_iterable(self._blocks)

    @overload
    def __getitem__(self, index: int) -> Value: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Value, ...]: ...

    def __getitem__(self, index: int | slice) -> Value | tuple[Value, ...]:
        if self._values is None and isinstance(index, int) and self._looks < _LOOKS and 0 <= index < self._size:
            # A reader of a few needs no list of all.
            self._looks += 1
            self._starts = self._starts or list(accumulate(map(len, self._blocks), initial=0))
            block = bisect_right(self._starts, index) - 1
            return self._blocks[block][index - self._starts[block]]
        return self.values[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Edition):
            return self is other or self.values == other.values
        return isinstance(other, tuple) and self.values == other

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return repr(self.values)

    def steps_since(self, before: Sequence[Value]) -> list[Step] | None:
        """How to come from ``before`` to this edition; None when that is not known."""
        if self is before:
            return []
        if not isinstance(before, Edition) or before.series is not self.series:
            return None
        return self.series.steps(before.number, self.number)

    def changes_since(self, before: Sequence[Value]) -> Changes[Value] | None:
        """The new value of each key whose value differs from ``before``, None where the key goes; with the remarks
        of a :class:`scheduler_core.model.journal.Journal`. None when that is not known."""
        if self is before:
            return {}, {}
        if not isinstance(before, Edition) or before.series is not self.series:
            return None
        return self.series.changes(before.number, self.number)


class Series(Generic[Value]):
    """Values by key, given out as editions; the last few steps are kept. Keys and values lie in blocks, and editions
    share the blocks that did not change: a list of 100,000 costs more to copy than the changes of one session are
    worth."""

    def __init__(self) -> None:
        self._keys: list[tuple[str, ...]] = []
        self._values: list[tuple[Value, ...]] = []
        self._firsts: list[str] = []
        self._count = self._number = self._size = 0
        self._steps: deque[tuple[int, Step]] = deque()
        self._edition = self._publish()

    @property
    def edition(self) -> Edition[Value]:
        """The latest edition."""
        return self._edition

    def change(self, changes: Mapping[str, Value | None]) -> Edition[Value]:
        """The next edition, with these values under their keys; None takes a key out. O(changes x block + blocks); the
        very same edition when nothing changes."""
        if not changes:
            return self._edition
        step, differs = self._enter(changes)
        if not differs:
            return self._edition
        self._number += 1
        self._remember(step)
        self._edition = self._publish()
        return self._edition

    def _enter(self, changes: Mapping[str, Value | None]) -> tuple[Step | None, bool]:
        """Write changes down; how, if it was done block by block, and whether they make a difference."""
        if len(changes) * REWRITE_SHARE > self._count or len(self._keys) * _BLOCK > 8 * (self._count + _BLOCK):
            return None, self._replace(changes)
        step = self._merge(changes)
        return step, bool(step.removed or step.added or step.changed)

    def steps(self, start: int, end: int) -> list[Step] | None:
        """The steps from edition number ``start`` to ``end``; None when some are not kept any more."""
        found = [step for number, step in self._steps if start < number <= end]
        return found if start <= end and len(found) == end - start else None

    def changes(self, start: int, end: int) -> Changes[Value] | None:
        """The same steps by key."""
        steps = self.steps(start, end)
        if steps is None:
            return None
        changes: dict[str, Value | None] = {}
        for step in steps:
            changes.update((key, None) for _, key in step.removed)
            changes.update((key, value) for _, key, value in step.added)
            changes.update((key, value) for _, key, value in step.changed)
        return changes, {}

    def _publish(self) -> Edition[Value]:
        return Edition(self, self._number, tuple(self._values), self._count)

    def _remember(self, step: Step | None) -> None:
        """Keep the step and forget the oldest ones once they hold more than the list itself."""
        if step is None:
            self._steps.clear()
            self._size = 0
            return
        self._steps.append((self._number, step))
        self._size += _size(step)
        while len(self._steps) > 1 and self._size > self._count:
            self._size -= _size(self._steps.popleft()[1])

    def _replace(self, changes: Mapping[str, Value | None]) -> bool:
        """Write the whole list anew; False when that makes no difference."""
        known = dict(zip(chain.from_iterable(self._keys), chain.from_iterable(self._values), strict=True))
        values = {**known, **changes}
        pairs = [(key, value) for key in sorted(values) if (value := values[key]) is not None]
        self._count = len(pairs)
        cuts = range(0, len(pairs), _BLOCK)
        self._keys = [tuple(key for key, _ in pairs[at : at + _BLOCK]) for at in cuts]
        self._values = [tuple(value for _, value in pairs[at : at + _BLOCK]) for at in cuts]
        self._firsts = [pairs[at][0] for at in cuts]
        return any(known.get(key) is not value for key, value in changes.items())

    def _merge(self, changes: Mapping[str, Value | None]) -> Step:
        """Write the blocks anew that hold changed keys."""
        firsts = self._firsts
        starts = list(accumulate(map(len, self._keys), initial=0))
        by_block: dict[int, list[str]] = {}
        for key in sorted(changes):
            by_block.setdefault(max(0, bisect_right(firsts, key) - 1), []).append(key)
        step = Step([], [], [])
        all_keys, all_values, all_firsts = list[tuple[str, ...]](), list[tuple[Value, ...]](), list[str]()
        done = shift = 0
        for block, keys in by_block.items():
            all_keys += self._keys[done:block]
            all_values += self._values[done:block]
            all_firsts += firsts[done:block]
            done = block + 1
            new_keys, new_values = self._merge_block(block, keys, changes, starts[block], starts[block] + shift, step)
            shift += len(new_keys) - len(self._keys[block])
            half = len(new_keys) if len(new_keys) <= 2 * _BLOCK else _BLOCK
            for at in range(0, len(new_keys), half or 1):
                all_keys.append(tuple(new_keys[at : at + half]))
                all_values.append(tuple(new_values[at : at + half]))
                all_firsts.append(new_keys[at])
        self._keys, self._values = all_keys + self._keys[done:], all_values + self._values[done:]
        self._firsts = all_firsts + firsts[done:]
        self._count += shift
        return step

    def _merge_block(
        self, block: int, changed: list[str], changes: Mapping[str, Value | None], old: int, new: int, step: Step
    ) -> tuple[list[str], list[Value]]:
        """Keys and values of a block with the changes, which are noted in ``step``. ``old``, ``new``: position of the
        block's first entry, before and after."""
        keys, values = self._keys[block], self._values[block]
        new_keys, new_values = list[str](), list[Value]()
        at = 0
        for key in changed:
            place = bisect_left(keys, key, at)
            if place > at:
                new_keys += keys[at:place]
                new_values += values[at:place]
                at = place
            known = at < len(keys) and keys[at] == key
            value = changes[key]
            if value is None:
                if known:
                    step.removed.append((old + at, key))
            else:
                if not known:
                    step.added.append((new + len(new_keys), key, value))
                elif values[at] is not value:
                    step.changed.append((new + len(new_keys), key, value))
                new_keys.append(key)
                new_values.append(value)
            at += known
        new_keys += keys[at:]
        new_values += values[at:]
        return new_keys, new_values


def step_between(before: Sequence[Value], after: Sequence[Value], keys: Sequence[str]) -> Step | None:
    """The step between two lists whose unchanged values are the very same objects; None when these changed places.
    ``keys``: of ``before``, by position. Values have ``namespace`` and ``name``, or only ``name``."""
    if before is after:
        return Step()
    old, new = set(map(id, before)), set(map(id, after))
    gone = [(at, keys[at]) for at, value in enumerate(before) if id(value) not in new]
    come = [(at, key_of(value), value) for at, value in enumerate(after) if id(value) not in old]
    if len(new) != len(after) or len(old) != len(before):
        return None
    if not all(
        a is b
        for a, b in zip(
            (value for value in before if id(value) in new), (value for value in after if id(value) in old), strict=True
        )
    ):
        return None
    return Step(gone, come)


def key_of(value: Any) -> str:
    """``namespace/name``, or the name of what has no namespace."""
    namespace = getattr(value, "namespace", None)
    return value.name if namespace is None else f"{namespace}/{value.name}"


def _size(step: Step) -> int:
    return len(step.removed) + len(step.added) + len(step.changed) + 1
