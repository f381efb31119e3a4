"""What a web process keeps for good, left out of the later looks of Python's collector of garbage.

A look at everything stops the process while a probe waits: with all templates and modules loaded (260,000 objects,
210 MiB) it was measured to take 0.2 s of processor time, and less than 0.1 ms once these were left out. Most of what is
there is kept for as long as the process lives: templates, statements, texts by language. It is there after some hundred
answers, so the collector looks once then and leaves it out. Garbage of requests is found as before.
"""

from __future__ import annotations

import gc

# The first answers fill what every page needs, the next ones what few pages need.
LOOKS_AFTER = (200, 2_000, 20_000)


class Warmth:
    """Counts the answers of one process."""

    def __init__(self) -> None:
        self.answers = 0

    def answered(self) -> None:
        """An answer was given."""
        self.answers += 1
        if self.answers in LOOKS_AFTER:
            gc.collect()
            gc.freeze()
