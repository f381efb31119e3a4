"""What happened in a session, gang by gang, for the result and the reasons."""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from scheduler_core.framework.demand import Shortfall
from scheduler_core.model.decision import Event, Eviction, Reclaim
from scheduler_core.model.later import Later
from scheduler_core.model.memory import Rest


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


class Account(NamedTuple):
    """Evictions and reclaims that are written when they are read: how many, and the function that writes them.
    ``write`` needs none of the session's tables."""

    evictions: int
    reclaims: int
    write: Callable[[], tuple[list[Eviction], list[Reclaim]]]


class Trace:
    """Collected by the actions; nothing in it changes a decision.

    Attributes:
        enqueue_refusals: gang -> why it was not admitted.
        evictions, reclaims, events: in the order in which they were made; ``accounts`` hold more of the first two.
        fallen: gangs of which members were evicted.
        reclaim_refusals: gang -> rule by candidate gang, for a reclaim that came to nothing.
        notes: gang -> a sentence that its reason ends with, if it still waits.
        cooling: lasting name -> rest of a gang that was evicted. counters: how often something was done, by name."""

    def __init__(self) -> None:
        self.enqueue_refusals = Refusals()
        self.evictions: list[Eviction] = []
        self.reclaims: list[Reclaim] = []
        self.accounts: list[Account] = []
        self.fallen: set[int] = set()
        self.events: list[Event] = []
        self.reclaim_refusals: dict[int, dict[str, str]] = {}
        self.notes: dict[int, str] = {}
        self.cooling: dict[str, Rest] = {}
        self.counters: dict[str, int] = {}

    def count(self, name: str, by: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + by

    def told(self) -> tuple[Sequence[Eviction], Sequence[Reclaim]]:
        """All evictions by pod, all reclaims by who took; those of accounts are written when one of them is read."""
        accounts, evictions, reclaims = tuple(self.accounts), tuple(self.evictions), tuple(self.reclaims)
        if not accounts:
            return _in_order(evictions, reclaims)
        written: list[tuple[tuple[Eviction, ...], tuple[Reclaim, ...]]] = []

        def write() -> tuple[tuple[Eviction, ...], tuple[Reclaim, ...]]:
            if not written:
                parts = [account.write() for account in accounts]
                written.append(
                    _in_order(
                        [*evictions, *chain.from_iterable(part for part, _ in parts)],
                        [*reclaims, *chain.from_iterable(part for _, part in parts)],
                    )
                )
            return written[0]

        return (
            Later(len(evictions) + sum(account.evictions for account in accounts), lambda: write()[0]),
            Later(len(reclaims) + sum(account.reclaims for account in accounts), lambda: write()[1]),
        )


def _in_order(
    evictions: Sequence[Eviction], reclaims: Sequence[Reclaim]
) -> tuple[tuple[Eviction, ...], tuple[Reclaim, ...]]:
    return (
        tuple(sorted(evictions, key=attrgetter("pod"))),
        tuple(sorted(reclaims, key=attrgetter("reclaimer", "action"))),
    )
