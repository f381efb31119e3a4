"""How tests wait: for an event, with a patience that no busy machine uses up.

Nothing else in the gate's tests asks how long something took (`tests/elapsed_time.py` looks).
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0
_EVERY = 0.03


def until(check: Callable[[], Any], patience: float = PATIENCE, *, story: Callable[[], object] = str) -> Any:
    """The first true value of ``check()``; where none comes in time it fails with the last one and the story."""
    deadline = time.monotonic() + patience
    while not (value := check()):
        assert time.monotonic() < deadline, f"not true within {patience:g} s, last: {value!r}\n{story()}"
        time.sleep(_EVERY)
    return value


async def until_async(
    check: Callable[[], Any], patience: float = PATIENCE, *, story: Callable[[], object] = str
) -> Any:
    """The same beside an event loop; ``check`` may be a coroutine function."""
    deadline = time.monotonic() + patience
    while True:
        value = check()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        assert time.monotonic() < deadline, f"not true within {patience:g} s, last: {value!r}\n{story()}"
        await asyncio.sleep(_EVERY)
