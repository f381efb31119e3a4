"""Addresses where a person met a large work of late: their next request for one does not find it out anew.

To find it out, what is large has to be read first, in a turn that it does not keep. It is remembered of that person
alone: what is large of one address, such as that of the quota grid with a draft, may be small for all others.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

MOST_KNOWN: Final = 1_000
# What was large may have become small, or gone, since then.
KNOWN_SECONDS: Final = 60.0


class Places:
    """Of one web process, on its event loop."""

    def __init__(self) -> None:
        self._until: OrderedDict[tuple[str, str], float] = OrderedDict()

    def are_dear(self, person: str, path: str) -> bool:
        """Whether a request of this person for this address was dear a moment ago."""
        return self._until.get((person, path), 0.0) > time.monotonic()

    def learn(self, person: str, path: str) -> None:
        """Remember it for a while."""
        self._until[person, path] = time.monotonic() + KNOWN_SECONDS
        self._until.move_to_end((person, path))
        if len(self._until) > MOST_KNOWN:
            self._until.popitem(last=False)
