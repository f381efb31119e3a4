"""How much room the cluster has for some tasks at the end of a session, promised or not."""

from __future__ import annotations

import numpy as np

from scheduler_core.algorithms.fit import resource_fit
from scheduler_core.framework.session import Session
from scheduler_core.model.resources import MIB, MILLI
from scheduler_core.state.axes import CPU, MEMORY
from scheduler_core.state.status import PIPELINED, Bools, Ints
from scheduler_core.state.task_class import TaskClass


class Room:
    """Answers about free room; idle means not in use, whoever it is promised to. Answers are kept by class."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._idle = np.maximum(session.nodes.idle, 0)
        cards = session.cards
        self._idle_cards: Ints = np.maximum(MILLI - cards.used, 0)
        self._free_whole: dict[tuple[int, ...], int] = {}
        self._free_any: dict[tuple[int, ...], int] = {}
        self._possible: dict[int, Bools] = {}
        self._fits: dict[int, int] = {}
        self._totals: dict[tuple[int, ...], int] = {}
        self._sums = {row: int(self._idle[row].sum()) for row in (CPU, MEMORY)}

    def missing(self, tasks: list[int]) -> tuple[str, tuple[int, ...], int, int, int] | None:
        """The first resource of which the whole cluster has too little idle beside what the gang itself keeps.

        Returns:
            (resource, cards, requested, total, free) in canonical units, or None.
        """
        session = self._session
        wanted: dict[tuple[str, tuple[int, ...], bool], int] = {}
        for task in tasks:
            cls = session.cluster.class_of(task)
            if cls.milli:
                key = (cls.card_key, cls.cards, bool(cls.share))
                wanted[key] = wanted.get(key, 0) + cls.milli
        kept = self._kept(int(session.tasks.gang[tasks[0]]))
        for (name, cards, share), requested in sorted(wanted.items()):
            own = sum(session.cluster.class_of(task).milli for task in kept if int(session.tasks.card[task]) in cards)
            free = max(0, self._free(cards, share=share) - own)
            if requested > free:
                return name, cards, requested, self._total(cards), free
        for row, name in ((CPU, "cpu"), (MEMORY, "memory")):
            requested = sum(int(session.cluster.class_of(task).request[row]) for task in tasks)
            free = self._sums[row]
            if requested > free:
                return name, (), requested, int(session.nodes.allocatable[row].sum()), free
        return None

    def _kept(self, gang: int) -> list[int]:
        """Members that are promised cards which nobody uses: idle, and no room for the others."""
        session = self._session
        if not session.gangs.waiting(gang):
            return []
        tasks, cards = session.tasks, session.cards
        found = []
        for task in session.gangs.with_status(gang, PIPELINED):
            card, node = int(tasks.card[task]), int(tasks.node[task])
            each = session.cluster.class_of(task).share or MILLI
            if card >= 0:
                first = int(cards.start[card, node])
                if all(self._idle_cards[first + index] >= each for index in tasks.indices[task]):
                    found.append(task)
        return found

    def asked(self, tasks: list[int]) -> tuple[str, float, float]:
        """(resource, requested, free) to show: cards where cards are asked for, else cpu, else memory."""
        session = self._session
        classes = [session.cluster.class_of(task) for task in tasks]
        first = next((cls for cls in classes if cls.milli), None)
        if first is not None:
            milli = sum(cls.milli for cls in classes if cls.cards == first.cards)
            return first.card_key, milli / MILLI, self._free(first.cards, share=bool(first.share)) / MILLI
        cpu = sum(cls.cpu_milli for cls in classes)
        if cpu:
            return "cpu", float(cpu), float(self._sums[CPU])
        memory = sum(cls.memory_mib for cls in classes)
        return "memory", float(memory * MIB), float(self._sums[MEMORY] * MIB)

    def hopeless(self, tasks: list[int]) -> bool:
        """True when some task could not be on any node even if all nodes were empty."""
        first: dict[int, int] = {}
        for task in tasks:
            first.setdefault(int(self._session.tasks.cls[task]), task)
        for index, task in first.items():
            mask = self._could_hold(self._session.cluster.classes[index])
            for _, *masks in self._session.candidates.said_of(task):
                mask = mask & masks[-1]
            if not mask.any():
                return True
        return False

    def refused_nodes(self, tasks: list[int]) -> dict[str, int]:
        """Nodes that said no to the first task that has trouble, by reason."""
        session = self._session
        cls = session.cluster.class_of(tasks[0])
        view = session.candidates.view(cls)
        refused = dict(view.refused)
        allowed = view.allowed
        for label, mask, *_ in session.candidates.said_of(tasks[0]):
            _note(refused, label, allowed & ~mask)
            allowed = allowed & mask
        if cls.milli:
            has = np.zeros(len(allowed), dtype=np.bool_)
            for card in cls.cards:
                has |= session.cards.count[card] > 0
            _note(refused, "no such card", allowed & ~has)
            allowed = allowed & has
        fits = self._could_hold(cls)
        _note(refused, "too small", allowed & ~fits)
        allowed = allowed & fits
        for row, label in ((CPU, "cpu in use"), (MEMORY, "memory in use"), (2, "too many pods")):
            full = allowed & (self._idle[row] < cls.request[row])
            _note(refused, label, full)
            allowed = allowed & ~full
        if cls.milli:
            room = np.zeros(len(allowed), dtype=np.bool_)
            for card in cls.cards:
                whole, best = session.cards.whole_now[card], session.cards.best_now[card]
                room |= best >= cls.share if cls.share else whole >= cls.whole
            _note(refused, "cards in use or promised", allowed & ~room)
        return refused

    def fits_unpromised(self, tasks: list[int]) -> bool:
        """True when the tasks would fit on idle room if nothing of it were promised (classes looked at one by one)."""
        counts: dict[int, int] = {}
        for task in tasks:
            index = int(self._session.tasks.cls[task])
            counts[index] = counts.get(index, 0) + 1
        return all(self._idle_places(self._session.cluster.classes[index]) >= n for index, n in counts.items())

    def promised_to_others(self, tasks: list[int]) -> bool:
        """True when something is promised, or all is kept for somebody, on a node that could hold one of the tasks."""
        classes = {cls.index: cls for cls in map(self._session.cluster.class_of, tasks)}
        promised: Bools = np.asarray(self._session.nodes.pipelined.any(axis=0))
        election, gang = self._session.election, int(self._session.tasks.gang[tasks[0]])
        if election is not None and self._session.gangs.names[gang] != election.gang:
            index = self._session.axes.node_index
            promised[[index[name] for name in election.nodes if name in index]] = True
        return any(bool((promised & self._could_hold(cls)).any()) for cls in classes.values())

    def _total(self, cards: tuple[int, ...]) -> int:
        """Milli-cards of some types in the cluster."""
        if cards not in self._totals:
            self._totals[cards] = int(self._session.cards.count[list(cards)].sum()) * MILLI
        return self._totals[cards]

    def _free(self, cards: tuple[int, ...], *, share: bool) -> int:
        known = self._free_any if share else self._free_whole
        if cards not in known:
            idle = self._idle_cards[np.isin(self._session.cards.row_card, cards)]
            known[cards] = int(idle.sum()) if share else int((idle >= MILLI).sum()) * MILLI
        return known[cards]

    def _could_hold(self, cls: TaskClass) -> Bools:
        """Nodes that the predicates allow and that are large enough when empty."""
        if cls.index not in self._possible:
            session = self._session
            mask = session.candidates.view(cls).allowed & resource_fit(session.nodes.allocatable, cls.request, cls.rows)
            if cls.milli:
                has = np.zeros(len(mask), dtype=np.bool_)
                for card in cls.cards:
                    has |= session.cards.count[card] >= max(1, cls.whole)
                mask &= has
            if cls.missing:
                mask[:] = False
            self._possible[cls.index] = mask
        return self._possible[cls.index]

    def _idle_places(self, cls: TaskClass) -> int:
        """How many tasks of the class would fit on idle room."""
        if cls.index not in self._fits:
            session = self._session
            places = np.full(len(session.nodes), 1 << 40, dtype=np.int64)
            for row in cls.rows:
                places = np.minimum(places, self._idle[row] // cls.request[row])
            if cls.milli:
                on_node = np.zeros(len(session.nodes), dtype=np.int64)
                wanted = np.isin(session.cards.row_card, cls.cards)
                idle, node = self._idle_cards[wanted], session.cards.row_node[wanted]
                if cls.share:
                    np.add.at(on_node, node, idle // cls.share)
                else:
                    np.add.at(on_node, node, (idle >= MILLI).astype(np.int64))
                    on_node //= cls.whole
                places = np.minimum(places, on_node)
            self._fits[cls.index] = int(places[session.candidates.view(cls).allowed].sum())
        return self._fits[cls.index]


def _note(refused: dict[str, int], label: str, mask: Bools) -> None:
    count = int(np.count_nonzero(mask))
    if count:
        refused[label] = refused.get(label, 0) + count
