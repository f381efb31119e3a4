"""Durations as Go writes them: ``1h30m``, ``90s``, ``500ms``."""

import re
from fractions import Fraction

_UNITS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)", re.ASCII)
# A hundred years: longer than anything that is waited for, and far from the end of a float's whole numbers.
_LONGEST = Fraction(100 * 365 * 24 * 3600)


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError: no such duration, zero or less, or more than a hundred years."""
    plain = text.strip().removeprefix("+")
    parts = list(_PART.finditer(plain))
    if not parts or "".join(part.group() for part in parts) != plain:
        raise ValueError(f"{text[:40]!r} is not a duration; write for example '1h30m' or '90s'")
    seconds = sum((Fraction(part.group(1)) * _UNITS[part.group(2)] for part in parts), Fraction(0))
    if not 0 < seconds <= _LONGEST:
        raise ValueError(f"{text[:40]!r} is not between nothing and a hundred years")
    return float(seconds)
