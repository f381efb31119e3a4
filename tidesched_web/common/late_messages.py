"""Messages that came too late to be of use: counted, and said once a minute instead of each time.

They are dropped on purpose: the work stands in PostgreSQL, and the next message asks for the same. Many of them say
that the machine is too busy.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

_log = logging.getLogger(__name__)

SAID_EVERY_SECONDS = 60.0


class LateMessages:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._counts: Counter[str] = Counter()
        self._said_at = float("-inf")

    def note(self, name: str) -> None:
        """One was dropped; the first is said at once, all others together with the next that is said."""
        with self._lock:
            self._counts[name.rpartition(".")[2]] += 1
            now = self._clock()
            if now - self._said_at < SAID_EVERY_SECONDS:
                return
            counts, self._counts, self._said_at = self._counts, Counter(), now
        told = ", ".join(f"{count} × {task}" for task, count in sorted(counts.items()))
        _log.warning("messages came too late and were dropped; the next ones ask for the same: %s", told)
