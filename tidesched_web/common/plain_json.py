from typing import Any

from tidesched_web.common.errors import DomainError

_MOST = 2**63


MOST_DEEP = 100
# The names that lead to one value, together. What refuses a value writes them beside it, so they have to be short.
LONGEST_PATH = 2000
_SHOWN = 200


class _Unfit(ValueError):
    """What is wrong; the path that is walked then stands at the place."""


def check_plain(value: Any, at: str = "") -> None:
    """O(size of the value): the pointer is put together once, for what is refused."""
    path: list[str | int] = []
    try:
        _check(value, path, 0)
    except _Unfit as unfit:
        raise DomainError.for_field(at + _pointer(path), str(unfit)) from None


def _check(value: Any, path: list[str | int], length: int) -> None:
    """``path``: the names and numbers that lead to ``value``; ``length``: the characters of the names among them."""
    if isinstance(value, str):
        if "\0" in value or (not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value)):
            raise _Unfit("A text holds a character that cannot be stored.")
    elif isinstance(value, int | float):
        if not -_MOST <= value < _MOST:  # what is no number is within no bounds either
            raise _Unfit("A number is too large.")
    elif isinstance(value, dict | list) and len(path) >= MOST_DEEP:
        raise _Unfit(f"Values may stand {MOST_DEEP} deep in each other; these stand deeper.")
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check(name, path, length)
            path.append(name)
            below = length + len(name)
            if below > LONGEST_PATH:
                raise _Unfit(f"The names that lead to a value may have {LONGEST_PATH} characters together, not more.")
            _check(inner, path, below)
            path.pop()
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            path.append(number)
            _check(inner, path, length)
            path.pop()


def _pointer(path: list[str | int]) -> str:
    place = "".join("/" + str(step)[:_SHOWN].replace("~", "~0").replace("/", "~1") for step in path)
    return place if len(place) <= _SHOWN else f"{place[:_SHOWN]}…"
