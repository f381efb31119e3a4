from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidesched_web.console.paging import part_of

# So much of a plan is on its page at a time, a bit more than a millisecond each; all of it is in the REST API.
FIGURES: Final = 200
OBJECTS: Final = 10
# What is listed beside them: warnings, figures that others moved, objects on their way.
NOTES: Final = 100


@dataclass(frozen=True, slots=True)
class Part:
    rows: list[Any]
    first: int
    all: int
    next: str
    previous: str

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1

    @property
    def more(self) -> int:
        return self.all - self.last

    def __bool__(self) -> bool:
        return bool(self.rows)


def part(rows: Sequence[Any], place: str = "", *, size: int = NOTES) -> Part:
    found = part_of(rows, place, size=size)
    first = int(place) if found.previous else 0
    return Part(found.rows, first + 1, len(rows), found.next, found.previous)
