"""Values of JSON that somebody sent: refused where no database or no answer could hold them."""

from __future__ import annotations

from typing import Any

from tidesched_web.common.errors import DomainError

_MOST = 2**63


MOST_DEEP = 100


def check_plain(value: Any, at: str = "", depth: int = 0) -> None:
    """Refuse NUL, halves of surrogate pairs, numbers beyond 64 bits and what stands too deep, with their place.

    Raises:
        DomainError: ``invalid`` at the member.
    """
    if isinstance(value, str):
        if "\0" in value or (not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value)):
            raise _refused(at, "A text holds a character that cannot be stored.")
    elif isinstance(value, int | float):
        if not -_MOST <= value < _MOST:  # what is no number is within no bounds either
            raise _refused(at, "A number is too large.")
    elif isinstance(value, dict | list) and depth >= MOST_DEEP:
        place = at if len(at) < 200 else f"{at[:200]}…"
        raise _refused(place, f"Values may stand {MOST_DEEP} deep in each other; these stand deeper.")
    elif isinstance(value, dict):
        for name, inner in value.items():
            check_plain(name, at)
            check_plain(inner, f"{at}/{name}", depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            check_plain(inner, f"{at}/{number}", depth + 1)


def _refused(at: str, detail: str) -> DomainError:
    return DomainError.for_field(at, detail)
