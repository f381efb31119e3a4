"""Editions of a list whose changes are told one by one, long before somebody asks for the next edition."""

from __future__ import annotations

from collections import deque
from typing import Any

from scheduler_core.model.edition import REWRITE_SHARE, Changes, Edition, Series, Step, Value

# How far back a journal knows what it was told: values that are gone stay in memory as long.
_EDITIONS = 64
# Changes that a journal writes down together.
_BATCH = 64


class Journal(Series[Value]):
    """A series that is told one change at a time, and writes them down in batches as they come.

    So an edition costs little when it is asked for. What has changed is known by key and not by position, and whoever
    tells may add a remark for those who ask for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unwritten: dict[str, Value | None] = {}
        self._told: dict[str, Value | None] = {}
        self._remarks: dict[str, Any] = {}
        self._history: deque[tuple[int, dict[str, Value | None], dict[str, Any]]] = deque()
        self._kept = 0

    def tell(self, key: str, value: Value | None, remark: Any = None) -> None:
        """Something stands under a key now, or (None) nothing does any more. O(block + blocks / batch)."""
        if not self._told:
            # What is forgotten takes its time, which is not to be that of whoever asks for the next edition.
            self._forget(_EDITIONS - 1)
        self._told[key] = self._unwritten[key] = value
        self._remarks[key] = remark
        if len(self._unwritten) >= _BATCH and len(self._unwritten) * REWRITE_SHARE <= self._count:
            self._write()

    def next(self) -> Edition[Value]:
        """The edition of all that was told; the very same one when that is nothing."""
        if not self._told:
            return self._edition
        self._write()
        self._number += 1
        self._history.append((self._number, self._told, self._remarks))
        self._kept += len(self._told) + 1
        self._told, self._remarks = {}, {}
        self._forget(_EDITIONS)
        self._edition = self._publish()
        return self._edition

    def steps(self, start: int, end: int) -> list[Step] | None:
        """Positions are not kept."""
        return [] if start == end else None

    def changes(self, start: int, end: int) -> Changes[Value] | None:
        """What was told between two editions, the last word on each key."""
        found = [(told, remarks) for number, told, remarks in self._history if start < number <= end]
        if start > end or len(found) != end - start:
            return None
        if len(found) == 1:
            return found[0]
        changes: dict[str, Value | None] = {}
        remarks: dict[str, Any] = {}
        for told, said in found:
            changes.update(told)
            remarks.update(said)
        return changes, remarks

    def _forget(self, most: int) -> None:
        while len(self._history) > 1 and (self._kept > self._count or len(self._history) > most):
            self._kept -= len(self._history.popleft()[1]) + 1

    def _write(self) -> None:
        if self._unwritten:
            self._enter(self._unwritten)
            self._unwritten = {}
