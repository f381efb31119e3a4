"""How long an open page rests between two looks, so that all open pages together leave room for who clicks.

A page cannot know how many others are open. The web process does, and knows what an answer costs it: it tells each
page a rest at which all of them together take `SHARE` of one processor.
"""

from __future__ import annotations

from tidesched_web import env

SHARE = 0.2 / env.number("WEB_PROCESSES", 1)
LEAST_SECONDS, MOST_SECONDS = 2.5, 60.0
# How many answers the average cost is of.
_OF_LATE = 100


class Pace:
    """Counts open streams and what answers cost; any thread may ask."""

    def __init__(self) -> None:
        self.streams = 0
        self._seconds = 0.0

    def took(self, seconds: float) -> None:
        """An answer has cost so much processor time."""
        self._seconds += (seconds - self._seconds) / _OF_LATE

    def rest(self) -> float:
        """Seconds between two looks of one page."""
        return round(min(MOST_SECONDS, max(LEAST_SECONDS, self.streams * self._seconds / SHARE)), 1)


pace = Pace()
