"""For how long card types are as good as full: by type, and several of them at once."""

from __future__ import annotations

from collections.abc import Mapping

SATURATED_SHARE = 0.95
SATURATED_TYPES = 3


class Saturation:
    """Kept from each change of what is taken, so that it is exact however far apart sessions are.

    A change at a moment at which no time passes breaks no stretch.

    Attributes:
        seconds: by card type, how long at least :data:`SATURATED_SHARE` of it was taken.
        together: how long at least :data:`SATURATED_TYPES` types were at once. longest: the longest time on end.
    """

    def __init__(self, capacity: Mapping[str, int], start: float) -> None:
        self._enough = {card: SATURATED_SHARE * milli for card, milli in capacity.items()}
        self._full: dict[str, None] = {}
        self._at = start
        self._stretch = self.together = self.longest = 0.0
        self.seconds = dict.fromkeys(capacity, 0.0)

    def taken(self, card: str, milli: int, at: float) -> None:
        """From now on so much of a type is taken."""
        if (milli >= self._enough[card]) == (card in self._full):
            return
        self.bring_up(at)
        if card in self._full:
            del self._full[card]
        else:
            self._full[card] = None

    def bring_up(self, at: float) -> None:
        """Count the time until now."""
        passed = at - self._at
        if passed <= 0:
            return
        self._at = at
        for card in self._full:
            self.seconds[card] += passed
        if len(self._full) >= SATURATED_TYPES:
            self.together += passed
            self._stretch += passed
            self.longest = max(self.longest, self._stretch)
        else:
            self._stretch = 0.0
