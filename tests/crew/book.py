"""The book: each promise that the product made, when and where, what was promised, and what came.

Nothing in it knows the product. A promise is ``open`` until it has been compared with what came: then it is ``kept``,
``broken``, ``explained`` or ``void``. A broken one is explained only where a page named a part that is away before
the check, and the crew's own log has a fault of that part at that time. Void is what cannot be compared: the crew
itself took the ground away (another change was applied in between, the gang was ended). Void promises count for
nothing and are shown.

Two people may edit one cell. Who reads the cluster's figure may see that of another person, whose change is applied
already while its page has not said so yet. So a person writes an edit down before it is applied (``begin``), and what
differs from a promise is judged when the edits under way that may explain it are over: void only where the very figure
that was found is of a later version of the tree, else broken.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

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


@dataclass(frozen=True)
class Begun:
    """An edit under way: what comes of it is not known yet."""

    where: str
    figures: dict[str, int]


@dataclass(frozen=True)
class Differing:
    """A figure that differs from what was called applied, until the edits under way in its cell are over."""

    promise: Promise
    mine: Written
    found: int
    at: float
    rivals: frozenset[str]


@dataclass
class Book:
    """All promises and all applied edits of one run."""

    faults: FaultLog
    promises: list[Promise] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    _begun: list[Begun] = field(default_factory=list, repr=False)
    _differing: list[Differing] = field(default_factory=list, repr=False)
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

    def wrote(self, cell: str, value: int, version: int, where: str) -> Written:
        """A figure was called applied."""
        made = Written(cell, value, version, where)
        with self._lock:
            self.written.append(made)
        return made

    def begin(self, where: str, figures: dict[str, int]) -> None:
        """A person is about to apply figures, by cell; ``end`` says that what came of it is written down."""
        with self._lock:
            self._begun.append(Begun(where, dict(figures)))

    def end(self, where: str, *, known: bool = True) -> None:
        """An edit is over. Not ``known``: its person was stopped before the product said what came of it."""
        with self._lock:
            self._begun = [one for one in self._begun if one.where != where]
            waiting, self._differing = self._differing, []
            for one in waiting:
                rivals = one.rivals - {where}
                if where in one.rivals and not known:
                    self.void(
                        one.promise, f"the same cell was edited by {where}, of which nothing more is known", one.at
                    )
                elif rivals:
                    self._differing.append(replace(one, rivals=rivals))
                else:
                    self._judge(one)

    def applied(self, promise: Promise, mine: Written, *, found: int, at: float) -> None:
        """Compare a figure that was called applied with what the cluster has."""
        if found == mine.value:
            self.check(promise, kept=True, came=f"the cluster has {found}", at=at)
            return
        with self._lock:
            rivals = frozenset(
                one.where for one in self._begun if one.where != mine.where and one.figures.get(mine.cell) == found
            )
            one = Differing(promise, mine, found, at, rivals)
            if rivals and not self._later(one):
                self._differing.append(one)
            else:
                self._judge(one)

    def _judge(self, one: Differing) -> None:
        later = self._later(one)
        if later is not None:
            self.void(one.promise, f"{later.where} came after it", one.at)
        else:
            self.check(one.promise, kept=False, came=f"the cluster has {one.found}", at=one.at)

    def _later(self, one: Differing) -> Written | None:
        """The applied edit of a later version that explains the figure."""
        mine = one.mine
        after = [had for had in self.written if had.cell == mine.cell and had.version > mine.version]
        return next((had for had in after if had.value == one.found), None)

    def last_of(self, cell: str) -> Written | None:
        """What has to be in a cell: what was applied under the highest version of the tree."""
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
