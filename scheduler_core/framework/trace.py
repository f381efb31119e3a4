"""What happened in a session, gang by gang, for the result and the reasons."""

from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from scheduler_core.framework.refusals import Refusals
from scheduler_core.model.decision import Event, Eviction, Reclaim
from scheduler_core.model.later import Later
from scheduler_core.model.memory import Rest


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
        cooling: lasting name -> rest of a gang that was evicted.
        counters: how often something was done, by name."""

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
