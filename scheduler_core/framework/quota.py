"""A demand against limits, with what is in use and what is promised: for queues and for the cluster."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from scheduler_core.algorithms.card_quota import Choice, first_excess
from scheduler_core.framework.demand import Demand, Shortfall
from scheduler_core.framework.session import Session
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.queue import Queue
from scheduler_core.model.reason import ReasonCode
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.queue_ledger import QueueLedger
from scheduler_core.state.status import Ints


class Book:
    """Rows cpu, memory, cards by type (as in the queue ledger), all in canonical units. ``code``, ``queue``: what a
    shortfall is called, and whose limit it is (empty = the cluster's). ``names``: card types. ``limits``, ``used``,
    ``promised``: by row. ``choices``: promised milli-cards by the card types of which any will do."""

    def __init__(
        self, code: ReasonCode, names: Sequence[str], *, limits: list[int], used: list[int], promised: list[int],
        choices: Mapping[Choice, int], queue: str = "",
    ) -> None:  # fmt: skip
        self.code, self.queue, self.names = code, queue, names
        self.limits, self.used, self.promised, self.choices = limits, used, promised, choices

    def shortfall(self, cpu_milli: int, memory_mib: int, cards: Mapping[Choice, int]) -> Shortfall | None:
        """The first resource that a demand finds too little of: cpu, memory, then cards; None when it has room."""
        for row, label, asked in ((CPU, "cpu", cpu_milli), (MEMORY, "memory", memory_mib)):
            over = asked + self.used[row] + self.promised[row] - self.limits[row]
            if asked > 0 and over > 0:
                return Shortfall(
                    code=self.code, resource=label, requested=asked, limit=self.limits[row], allocated=self.used[row],
                    inqueue=self.promised[row], short=over, queue=self.queue,
                )  # fmt: skip
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


def queue_book(ledger: QueueLedger, queue: int, *, admission: bool, empty: bool, choices: bool) -> Book:
    """The quota of one queue. ``admission``: promises count, and what goes beyond minimums does not. ``empty``: as if
    nothing were in use. ``choices``: promised choices of cards count too."""
    column = ledger.allocated[:, queue] + ledger.pipelined[:, queue]
    if admission:
        column = column - ledger.elastic[:, queue]
    nothing = [0] * len(column)
    return Book(
        ReasonCode.WAITING_FOR_QUOTA,
        ledger.axes.cards,
        limits=ledger.capability[:, queue].tolist(),
        used=nothing if empty else column.tolist(),
        promised=ledger.inqueue[:, queue].tolist() if admission else nothing,
        choices=ledger.inqueue_choices[queue] if admission and choices else {},
        queue=ledger.queues[queue].name,
    )


class HardwareUse:
    """What all nodes together have, and what of it is in use; rows as in the queue ledger. ``total``: int64 (D,)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # Kept for as long as no node changes.
        self._masks = session.cluster.workspace.masks
        self.total: Ints = self._kept("hardware", self._sum)
        self._known: dict[bool, tuple[tuple[int, int], Ints]] = {}
        self._held: tuple[tuple[int, int], Ints] = ((-1, -1), self.total)

    def times(self, factor: float) -> Ints:
        """int64 (D,): the total enlarged by a factor as it is written, rounded down."""
        exact = Fraction(repr(factor))
        return self._kept(
            ("hardware", exact), lambda: np.array([int(amount * exact) for amount in self.total.tolist()], np.int64)
        )

    def _sum(self) -> Ints:
        nodes, cards = self._session.nodes, self._session.cards.count.sum(axis=1).astype(np.int64) * MILLI
        return np.concatenate([nodes.allocatable[[CPU, MEMORY]].sum(axis=1), cards])

    def _kept(self, key: object, make: Callable[[], Ints]) -> Ints:
        known = self._masks.get(key)
        if not isinstance(known, np.ndarray):
            known = self._masks[key] = make()
        return known

    def in_use(self, *, back: bool) -> Ints:
        """int64 (D,): used, less what could be taken ``back``; kept until a node or a queue changes."""
        key = (len(self._session.nodes.log), int(self._session.ledger.versions.sum()))
        known = self._known.get(back)
        if known is None or known[0] != key:
            used = self._used(key) - self._taken_back() if back else self._used(key)
            known = self._known[back] = (key, np.maximum(used, 0))
        return known[1]

    def _used(self, key: tuple[int, int]) -> Ints:
        """int64 (D,): what pods of every scheduler take of the nodes and is not leaving; kept while ``key`` stays."""
        nodes, cards = self._session.nodes, self._session.cards
        if self._held[0] != key:
            sums = [
                nodes.used[row].sum() - nodes.releasing[row].sum() + nodes.pipelined[row].sum() for row in (CPU, MEMORY)
            ]
            held = self.total[LEDGER_CARDS:] - cards.left_future.sum(axis=1)
            self._held = key, np.concatenate([np.array(sums, dtype=np.int64), held])
        return self._held[1]

    def _taken_back(self) -> Ints:
        """int64 (D,): what training gangs that may be taken hold."""
        ledger, session = self._session.ledger, self._session
        total: Ints = np.zeros(session.axes.ledger_rows, dtype=np.int64)
        for queue, spec in enumerate(ledger.queues):
            if spec.reclaimable and spec.service_type != ServiceType.INFERENCE.value:
                total += ledger.allocated[:, queue]
        return total


def beyond_written(queue: Queue, demand: Demand) -> Shortfall | None:
    """Cards that no node has, against the quota as it is written."""
    quota = queue.card_quota or {}
    for key, milli in sorted(demand.unknown.items()):
        limit = sum(quota.get(part, 0) for part in key.split("|"))
        if milli > limit:
            return Shortfall(
                code=ReasonCode.WAITING_FOR_QUOTA, resource=key, requested=milli, limit=limit, short=milli - limit,
                queue=queue.name,
            )  # fmt: skip
    return None
