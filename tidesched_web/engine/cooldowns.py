"""Which gangs the scheduler leaves alone for a while after an eviction, as its memory has it."""

from __future__ import annotations

import datetime as dt

from tidesched_web.engine.model import Memory


def spared_until(memory: Memory | None, now: dt.datetime) -> dict[str, float]:
    """Until when (seconds since the epoch) each gang is no victim, by its key or its lasting name."""
    if memory is None:
        return {}
    return {rest.gang: rest.until for rest in memory.spared if rest.until > now.timestamp()}
