"""What the product answered: how long each page took, and what a well-behaved client should not have met.

Troubles are written down as they were; whether a fault of the crew excuses one is decided at the end (`verdict.py`).
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path

SERVER_ERROR, TOO_MANY, UNAVAILABLE = "5xx", "429", "503"
UNREACHABLE, CONSOLE, STRANGER, UNEXPECTED = "unreachable", "console error", "stranger saw", "unexpected answer"
STOPPED = "stopped"


@dataclass
class Trouble:
    """Something that should not have happened."""

    kind: str
    person: str
    where: str
    detail: str
    at: float
    write: bool = False
    retry_after: bool = False

    def line(self) -> str:
        """As a line of the report."""
        clock = time.strftime("%H:%M:%S", time.gmtime(self.at))
        return f"{clock} {self.kind}: {self.person} at {self.where}: {self.detail}"


@dataclass
class Ledger:
    """Times by page, counts by status, and troubles. Threads of one process share it."""

    times: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    statuses: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    troubles: list[Trouble] = field(default_factory=list)
    received: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def answered(
        self,
        *,
        person: str,
        page: str,
        where: str,
        method: str,
        status: int,
        began: float,
        seconds: float,
        size: int,
        headers: dict[str, str],
        text: str = "",
        behaved: bool = True,
    ) -> None:
        """One answer. ``behaved``: the client keeps to its manners, so that no limit should meet it."""
        with self._lock:
            self.statuses[f"{page} {status}"] += 1
            self.received += size
            if behaved:
                self.times[page].append((began, seconds))
        kind = ""
        if status == 503:
            kind = UNAVAILABLE if behaved else ""
        elif status >= 500:
            kind = SERVER_ERROR
        elif status == 429:
            kind = TOO_MANY if behaved else ""
        if kind:
            retry_after = any(name.lower() == "retry-after" for name in headers)
            said = " ".join(text[:300].split())
            named = f"{method} → {status} after {seconds:.2f} s {headers.get('x-request-id', '')} {said}"
            self.trouble(kind, person, where, named, write=method not in ("GET", "HEAD"), retry_after=retry_after)

    def trouble(
        self,
        kind: str,
        person: str,
        where: str,
        detail: str,
        *,
        write: bool = False,
        retry_after: bool = False,
        at: float | None = None,
    ) -> None:
        """Write a trouble down."""
        one = Trouble(kind, person, where, detail, time.time() if at is None else at, write, retry_after)
        with self._lock:
            self.troubles.append(one)

    def store(self, path: Path) -> None:
        """For the process that makes the report."""
        with self._lock:
            given = {
                "times": self.times,
                "statuses": self.statuses,
                "received": self.received,
                "troubles": [asdict(one) for one in self.troubles],
            }
            text = json.dumps(given)
        path.write_text(text, encoding="utf-8")

    def add(self, path: Path) -> None:
        """Take in what another process has stored."""
        given = json.loads(path.read_text(encoding="utf-8"))
        with self._lock:
            for page, times in given["times"].items():
                self.times[page] += [(began, seconds) for began, seconds in times]
            for name, count in given["statuses"].items():
                self.statuses[name] += count
            self.received += given["received"]
            self.troubles += [Trouble(**one) for one in given["troubles"]]
