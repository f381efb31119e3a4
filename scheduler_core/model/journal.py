"""Editions of a list whose changes are reported one by one, long before the next edition is asked for."""

from collections import deque
from typing import Any

from scheduler_core.model.edition import REWRITE_SHARE, Changes, Edition, Series, Step, Value

# How far back a journal knows its changes: values that are gone stay in memory as long.
_EDITIONS = 64
# Changes that a journal writes down together.
_BATCH = 64


class Journal(Series[Value]):
    """A series that takes one change at a time, and writes them down in batches as they come. So an edition costs
    little when it is asked for. What has changed is known by key and not by position. A change may carry a remark for
    readers of the difference."""

    def __init__(self) -> None:
        super().__init__()
        self._unwritten: dict[str, Value | None] = {}
        self._noted: dict[str, Value | None] = {}
        self._remarks: dict[str, Any] = {}
        self._history: deque[tuple[int, dict[str, Value | None], dict[str, Any]]] = deque()
        self._kept = 0

    def note(self, key: str, value: Value | None, remark: Any = None) -> None:
        """Note the value of a key, None = the key is gone. O(block + blocks / batch)."""
        if not self._noted:
            # Forgetting takes time, which the caller of `next` is not to wait for.
            self._forget(_EDITIONS - 1)
        self._noted[key] = self._unwritten[key] = value
        self._remarks[key] = remark
        if len(self._unwritten) >= _BATCH and len(self._unwritten) * REWRITE_SHARE <= self._count:
            self._write()

    def next(self) -> Edition[Value]:
        """The edition with all changes that were noted; the very same one when there are none."""
        if not self._noted:
            return self._edition
        self._write()
        self._number += 1
        self._history.append((self._number, self._noted, self._remarks))
        self._kept += len(self._noted) + 1
        self._noted, self._remarks = {}, {}
        self._forget(_EDITIONS)
        self._edition = self._publish()
        return self._edition

    def steps(self, start: int, end: int) -> list[Step] | None:
        """Positions are not kept."""
        return [] if start == end else None

    def changes(self, start: int, end: int) -> Changes[Value] | None:
        """The changes between two editions, the last value of each key."""
        found = [(noted, remarks) for number, noted, remarks in self._history if start < number <= end]
        if start > end or len(found) != end - start:
            return None
        if len(found) == 1:
            return found[0]
        changes: dict[str, Value | None] = {}
        remarks: dict[str, Any] = {}
        for noted, said in found:
            changes.update(noted)
            remarks.update(said)
        return changes, remarks

    def _forget(self, most: int) -> None:
        while len(self._history) > 1 and (self._kept > self._count or len(self._history) > most):
            self._kept -= len(self._history.popleft()[1]) + 1

    def _write(self) -> None:
        if self._unwritten:
            self._enter(self._unwritten)
            self._unwritten = {}
