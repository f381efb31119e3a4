"""The book: each promise that the product made, when and where, what was promised, and what came.

Nothing in it knows the product. A promise is ``open`` until it has been compared with what came: then it is ``kept``,
``broken``, ``explained`` or ``void``. A broken one is explained only where a page named a part that is away before
the check, and the crew's own log has a fault of that part at that time. Void is what cannot be compared: the crew
itself took the ground away (another change was applied in between, the gang was ended). Void promises count for
nothing and are shown.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.crew.faults import FaultLog, named_parts

IMPACT, ETA, REMEDY, SAVED, APPLIED, TAKEN_BACK = "impact", "eta", "remedy", "saved", "applied", "taken back by"
KINDS = (IMPACT, ETA, REMEDY, SAVED, APPLIED, TAKEN_BACK)
OPEN, KEPT, BROKEN, EXPLAINED, VOID = "open", "kept", "broken", "explained", "void"


@dataclass
class Promise:
    """One promise: ``where`` it stood (a page's address or a request), ``said`` what it says."""

    kind: str
    where: str
    said: str
    at: float
    outcome: str = OPEN
    came: str = ""
    checked_at: float | None = None
    # What pages said of parts that are away before the check, and when that was read.
    named: list[tuple[str, float]] = field(default_factory=list)
    # The thread of the person to whom it was made.
    by: str = field(default_factory=lambda: threading.current_thread().name)

    def line(self) -> str:
        """As a line of the report."""
        return f"{self.kind} at {self.where}: said “{self.said}”, came “{self.came}”"


@dataclass(frozen=True)
class Written:
    """A figure that the product called applied: the cell, its value, and the tree's version after it."""

    cell: str
    value: int
    version: int
    where: str


@dataclass
class Book:
    """All promises and all applied edits of one run."""

    faults: FaultLog
    promises: list[Promise] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def promise(self, kind: str, where: str, said: str, at: float) -> Promise:
        """Write a promise down."""
        assert kind in KINDS, kind
        one = Promise(kind, where, said, at)
        with self._lock:
            self.promises.append(one)
        return one

    def name_fault(self, promise: Promise, named: str, at: float) -> None:
        """A page named parts that are away while a promise has not been checked yet."""
        if promise.outcome == OPEN and named_parts(named):
            promise.named.append((named, at))

    def check(self, promise: Promise, *, kept: bool, came: str, at: float) -> str:
        """Compare a promise with what came; the answer is its outcome. It is checked once."""
        if promise.outcome != OPEN:
            return promise.outcome
        promise.came, promise.checked_at = came, at
        if kept:
            promise.outcome = KEPT
        elif any(when <= at and self.faults.at(when, parts=named_parts(text)) for text, when in promise.named):
            promise.outcome = EXPLAINED
        else:
            promise.outcome = BROKEN
        return promise.outcome

    def void(self, promise: Promise, why: str, at: float) -> None:
        """The crew itself took away what the promise stood on."""
        if promise.outcome == OPEN:
            promise.outcome, promise.came, promise.checked_at = VOID, why, at

    def give_up(self, why: str, at: float) -> None:
        """The person of this thread was stopped before the comparison: void where a fault stopped them, else open."""
        by = threading.current_thread().name
        if self.faults.at(at, before=1.0):
            for one in [one for one in self.promises if one.by == by]:
                self.void(one, why, at)

    def wrote(self, cell: str, value: int, version: int, where: str) -> None:
        """A figure was called applied."""
        with self._lock:
            self.written.append(Written(cell, value, version, where))

    def last_of(self, cell: str) -> Written | None:
        """What has to stand in a cell: what was applied under the highest version of the tree."""
        with self._lock:
            of_cell = [one for one in self.written if one.cell == cell]
        return max(of_cell, key=lambda one: one.version, default=None)

    def cells(self) -> list[str]:
        """All cells that the crew has written, in order."""
        with self._lock:
            return sorted({one.cell for one in self.written})

    def lose(self, what: str) -> None:
        """An edit was lost: it was typed or applied, and is not there."""
        with self._lock:
            self.lost.append(what)

    def compare_cells(self, found: dict[str, int], place: str) -> None:
        """Compare the newest applied figure of each cell with what ``place`` shows; what differs is a lost edit."""
        for cell in self.cells():
            last = self.last_of(cell)
            if last is not None and found.get(cell, 0) != last.value:
                self.lose(f"{cell}: {last.where} called {last.value} applied, {place} has {found.get(cell, 0)}")

    def counts(self) -> dict[str, dict[str, int]]:
        """Kind → outcome → how many."""
        with self._lock:
            promises = list(self.promises)
        return {
            kind: {
                outcome: sum(one.kind == kind and one.outcome == outcome for one in promises)
                for outcome in (KEPT, BROKEN, EXPLAINED, VOID, OPEN)
            }
            for kind in KINDS
        }

    def of(self, outcome: str) -> Iterable[Promise]:
        """The promises with an outcome."""
        return [one for one in self.promises if one.outcome == outcome]
