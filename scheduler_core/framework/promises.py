"""What admitted gangs are promised, by gang: mostly as columns, the rest as demands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from scheduler_core.framework.demand import Demand
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.queue_ledger import QueueLedger
from scheduler_core.state.status import Bools, Index, Ints

# Card types that the minimum of one gang may ask for in columns.
KINDS = 4


class Minimums(NamedTuple):
    """What gangs need beyond what they have, to reach minMember.

    ``cpu``, ``memory`` int64 (G,); ``card`` int32 (G, KINDS), card types in their order, -1 = no more; ``named``,
    ``total`` int64 (G, KINDS), milli-cards asked for by name, and in all; ``odd`` bool (G,), what the gang needs does
    not fit these columns (a choice of cards, an unknown card, a declared minimum)."""

    cpu: Ints
    memory: Ints
    card: Index
    named: Ints
    total: Ints
    odd: Bools

    @classmethod
    def empty(cls, size: int) -> Minimums:
        """Nothing needed by any gang."""
        return cls(
            np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), np.full((size, KINDS), -1, dtype=np.int32),
            np.zeros((size, KINDS), dtype=np.int64), np.zeros((size, KINDS), dtype=np.int64),
            np.zeros(size, dtype=np.bool_),
        )  # fmt: skip

    def copy_rows(self, rows: Ints, other: Minimums, theirs: Ints) -> None:
        """Take over rows of other minimums."""
        self.cpu[rows], self.memory[rows], self.card[rows] = other.cpu[theirs], other.memory[theirs], other.card[theirs]
        self.named[rows], self.total[rows], self.odd[rows] = other.named[theirs], other.total[theirs], other.odd[theirs]

    def write(self, gang: int, demand: Demand) -> None:
        """Note what a gang of which nothing is noted needs."""
        choices = sorted({*demand.cards, *demand.unnamed})
        self.cpu[gang], self.memory[gang] = demand.cpu_milli, demand.memory_mib
        if demand.unknown or len(choices) > KINDS or any(len(choice) != 1 for choice in choices):
            self.odd[gang] = True
            return
        for kind, choice in enumerate(choices):
            named = demand.cards.get(choice, 0)
            self.card[gang, kind], self.named[gang, kind] = choice[0], named
            self.total[gang, kind] = named + demand.unnamed.get(choice, 0)

    def demand(self, gang: int) -> Demand:
        """The same of one gang, as :meth:`Session.minimum` has it."""
        cards: dict[tuple[int, ...], int] = {}
        unnamed: dict[tuple[int, ...], int] = {}
        parts = zip(self.card[gang].tolist(), self.named[gang].tolist(), self.total[gang].tolist(), strict=True)
        for card, named, total in parts:
            if card >= 0 and named:
                cards[card,] = named
            if card >= 0 and total > named:
                unnamed[card,] = total - named
        return Demand(int(self.cpu[gang]), int(self.memory[gang]), cards, unnamed, {})


class Promises(Mapping[int, Demand]):
    """A mapping from gang to what it is promised. The ledger's ``inqueue`` is the business of the caller, except in
    :meth:`take_back`."""

    def __init__(self, gangs: int) -> None:
        self._single: dict[int, Demand] = {}
        self._held: Bools = np.zeros(gangs, dtype=np.bool_)
        self._minimums: Minimums | None = None

    def copy(self) -> Promises:
        other = Promises(len(self._held))
        other._single, other._held, other._minimums = dict(self._single), self._held.copy(), self._minimums
        return other

    def hold(self, gangs: Bools, minimums: Minimums) -> None:
        """Note that the given gangs (bool (G,)) are promised their minimums, and forget all columns before."""
        self._held, self._minimums = gangs.copy(), minimums

    def __getitem__(self, gang: int) -> Demand:
        if self._minimums is not None and self._held[gang]:
            return self._minimums.demand(gang)
        return self._single[gang]

    def __setitem__(self, gang: int, demand: Demand) -> None:
        self._held[gang] = False
        self._single[gang] = demand

    def __iter__(self) -> Iterator[int]:
        yield from np.flatnonzero(self._held).tolist()
        yield from self._single

    def __len__(self) -> int:
        return int(np.count_nonzero(self._held)) + len(self._single)

    def __contains__(self, gang: object) -> bool:
        return isinstance(gang, int) and (bool(self._held[gang]) or gang in self._single)

    def pop(self, gang: int, default: None = None) -> Demand | None:
        if self._held[gang]:
            found = self[gang]
            self._held[gang] = False
            return found
        return self._single.pop(gang, default)

    def take_back(self, gangs: Bools, queue: Index, ledger: QueueLedger) -> list[int]:
        """Withdraw what gangs (bool (G,)) are promised in columns, from ``ledger.inqueue`` too. Returns: Those of them
        that are promised something else, for the caller to withdraw one by one."""
        minimums, inqueue = self._minimums, ledger.inqueue
        if minimums is not None and (at := np.flatnonzero(gangs & self._held)).size:
            of = queue[at]
            np.subtract.at(inqueue[CPU], of, minimums.cpu[at])
            np.subtract.at(inqueue[MEMORY], of, minimums.memory[at])
            for kind in range(KINDS):
                card = minimums.card[at, kind].astype(np.int64)
                has = card >= 0
                if not has.any():
                    break
                np.subtract.at(inqueue, (LEDGER_CARDS + card[has], of[has]), minimums.total[at, kind][has])
            self._held[at] = False
        return [gang for gang in self._single if gangs[gang]]
