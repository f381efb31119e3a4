"""The cluster's own clock: it runs ``rate`` times as fast as the wall, and stands still while the server is down."""

import time
from collections.abc import Callable
from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class VirtualClock:
    """Virtual time = anchor + (wall - anchor wall) x rate, up to a horizon that is stored first: it never goes back."""

    def __init__(self, start: float, rate: float, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._monotonic = monotonic
        self._anchor, self._anchor_wall = start, monotonic()
        self.horizon = start

    def now(self) -> float:
        return min(self._running(), self.horizon)

    def _running(self) -> float:
        return self._anchor + (self._monotonic() - self._anchor_wall) * self.rate

    def next_horizon(self, margin: float) -> float:
        """The time that is reached ``margin`` wall seconds from now, to be stored and then passed to ``extend``."""
        return max(self.horizon, self.now() + margin * self.rate)

    def extend(self, horizon: float) -> None:
        """Where it stood at the old horizon (the process was held up), it goes on from there instead of jumping."""
        if self._running() > self.horizon:
            self._anchor, self._anchor_wall = self.horizon, self._monotonic()
        self.horizon = max(self.horizon, horizon)
