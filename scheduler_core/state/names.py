"""Names of gangs by position, made when they are read: most sessions read few of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from scheduler_core.model.podgroup import PodGroup


class Names(Sequence[str]):
    """Reads like a list of what ``name_of`` says of each PodGroup; made at once when it is iterated."""

    __slots__ = ("_groups", "_made", "_name_of")

    def __init__(self, groups: Sequence[PodGroup], name_of: Callable[[PodGroup], str]) -> None:
        self._groups, self._name_of = groups, name_of
        self._made: list[str] | None = None

    def __len__(self) -> int:
        return len(self._groups)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self._all()[index]
        return self._name_of(self._groups[index]) if self._made is None else self._made[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | Names) and self._all() == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list

    def _all(self) -> list[str]:
        if self._made is None:
            self._made = [self._name_of(group) for group in self._groups]
        return self._made


def name_of(group: PodGroup) -> str:
    return f"{group.namespace}/{group.name}"
