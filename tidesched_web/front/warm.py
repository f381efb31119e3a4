"""What a web process keeps for good, left out of the later looks of Python's collector of garbage.

A look at everything stops the process while a probe waits: with all templates and modules loaded (260,000 objects,
210 MiB) it was measured to take 0.2 s of processor time, and less than 0.1 ms once these were left out. Most of what is
there is kept for as long as the process lives: templates, statements, texts by language. It comes with the first ten
thousand answers, most of it with the first hundred. So the collector looks after few answers, then each time after
twice as many, and leaves out what it finds: each look goes through what has come since the last one alone. Garbage of
requests is found as before. While a large body is read, whose values are some hundred thousand objects for a moment, a
look that is due waits: of 20,000 queues it was measured to take 0.4 s.
"""

from __future__ import annotations

import gc
from typing import Final

# Few pages fill what only they need, so it takes some ten thousand answers until nothing new comes.
FIRST_LOOK: Final = 25
LAST_LOOK: Final = 25_600


class Warmth:
    """Counts the answers of one process."""

    def __init__(self) -> None:
        self.answers = 0
        self._next = FIRST_LOOK

    def answered(self, *, busy: bool = False) -> None:
        """An answer was given; ``busy``: large bodies are being read."""
        self.answers += 1
        if not busy and self._next <= min(self.answers, LAST_LOOK):
            self._next *= 2
            gc.collect()
            gc.freeze()
