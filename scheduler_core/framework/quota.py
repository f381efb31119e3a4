"""A demand against limits, with what is in use and what is promised: one comparison for queues and for the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler_core.algorithms.card_quota import Choice, first_excess
from scheduler_core.framework.demand import Shortfall
from scheduler_core.model.reason import ReasonCode
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY


class Book:
    """Rows cpu, memory, cards by type (as in the queue ledger), all in canonical units.

    Attributes:
        code, queue: what a shortfall is called, and whose limit it is (empty = the cluster's).
        names: card types. limits, used, promised: by row.
        choices: promised milli-cards by the card types of which any will do.
    """

    def __init__(
        self,
        code: ReasonCode,
        names: Sequence[str],
        *,
        limits: list[int],
        used: list[int],
        promised: list[int],
        choices: Mapping[Choice, int],
        queue: str = "",
    ) -> None:
        self.code, self.queue, self.names = code, queue, names
        self.limits, self.used, self.promised, self.choices = limits, used, promised, choices

    def shortfall(self, cpu_milli: int, memory_mib: int, cards: Mapping[Choice, int]) -> Shortfall | None:
        """The first resource that a demand finds too little of: cpu, memory, then cards; None when it has room."""
        for row, label, asked in ((CPU, "cpu", cpu_milli), (MEMORY, "memory", memory_mib)):
            over = asked + self.used[row] + self.promised[row] - self.limits[row]
            if asked > 0 and over > 0:
                return Shortfall(
                    code=self.code,
                    resource=label,
                    requested=asked,
                    limit=self.limits[row],
                    allocated=self.used[row],
                    inqueue=self.promised[row],
                    short=over,
                    queue=self.queue,
                )
        return self._cards(cards) if cards else None

    def _cards(self, demand: Mapping[Choice, int]) -> Shortfall | None:
        rows = zip(self.limits[LEDGER_CARDS:], self.used[LEDGER_CARDS:], self.promised[LEDGER_CARDS:], strict=True)
        excess = first_excess(demand, self.choices, [limit - used - promised for limit, used, promised in rows])
        if excess is None:
            return None
        cards, asked, have = excess
        requested = sum(milli for choice, milli in demand.items() if frozenset(choice) <= cards)
        limit = sum(self.limits[LEDGER_CARDS + card] for card in cards)
        allocated = sum(self.used[LEDGER_CARDS + card] for card in cards)
        return Shortfall(
            code=self.code,
            resource="|".join(self.names[card] for card in sorted(cards)),
            requested=requested,
            limit=limit,
            allocated=allocated,
            inqueue=limit - allocated - have + asked - requested,
            short=asked - have,
            queue=self.queue,
        )
