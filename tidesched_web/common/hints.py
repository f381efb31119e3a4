import difflib
import reprlib
from collections.abc import Callable, Collection
from typing import Any, Final

# Names are compared letter by letter. A request with thousands of wrong names would hold a worker, and the lock of a
# tree, for minutes: so many of them are answered with the nearest known one.
MOST_HINTS: Final = 20
# Of the unknown fields of one document so many are named; the others are counted.
MOST_UNKNOWN: Final = 20
# Of more known names than these only such with the same two first letters are compared.
MOST_COMPARED: Final = 1000
LONGEST_NAME: Final = 253


class _Short(reprlib.Repr):
    def repr_int(self, value: int, level: int) -> str:
        """Python refuses to write a number of thousands of digits."""
        if value.bit_length() > MOST_BITS:
            return f"{'-' * (value < 0)}10^{value.bit_length() * 3 // 10}"
        return super().repr_int(value, level)


# A longer number is said by its size.
MOST_BITS: Final = 1000
_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 80


class Hints:
    def __init__(self, most: int = MOST_HINTS) -> None:
        self._left = most

    def near(self, name: str, known: Collection[str] | Callable[[], Collection[str]]) -> str | None:
        """``known`` as a function is called only where a hint is given."""
        return nearest(name, known() if callable(known) else known) if self.take() else None

    def take(self) -> bool:
        self._left -= 1
        return self._left >= 0


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that is spelt most like ``name``; compares with `MOST_COMPARED` of them at most."""
    found = difflib.get_close_matches(name[:LONGEST_NAME], compared(name, known), n=1)
    return found[0] if found else None


def compared(name: str, known: Collection[str], most: int = MOST_COMPARED) -> list[str]:
    """The known names to compare ``name`` with: of more than ``most`` those with the same two first letters."""
    if len(known) > most:
        return [other for other in known if other[:2] == name[:2]][:most]
    return list(known)


class Shown:
    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        return _SHORT.repr(self._value)

    def __str__(self) -> str:
        return cut(self._value) if isinstance(self._value, str) else repr(self)


def cut(text: str, most: int = LONGEST_NAME) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
