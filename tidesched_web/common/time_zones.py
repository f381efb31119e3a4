"""The time zones that may be named."""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones


@cache
def time_zones() -> tuple[str, ...]:
    """Names of time zones, the ones with a place in them first."""
    return tuple(sorted(available_timezones(), key=lambda name: ("/" not in name, name)))
