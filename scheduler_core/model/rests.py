"""Gangs that are left alone for a while: prolonging, and who rests at a moment."""

from collections.abc import Iterable

from scheduler_core.model.memory import Rest

# So many are remembered, those that rest longest, so that memory cannot grow for ever.
_MOST = 10_000


def prolonged(
    rests: Iterable[Rest], gang: str, why: str, *, now: float, first: float, longest: float
) -> tuple[Rest, ...]:
    """Let a gang rest from ``now`` on: ``first`` seconds, each further time twice as long, at most ``longest``."""
    others = {rest.gang: rest for rest in rests}
    before = others.pop(gang, None)
    seconds = first if before is None else min(before.seconds * 2, longest)
    others[gang] = Rest(gang=gang, why=why, until=now + seconds, seconds=seconds)
    return ordered(others.values())


def ordered(rests: Iterable[Rest]) -> tuple[Rest, ...]:
    """By name, at most so many as are kept."""
    kept = sorted(rests, key=lambda rest: (-rest.until, rest.gang))[:_MOST]
    return tuple(sorted(kept, key=lambda rest: rest.gang))


def in_force(rests: Iterable[Rest], now: float) -> dict[str, str]:
    """Why, by gang that rests at ``now``."""
    return {rest.gang: rest.why for rest in rests if rest.until > now}
