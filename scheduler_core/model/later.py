"""Lists whose entries are made when they are read. A session over 100,000 tasks decides in less time than it takes to
make an object for each decision, and most of these objects are never read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, overload

Value = TypeVar("Value")


class Later(Sequence[Value]):
    """A tuple that is made on first use; equal to the tuple. ``size``: how many entries there will be. ``make``: gives
    them; called once at most."""

    __slots__ = ("_make", "_size", "_values")

    def __init__(self, size: int, make: Callable[[], Iterable[Value]]) -> None:
        self._size = size
        self._make: Callable[[], Iterable[Value]] | None = make
        self._values: tuple[Value, ...] = ()

    @property
    def values(self) -> tuple[Value, ...]:
        if self._make is not None:
            # What they are made of can go once they are there.
            self._values, self._make = tuple(self._make()), None
        return self._values

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Value]:
        return iter(self.values)

    @overload
    def __getitem__(self, index: int) -> Value: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Value, ...]: ...

    def __getitem__(self, index: int | slice) -> Value | tuple[Value, ...]:
        return self.values[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Later):
            return self.values == other.values
        return isinstance(other, tuple) and self.values == other

    def __hash__(self) -> int:
        return hash(self.values)

    def __repr__(self) -> str:
        return repr(self.values)
