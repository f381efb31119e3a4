"""How tests wait: for an event, with a patience that no busy machine uses up."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0


def until(condition: Callable[[], object], patience: float = PATIENCE, *, said: Callable[[], str] = lambda: "") -> None:
    """Return as soon as the condition holds; ``said`` is what the failure shows where it does not in time."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {patience:g} s. {said()}"
        time.sleep(0.02)
