"""Resources by their Kubernetes names, as the plugins of upstream Volcano share them out.

The queue ledger counts cards by type; ``capability``, ``deserved`` and ``guarantee`` of a Queue name resources, and
several card types can be one resource (``nvidia.com/gpu``). The rows here are sums over the ledger, plus the extended
resources that are no cards. Places on nodes (``pods``) are nothing that queues share."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from scheduler_core.framework.demand import Demand, Shortfall
from scheduler_core.framework.session import NOT_TO_COME, Session
from scheduler_core.model.queue import Queue
from scheduler_core.model.reason import ReasonCode
from scheduler_core.model.resources import MILLI, Amount, thousandths
from scheduler_core.state.axes import CPU, FIRST_SCALAR, LEDGER_CARDS, MEMORY
from scheduler_core.state.status import CHARGED, PENDING, PIPELINED, Bools, Ints
from scheduler_core.state.task_class import TaskClass

# Whole numbers below this are exact as float64, as which shares are divided.
_EXACT = 2**53


class ResourceRows:
    """Names and amounts. Units: milli-cores, MiB, thousandths of everything else. ``card_types``: a row for each card
    type instead of one for each resource that counts cards. ``names``: ``cpu``, ``memory``, then the others by name.
    ``total``: what all nodes together have, by row."""

    def __init__(self, session: Session, *, card_types: bool = False) -> None:
        axes = session.axes
        self._session = session
        cards: dict[str, list[int]] = {}
        for card, (name, resource) in enumerate(zip(axes.cards, axes.resources, strict=True)):
            cards.setdefault(name if card_types else resource, []).append(card)
        self.names = ("cpu", "memory", *sorted({*cards, *axes.scalars}))
        self.index = {name: row for row, name in enumerate(self.names)}
        # Row by card type and by scalar; cards by row, for what is summed over the ledger.
        self._of_card = {card: self.index[name] for name, group in cards.items() for card in group}
        self._of_scalar = [(self.index[name], thousandths(name)) for name in axes.scalars]
        self._of_resource = {name: row for name, row in self.index.items() if row > MEMORY}
        self._summed = [(self.index[name], [LEDGER_CARDS + card for card in group]) for name, group in cards.items()]
        self._requests: dict[int, list[int]] = {}
        self._scalar_use: dict[int, tuple[int, list[int]]] = {}
        self.total = self._totals()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sums(self) -> list[list[int]]:
        """By row, the rows of the ledger that it adds up; none of them for a resource that no card is."""
        of_row = {CPU: [CPU], MEMORY: [MEMORY], **dict(self._summed)}
        return [of_row.get(row, []) for row in range(len(self))]

    @property
    def of_ledger(self) -> bool:
        """Whether the ledger has all of it."""
        return not self._of_scalar

    def _totals(self) -> list[int]:
        nodes, cards = self._session.nodes, self._session.cards
        total = [0] * len(self)
        total[CPU], total[MEMORY] = (int(nodes.allocatable[row].sum()) for row in (CPU, MEMORY))
        for card, row in self._of_card.items():
            total[row] += int(cards.count[card].sum()) * MILLI
        for scalar, (row, unit) in enumerate(self._of_scalar):
            total[row] += int(nodes.allocatable[FIRST_SCALAR + scalar].sum()) * unit
        return total

    # What is written ----------------------------------------------------------------------------------------------

    def capability(self, queue: Queue) -> list[int | None]:
        """``spec.capability`` by row; None = no limit, which zero cpu or memory means too."""
        written = {"cpu": queue.cpu_milli or None, "memory": queue.memory_mib or None}
        return [{**queue.scalars, **written}.get(name) for name in self.names]

    def written(self, amounts: Mapping[str, int]) -> list[int | None]:
        """``deserved`` or ``guarantee`` by row; None = not named."""
        return [amounts.get(name) for name in self.names]

    def amount(self, values: Sequence[int | None]) -> Amount:
        """Rows as an amount; a resource that counts one card type goes by that type's name."""
        cards: dict[str, int] = {}
        axes = self._session.axes
        for row, value in enumerate(values):
            if row > MEMORY and value:
                types = axes.cards_of_resource.get(self.names[row], ())
                cards[axes.cards[types[0]] if len(types) == 1 else self.names[row]] = value
        return Amount(values[CPU] or 0, values[MEMORY] or 0, cards)

    # What is asked for --------------------------------------------------------------------------------------------

    def request(self, cls: TaskClass) -> list[int]:
        """What one task of a class counts; a choice of cards at its first."""
        known = self._requests.get(cls.index)
        if known is None:
            charge = self._session.cluster.charge[:, cls.index]
            known = [0] * len(self)
            known[CPU], known[MEMORY] = int(charge[CPU]), int(charge[MEMORY])
            row = self._of_card[cls.cards[0]] if cls.cards else self._of_resource.get(cls.resource)
            if row is not None:
                known[row] += int(charge[2])
            for scalar, (at, unit) in enumerate(self._of_scalar):
                known[at] += int(cls.request[FIRST_SCALAR + scalar]) * unit
            self._requests[cls.index] = known
        return known

    def of_task(self, task: int) -> list[int]:
        """What one task counts, its cards at the type that it holds."""
        return self.request_on(self._session.cluster.class_of(task), int(self._session.tasks.card[task]))

    def request_on(self, cls: TaskClass, card: int) -> list[int]:
        """What one task of a class counts with cards of a type, -1 = none yet."""
        amounts = self.request(cls)
        if card < 0 or not cls.cards or self._of_card[card] == self._of_card[cls.cards[0]]:
            return amounts
        moved = list(amounts)
        milli = int(self._session.cluster.charge[2, cls.index])
        moved[self._of_card[cls.cards[0]]] -= milli
        moved[self._of_card[card]] += milli
        return moved

    def exact(self) -> bool:
        """Whether float64 holds all sums exactly."""
        asked = (amount for cls in self._session.cluster.classes.classes for amount in self.request(cls))
        return max(max(self.total, default=0), max(asked, default=0)) < _EXACT

    def held_by_gangs(self) -> Ints:
        """int64 (rows, G): what each gang holds or is promised, where all sums are exact. O(tasks)."""
        session, tasks = self._session, self._session.tasks
        counted: Bools = tasks.live & (tasks.gang >= 0) & (CHARGED[tasks.status] | (tasks.status == PIPELINED))
        at = np.flatnonzero(counted)
        # Alike are tasks of a class with cards of one type.
        kinds, which = np.unique(
            tasks.cls[at].astype(np.int64) * (len(session.axes.cards) + 1) + tasks.card[at] + 1, return_inverse=True
        )
        classes = session.cluster.classes.classes
        alike = (divmod(kind, len(session.axes.cards) + 1) for kind in kinds.tolist())
        amounts = np.array([self.request_on(classes[cls], card - 1) for cls, card in alike]).reshape(-1, len(self))
        sums = [np.bincount(tasks.gang[at], amounts[which, row], len(session.gangs)) for row in range(len(self))]
        return np.array(sums, dtype=np.int64)

    def of_gang(self, gang: int) -> list[int]:
        """What a gang holds or is promised."""
        session = self._session
        status, total = session.tasks.status, [0] * len(self)
        for task in session.gangs.members(gang):
            if CHARGED[status[task]] or status[task] == PIPELINED:
                total = [a + b for a, b in zip(total, self.of_task(task), strict=True)]
        return total

    def minimum(self, gang: int, demand: Demand) -> list[int]:
        """A gang's demand (``session.minimum``) by row, with the resources that are no cards."""
        total = [0] * len(self)
        total[CPU], total[MEMORY] = demand.cpu_milli, demand.memory_mib
        for choice, milli in demand.all_cards().items():
            total[self._of_card[choice[0]]] += milli
        if self._of_scalar:
            for row, amount in enumerate(self._scalars_of(gang)):
                total[row] += amount
        return total

    def _scalars_of(self, gang: int) -> list[int]:
        """What ``session.minimum`` says for cpu, memory and cards, for the other resources."""
        session, group = self._session, self._session.group(gang)
        if session.orphaned(gang):
            return [0] * len(self)
        total = self._scalars_asked(session.pending_tasks(gang)[: session.needed(gang)])
        if group.min_scalars:
            held = self._scalars_asked(() if session.compat else session.gangs.with_status(gang, *NOT_TO_COME))
            for name, (row, unit) in zip(session.axes.scalars, self._of_scalar, strict=True):
                total[row] = max(total[row], group.min_scalars.get(name, 0) * unit - held[row])
        return total

    def _scalars_asked(self, tasks: Iterable[int]) -> list[int]:
        total = [0] * len(self)
        for task in tasks:
            request = self._session.cluster.class_of(task).request
            for scalar, (row, unit) in enumerate(self._of_scalar):
                total[row] += int(request[FIRST_SCALAR + scalar]) * unit
        return total

    # What is in use -----------------------------------------------------------------------------------------------

    def bound(self, queue: int) -> list[int]:
        """Allocated of one queue, without what is only promised; cards, cpu and memory."""
        return self._sum(self._session.ledger.allocated[:, queue])

    def used(self, queues: int | Iterable[int]) -> list[int]:
        """Allocated and promised of one queue, or of several together."""
        ledger = self._session.ledger
        several = [queues] if isinstance(queues, int) else list(queues)
        total = self._sum((ledger.allocated[:, several] + ledger.pipelined[:, several]).sum(axis=1))
        if self._of_scalar:
            for queue in several:
                total = [a + b for a, b in zip(total, self._scalars_in(queue), strict=True)]
        return total

    def promised(self, queues: Iterable[int]) -> list[int]:
        """What admitted gangs of the queues still need up to their minimum."""
        session, several = self._session, list(queues)
        total = self._sum(session.ledger.inqueue[:, several].sum(axis=1))
        for queue in several:
            for choice, milli in session.ledger.inqueue_choices[queue].items():
                total[self._of_card[choice[0]]] += milli
        if self._of_scalar:
            inside = set(several)
            for gang in session.promised:
                if session.queue_of(gang) in inside:
                    total = [a + b for a, b in zip(total, self._scalars_of(gang), strict=True)]
        return total

    def elastic(self, queues: Iterable[int]) -> list[int]:
        """What gangs of the queues have beyond their minimum."""
        return self._sum(self._session.ledger.elastic[:, list(queues)].sum(axis=1))

    def on_nodes(self, *, leaving: bool = False) -> list[int]:
        """What pods of every scheduler take of the nodes or are promised, what is ``leaving`` included or not."""
        session = self._session
        nodes, cards = session.nodes, session.cards
        taken = (nodes.used + nodes.pipelined - (0 if leaving else nodes.releasing)).sum(axis=1).tolist()
        total = [0] * len(self)
        total[CPU], total[MEMORY] = taken[CPU], taken[MEMORY]
        held = cards.used + cards.pipelined - (0 if leaving else cards.releasing)
        for card, row in self._of_card.items():
            total[row] += int(held[cards.row_card == card].sum())
        for scalar, (row, unit) in enumerate(self._of_scalar):
            total[row] += taken[FIRST_SCALAR + scalar] * unit
        return total

    def deserved(self, queue: int) -> list[int] | None:
        """What the plugin in charge says that a queue deserves, 0 of what it does not name; None without one."""
        amount: Amount | None = self._session.hooks.first("queue_deserved", queue)
        if amount is None:
            return None
        total = [0] * len(self)
        total[CPU], total[MEMORY] = amount.cpu_milli, amount.memory_mib
        for name, milli in amount.cards.items():
            row = self._of_resource.get(name)
            card = self._session.axes.card_index.get(name)
            if row is None and card is not None:
                row = self._of_card[card]
            if row is not None:
                total[row] += milli
        return total

    def requested(self) -> list[list[int]]:
        """By queue: what its tasks hold, are promised or wait for. O(tasks)."""
        session = self._session
        tasks, gangs = session.tasks, session.gangs
        counted: Bools = CHARGED[tasks.status] | (tasks.status == PENDING) | (tasks.status == PIPELINED)
        at = np.flatnonzero(tasks.live & counted & (tasks.gang >= 0))
        queue = gangs.queue[tasks.gang[at]].astype(np.int64)
        at, queue = at[queue >= 0], queue[queue >= 0]
        # Python's integers: thousandths of a resource in bytes, of all tasks together, are beyond int64.
        classes = session.cluster.classes.classes
        kinds, counts = np.unique(queue * max(1, len(classes)) + tasks.cls[at], return_counts=True)
        sums = [[0] * len(self) for _ in range(len(session.ledger))]
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            total = sums[kind // len(classes)]
            for row, amount in enumerate(self.request(classes[kind % len(classes)])):
                total[row] += amount * count
        return sums

    def _sum(self, column: Ints) -> list[int]:
        values = column.tolist()
        total = [0] * len(self)
        total[CPU], total[MEMORY] = values[CPU], values[MEMORY]
        for row, ledger_rows in self._summed:
            total[row] = sum(values[at] for at in ledger_rows)
        return total

    def _scalars_in(self, queue: int) -> list[int]:
        """Scalars that a queue's tasks hold; kept until what the queue uses changes."""
        session = self._session
        version = int(session.ledger.versions[queue])
        known = self._scalar_use.get(queue)
        if known is None or known[0] != version:
            tasks, total = session.tasks, [0] * len(self)
            held: Bools = tasks.live & (tasks.gang >= 0) & (CHARGED[tasks.status] | (tasks.status == PIPELINED))
            at = np.flatnonzero(held)
            at = at[session.gangs.queue[tasks.gang[at]] == queue]
            kinds, counts = np.unique(tasks.cls[at], return_counts=True)
            for cls, count in zip(kinds.tolist(), counts.tolist(), strict=True):
                request = session.cluster.classes[cls].request
                for scalar, (row, unit) in enumerate(self._of_scalar):
                    total[row] += int(request[FIRST_SCALAR + scalar]) * count * unit
            known = self._scalar_use[queue] = (version, total)
        return known[1]

    def spent(self) -> Ints:
        """int64 (rows, Q): by queue what its gangs have and are promised up to their minimum."""
        queues = range(len(self._session.ledger))
        pairs = ((self.used(queue), self.elastic([queue])) for queue in queues)
        return columns([[a - b for a, b in zip(used, elastic, strict=True)] for used, elastic in pairs])

    # Comparisons --------------------------------------------------------------------------------------------------

    def shortfall(
        self, code: ReasonCode, asked: Sequence[int], limits: Sequence[int], used: Sequence[int],
        promised: Sequence[int] | None = None, *, queue: str = "",
    ) -> Shortfall | None:  # fmt: skip
        """The first row of which is asked for more than there is; rows that nothing is asked of do not matter."""
        for row, amount in enumerate(asked):
            inqueue = promised[row] if promised is not None else 0
            over = amount + used[row] + inqueue - limits[row]
            if amount > 0 and over > 0:
                return Shortfall(
                    code=code, resource=self.names[row], requested=amount, limit=limits[row], allocated=used[row],
                    inqueue=inqueue, short=over, queue=queue,
                )  # fmt: skip
        return None


def columns(of_queues: Sequence[Sequence[int]]) -> Ints:
    """int64 (rows, Q) from the amounts of each queue."""
    return np.array(of_queues, dtype=np.int64).T.copy()


def waved(session: Session) -> Bools:
    """bool (G,): gangs that upstream admits without a look, since their PodGroup says nothing of what they need."""
    groups = session.gangs.groups if session.compat else ()
    found: Bools = np.zeros(len(session.gangs), dtype=np.bool_)
    found[[gang for gang, group in enumerate(groups) if group.min_resources is None]] = True
    return found


def unknown_card(code: ReasonCode, demand: Demand, queue: str = "") -> Shortfall | None:
    """Cards that no node has: there are none, whatever the limit."""
    if not demand.unknown:
        return None
    name, milli = min(demand.unknown.items())
    return Shortfall(code=code, resource=name, requested=milli, short=milli, queue=queue)


def largest_share(used: Sequence[int], of: Sequence[int | None]) -> float:
    """Largest used part of what is named; 1 where something is used of which nothing is deserved. One division of
    integers each, which is rounded correctly: equal shares are equal numbers on every processor."""
    parts = ((u / d if d else 1.0) for u, d in zip(used, of, strict=True) if d is not None and u > 0)
    return max(parts, default=0.0)
