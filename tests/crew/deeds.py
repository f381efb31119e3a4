"""What the people of the crew came for: how often they got it done, and how often they gave it up.

A run in which a person gets nothing done says nothing of the product, so it does not hold.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from tests.crew.faults import FaultLog

EDIT, RECEIPT, LOOK, ROUND, FOLLOWED, HOUR, HOARD = (
    "an edit in a browser",
    "a reclaim looked at with its audit entry",
    "a gang looked for by its tenant's admin",
    "a round of a platform",
    "a remedy followed",
    "a change at an hour of its own",
    "streams beyond the bound refused",
)
KINDS = (EDIT, RECEIPT, LOOK, ROUND, FOLLOWED, HOUR, HOARD)
# Of a hundred things that people came for they may give up so many: a browser on few processors may wait too long.
GIVEN_UP_SHARE = 0.05


@dataclass(frozen=True)
class GivenUp:
    """Something that a person did not get done."""

    kind: str
    person: str
    why: str
    at: float


@dataclass
class Deeds:
    """All that people did in one run."""

    done: Counter[str] = field(default_factory=Counter)
    by_person: Counter[str] = field(default_factory=Counter)
    given_up: list[GivenUp] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def did(self, kind: str, person: str) -> None:
        """A person got what they came for."""
        assert kind in KINDS, kind
        with self._lock:
            self.done[kind] += 1
            self.by_person[person] += 1

    def gave_up(self, kind: str, person: str, why: str, at: float) -> None:
        """A person did not."""
        assert kind in KINDS, kind
        with self._lock:
            self.given_up.append(GivenUp(kind, person, why, at))

    def failings(self, faults: FaultLog, least: dict[str, int], people: tuple[str, ...]) -> list[str]:
        """A line for each kind that was done too seldom or given up too often, and for each person without a deed."""
        lines = [
            f"too little done: {kind}: {self.done[kind]} of at least {count}"
            for kind, count in least.items()
            if self.done[kind] < count
        ]
        lines += [f"nothing done: {person}" for person in people if not self.by_person[person]]
        for kind in KINDS:
            counted = [one for one in self.given_up if one.kind == kind and faults.at(one.at, before=60.0) is None]
            if len(counted) > max(1, GIVEN_UP_SHARE * (self.done[kind] + len(counted))):
                lines.append(f"given up: {kind}: {len(counted)} times, done {self.done[kind]} times")
                lines += [f"given up: {one.person}: {one.why}"[:300] for one in counted[:8]]
        return lines
