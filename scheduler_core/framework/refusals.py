"""Why gangs were not admitted: a mapping whose values are made when they are read."""

from collections.abc import Callable, Iterable, Iterator, MutableMapping

from scheduler_core.framework.demand import Shortfall


class Refusals(MutableMapping[int, Shortfall]):
    """Gang -> what it lacks. On a full cluster thousands wait, and few are asked about."""

    def __init__(self) -> None:
        self._made: dict[int, Shortfall | None] = {}
        self._make: Callable[[int], Shortfall] | None = None

    def hold(self, gangs: Iterable[int], make: Callable[[int], Shortfall]) -> None:
        """Note that these gangs were refused; ``make`` says why, and must go on saying the same."""
        self._made.update(dict.fromkeys(gangs))
        self._make = make

    def __getitem__(self, gang: int) -> Shortfall:
        found = self._made[gang]
        if found is None:
            assert self._make is not None
            found = self._made[gang] = self._make(gang)
        return found

    def __setitem__(self, gang: int, refusal: Shortfall) -> None:
        self._made[gang] = refusal

    def __delitem__(self, gang: int) -> None:
        del self._made[gang]

    def __contains__(self, gang: object) -> bool:
        return gang in self._made

    def __iter__(self) -> Iterator[int]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
