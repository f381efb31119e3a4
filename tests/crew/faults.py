"""The crew's own log of the faults that it made: what, from when until when."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection
from dataclasses import dataclass, field

# From a fault until so long after its end a read may answer 503 and a write may be refused.
AFTERWARDS_SECONDS = 30.0

# What pages say of a part of the installation, in their own words.
_NAMES = {
    "postgres": re.compile(r"cannot reach its database|database does not answer", re.IGNORECASE),
    "valkey": re.compile(r"cannot reach its Redis|Redis does not answer", re.IGNORECASE),
    "simcluster": re.compile(r"API server (does not answer|answers with errors)", re.IGNORECASE),
}
_SILENT = re.compile(r"No process of the role ([\w-]+) moves on")


def named_parts(text: str) -> frozenset[str]:
    """The parts of the installation that a page says are away."""
    return frozenset({part for part, words in _NAMES.items() if words.search(text)} | set(_SILENT.findall(text)))


@dataclass
class Fault:
    """One fault: ``what`` was done to ``part``.

    ``end`` is None while it lasts: until a process that was stopped goes on or is replaced; a kill is over at once.
    ``back``: when all answered again.
    """

    part: str
    what: str
    begin: float
    end: float | None = None
    back: float | None = None

    def covers(self, at: float, *, before: float = 0.0) -> bool:
        """Whether a moment lies in it or in the time after it that the product has to recover."""
        return self.begin - before <= at and (self.end is None or at <= self.end + AFTERWARDS_SECONDS)


@dataclass
class FaultLog:
    """All faults, in the order in which they were made."""

    faults: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def begin(self, part: str, what: str, at: float) -> Fault:
        """Write down that a fault begins."""
        fault = Fault(part, what, at)
        with self._lock:
            self.faults.append(fault)
        return fault

    def at(self, moment: float, *, before: float = 0.0, parts: Collection[str] | None = None) -> Fault | None:
        """The fault at a moment, if there is one; with ``parts`` one of these."""
        with self._lock:
            return next(
                (
                    fault
                    for fault in reversed(self.faults)
                    if fault.covers(moment, before=before) and (parts is None or fault.part in parts)
                ),
                None,
            )
