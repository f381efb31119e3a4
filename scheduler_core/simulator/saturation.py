"""For how long card types are as good as full: by type, and several of them at once."""

from collections.abc import Mapping

SATURATED_SHARE = 0.95
SATURATED_TYPES = 3
# The step of the tide curve: between two of its values the demand of inference stays the same.
WINDOW_SECONDS = 300.0


class Saturation:
    """Kept from each change of what is taken, so that it is exact however far apart sessions are.

    A change at a moment at which no time passes breaks no stretch.

    Attributes:
        seconds: by card type, how long at least :data:`SATURATED_SHARE` of it was taken.
        together: how long at least :data:`SATURATED_TYPES` types were at once. longest: the longest time on end.
        steady: the means of windows."""

    def __init__(self, capacity: Mapping[str, int], start: float) -> None:
        self._enough = {card: SATURATED_SHARE * milli for card, milli in capacity.items()}
        self._full: dict[str, None] = {}
        self._at = start
        self._stretch = self.together = self.longest = 0.0
        self.seconds = dict.fromkeys(capacity, 0.0)
        self.steady = SteadySaturation(capacity, start)

    def taken(self, card: str, milli: int, at: float) -> None:
        self.steady.taken(card, milli, at)
        if (milli >= self._enough[card]) == (card in self._full):
            return
        self._pass(at)
        if card in self._full:
            del self._full[card]
        else:
            self._full[card] = None

    def bring_up(self, at: float) -> None:
        """Count the time until now."""
        self.steady.bring_up(at)
        self._pass(at)

    def _pass(self, at: float) -> None:
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


class SteadySaturation:
    """The same of the means of windows of :data:`WINDOW_SECONDS`, to which the turnover of pods between two sessions
    (cards that one has left and the next has not yet taken) is no end of a stretch. A window that is not over counts
    for nothing.

    Attributes:
        seconds: by card type. together, longest: of :data:`SATURATED_TYPES` types in one window."""

    def __init__(self, capacity: Mapping[str, int], start: float) -> None:
        self._enough = {card: SATURATED_SHARE * milli * WINDOW_SECONDS for card, milli in capacity.items()}
        self._milli = dict.fromkeys(capacity, 0)
        self._since = dict.fromkeys(capacity, start)
        self._sums = dict.fromkeys(capacity, 0.0)
        self._end = start + WINDOW_SECONDS
        self._stretch = self.together = self.longest = 0.0
        self.seconds = dict.fromkeys(capacity, 0.0)

    def taken(self, card: str, milli: int, at: float) -> None:
        self.bring_up(at)
        self._add(card, at)
        self._milli[card] = milli

    def bring_up(self, at: float) -> None:
        """Count the windows that are over."""
        while at >= self._end:
            self._close()

    def _close(self) -> None:
        full = 0
        for card in self._sums:
            self._add(card, self._end)
            if self._sums[card] >= self._enough[card]:
                full += 1
                self.seconds[card] += WINDOW_SECONDS
            self._sums[card] = 0.0
        self._stretch = self._stretch + WINDOW_SECONDS if full >= SATURATED_TYPES else 0.0
        self.together += WINDOW_SECONDS if full >= SATURATED_TYPES else 0.0
        self.longest = max(self.longest, self._stretch)
        self._end += WINDOW_SECONDS

    def _add(self, card: str, at: float) -> None:
        self._sums[card] += self._milli[card] * (at - self._since[card])
        self._since[card] = at
