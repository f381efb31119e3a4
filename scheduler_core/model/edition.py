"""Sorted lists that know how they differ from earlier editions of themselves.

Whoever reads one edition after the other need not compare them value by value.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

Value = TypeVar("Value")

# With more changes than this share of a list it is written anew, and no way leads back to the edition before.
_REWRITE_SHARE = 4


class Step(msgspec.Struct, frozen=True, gc=False):
    """From one edition to the next, positions ascending.

    Attributes:
        removed: (position in the old edition, key). added, changed: (position in the new edition, key, value).
    """

    removed: Sequence[tuple[int, str]] = ()
    added: Sequence[tuple[int, str, Any]] = ()
    changed: Sequence[tuple[int, str, Any]] = ()


class Edition(tuple[Value, ...]):  # noqa: SLOT001 - it carries where it comes from, which a tuple has no slot for
    """A tuple of values in the order of their keys, made by a :class:`Series`; equal to a plain tuple of the same.

    Attributes:
        series: who made it. number: which edition it is.
    """

    series: Series[Value]
    number: int

    def steps_since(self, before: tuple[Value, ...]) -> list[Step] | None:
        """How to come from ``before`` to this edition; None when that is not known."""
        if self is before:
            return []
        if not isinstance(before, Edition) or before.series is not self.series:
            return None
        return self.series.steps(before.number, self.number)


class Series(Generic[Value]):
    """Values by key, given out as editions; the last few steps are kept."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._values: list[Value] = []
        self._number = 0
        self._steps: deque[tuple[int, Step]] = deque()
        self._size = 0
        self._edition = self._publish()

    @property
    def edition(self) -> Edition[Value]:
        """The latest edition."""
        return self._edition

    def change(self, changes: Mapping[str, Value | None]) -> Edition[Value]:
        """The next edition, with these values in the place of what stood under their keys; None takes a key out.

        O(changes log n) and a copy of the list; the very same edition when nothing changes.
        """
        if not changes:
            return self._edition
        if len(changes) * _REWRITE_SHARE > len(self._keys):
            if not self._replace(changes):
                return self._edition
            step = None
        else:
            step = self._merge(changes)
            if not (step.removed or step.added or step.changed):
                return self._edition
        self._number += 1
        self._remember(step)
        self._edition = self._publish()
        return self._edition

    def steps(self, start: int, end: int) -> list[Step] | None:
        """The steps from edition number ``start`` to ``end``; None when some are not kept any more."""
        found = [step for number, step in self._steps if start < number <= end]
        return found if start <= end and len(found) == end - start else None

    def _publish(self) -> Edition[Value]:
        edition = Edition(self._values)
        edition.series, edition.number = self, self._number
        return edition

    def _remember(self, step: Step | None) -> None:
        """Keep the step and forget the oldest ones once they hold more than the list itself."""
        if step is None:
            self._steps.clear()
            self._size = 0
            return
        self._steps.append((self._number, step))
        self._size += _size(step)
        while len(self._steps) > 1 and self._size > len(self._keys):
            self._size -= _size(self._steps.popleft()[1])

    def _replace(self, changes: Mapping[str, Value | None]) -> bool:
        """Write the whole list anew; False when that makes no difference."""
        known = dict(zip(self._keys, self._values, strict=True))
        values = {**known, **changes}
        self._keys = sorted(key for key, value in values.items() if value is not None)
        self._values = [value for key in self._keys if (value := values[key]) is not None]
        return any(known.get(key) is not value for key, value in changes.items())

    def _merge(self, changes: Mapping[str, Value | None]) -> Step:
        """One walk over the changed keys; what lies between them is copied in stretches."""
        old_keys, old_values = self._keys, self._values
        keys: list[str] = []
        values: list[Value] = []
        removed, added, changed = list[tuple[int, str]](), list[Any](), list[Any]()
        end, at, copied = len(old_keys), 0, 0
        for key in sorted(changes):
            value = changes[key]
            # Keys that change together mostly lie side by side: look here before searching.
            if at < end and old_keys[at] < key:
                at = bisect_left(old_keys, key, at)
            known = at < end and old_keys[at] == key
            if not known and value is None:
                continue
            if copied < at:
                keys += old_keys[copied:at]
                values += old_values[copied:at]
                copied = at
            if value is None:
                removed.append((at, key))
            elif known and old_values[at] is value:
                continue
            else:
                (changed if known else added).append((len(keys), key, value))
                keys.append(key)
                values.append(value)
            if known:
                at += 1
                copied = at
        step = Step(removed, added, changed)
        if removed or added or changed:
            self._keys, self._values = keys + old_keys[copied:], values + old_values[copied:]
        return step


def step_between(before: tuple[Value, ...], after: tuple[Value, ...], keys: Sequence[str]) -> Step | None:
    """The step between two lists whose unchanged values are the very same objects; None when these changed places.

    Args:
        keys: of ``before``, by position. Values have ``namespace`` and ``name``, or only ``name``.
    """
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
