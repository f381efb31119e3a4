"""The objects of a large cluster hold no circles and live long: garbage is looked for between two sessions only."""

import gc
import threading
import time

# Python's own are 700, 10 and 10. A page of a list makes some ten thousand objects that stay.
_THRESHOLDS = (50_000, 20, 50)
# What a process leaves in circles goes after so long, or later where looking is dear: looking takes at most this share.
EVERY_SECONDS = 30.0
SHARE = 0.005
# A process that is never quiet for long enough is asked all the same, after so many times that long.
PATIENCE = 10


def look_seldom() -> None:
    gc.set_threshold(*_THRESHOLDS)


def pass_over() -> None:
    """Leave all that is there now out of every later look; it still goes when nothing refers to it."""
    gc.freeze()


class QuietCollector:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = time.monotonic()
        self.seconds = 0.0
        self.found = 0

    def quiet(self, seconds: float) -> bool:
        if not self._lock.acquire(blocking=False):
            return False  # another cluster's thread collects
        try:
            waited = time.monotonic() - self._at
            due = max(EVERY_SECONDS, self.seconds / SHARE)
            if waited < due or (seconds < self.seconds and waited < PATIENCE * due):
                return False
            since = time.perf_counter()
            self.found = gc.collect()
            self.seconds, self._at = time.perf_counter() - since, time.monotonic()
            return True
        finally:
            self._lock.release()


quiet_moments = QuietCollector()
