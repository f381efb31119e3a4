"""What many requests read alike, kept while the process reads live events, until one says that it may have changed.

A change of this process counts at once, one of another as soon as its event is read. A person's own change may have
been made by another process: pages that follow it read anew for `AFTER_WRITE_SECONDS`.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

MOST_SECONDS = 1.0
MOST_KEPT = 500
AFTER_WRITE_SECONDS = 5
Value = TypeVar("Value")
_anew: ContextVar[bool] = ContextVar("tidesched_read_anew", default=False)


@contextmanager
def read_anew(*, wanted: bool) -> Iterator[None]:
    mark = _anew.set(wanted)
    try:
        yield
    finally:
        _anew.reset(mark)


class Memory:
    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[float, int, Any]] = {}
        self._changes: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._reading: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)
        self.follows = False

    def get(
        self, key: Hashable, topics: Iterable[str], read: Callable[[], Value], *, seconds: float | None = None
    ) -> Value:
        """The value of the key, read where it is not known. ``seconds``: how long it holds where no event ends it."""
        if not self.used():
            return read()
        topics = tuple(topics)
        with self._lock:
            reading = self._reading[key]
        # Those who come while one reads wait for what that one finds.
        with reading:
            now = time.monotonic()
            with self._lock:
                # What changes while it is read may be missing in it: the count is that of before.
                changes = sum(self._changes[topic] for topic in topics)
                at, known, value = self._kept.get(key, (0.0, -1, None))
            if known == changes and now - at < (MOST_SECONDS if seconds is None else seconds):
                found: Value = value
                return found
            found = read()
            with self._lock:
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                    self._reading.clear()
                self._kept[key] = (now, changes, found)
            return found

    def used(self) -> bool:
        return self.follows and not _anew.get()

    def forget(self, topics: Iterable[str]) -> None:
        with self._lock:
            self._changes.update(set(topics))

    def follow(self, *, events: bool) -> None:
        with self._lock:
            self.follows = events
            self._kept.clear()


memory = Memory()
