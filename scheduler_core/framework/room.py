"""How much room the cluster has for some tasks by its tables of now, promised to others or not."""

from collections.abc import Sequence

import msgspec
import numpy as np

from scheduler_core.algorithms.fit import resource_fit
from scheduler_core.framework.session import Session
from scheduler_core.model.node_refusal import NodeRefusal
from scheduler_core.model.reason import ReasonCode
from scheduler_core.model.resources import MILLI, node_unit
from scheduler_core.state.axes import CPU, FIRST_SCALAR, MEMORY, PODS
from scheduler_core.state.status import PIPELINED, Bools, Ints
from scheduler_core.state.task_class import TaskClass

_NAMES = {CPU: "cpu", MEMORY: "memory", PODS: "pods"}
_MANY = 1 << 40


class Lack(msgspec.Struct, frozen=True, gc=False):
    """Why tasks of one class have no place. ``code``: NoNodeMatches, WaitingForResources or Fragmented. ``resource``:
    the one that is short; empty for no node. ``short``: how much more of it would have to be free, in the units of
    results. ``cls``: of the tasks."""

    code: ReasonCode
    cls: TaskClass
    resource: str = ""
    short: float = 0.0


class Room:
    """Answers about free room; idle means not in use, to whatever gang it is promised. Answers are kept by class.
    ``keep``: tasks that keep what they are promised: it is no room for others of their gang."""

    def __init__(self, session: Session, keep: Sequence[int] = ()) -> None:
        self._session = session
        idle, cards = session.nodes.idle.copy(), MILLI - session.cards.used
        for task in keep:
            node, card = int(session.tasks.node[task]), int(session.tasks.card[task])
            cls = session.cluster.class_of(task)
            idle[:, node] -= cls.request
            if card >= 0:
                first = int(session.cards.start[card, node])
                cards[[first + index for index in session.tasks.indices[task]]] -= cls.share or MILLI
        self._idle: Ints = np.maximum(idle, 0)
        self._idle_cards: Ints = np.maximum(cards, 0)
        self._free_whole: dict[tuple[int, ...], int] = {}
        self._free_any: dict[tuple[int, ...], int] = {}
        self._matching: dict[int, Bools] = {}
        self._lacks: dict[tuple[int, int], Lack | None] = {}
        self._totals: dict[tuple[int, ...], int] = {}

    def missing_cards(self, tasks: list[int]) -> tuple[str, tuple[int, ...], int, int, int] | None:
        """The first kind of cards of which the whole cluster has too few idle. Returns: (name, cards, requested, total,
        free) in milli-cards, or None."""
        wanted: dict[tuple[str, tuple[int, ...], bool], int] = {}
        for task in tasks:
            cls = self._session.cluster.class_of(task)
            if cls.milli:
                key = (cls.card_key, cls.cards, bool(cls.share))
                wanted[key] = wanted.get(key, 0) + cls.milli
        for (name, cards, share), requested in sorted(wanted.items()):
            free = self._free(cards, share=share)
            if requested > free:
                return name, cards, requested, self._total(cards), free
        return None

    def asked(self, tasks: list[int]) -> tuple[str, float, float]:
        """(resource, requested, free) to show: cards where cards are asked for, else cpu, else memory, else pods."""
        session = self._session
        classes = [session.cluster.class_of(task) for task in tasks]
        first = next((cls for cls in classes if cls.milli), None)
        if first is not None:
            milli = sum(cls.milli for cls in classes if cls.cards == first.cards)
            return first.card_key, milli / MILLI, self._free(first.cards, share=bool(first.share)) / MILLI
        row = next((row for row in (CPU, MEMORY) if any(cls.request[row] for cls in classes)), PODS)
        unit = node_unit(_NAMES[row])
        requested = sum(int(cls.request[row]) for cls in classes)
        return _NAMES[row], float(requested * unit), float(int(self._idle[row].sum()) * unit)

    def requested(self, tasks: list[int], resource: str) -> float:
        """How much of a resource of nodes the tasks ask for, in the units of results."""
        row = self._row(resource)
        classes = [self._session.cluster.class_of(task) for task in tasks]
        if row is None:
            return float(sum(cls.scalars.get(resource, 0) for cls in classes) * node_unit(resource))
        return float(sum(int(cls.request[row]) for cls in classes) * node_unit(resource))

    # Obstacles --------------------------------------------------------------------------------------------------

    def lack(self, tasks: list[int]) -> Lack | None:
        """What the tasks lack, class by class as if the others were not there; None where each class would fit."""
        counts: dict[int, int] = {}
        first: dict[int, int] = {}
        for task in tasks:
            index = int(self._session.tasks.cls[task])
            counts[index] = counts.get(index, 0) + 1
            first.setdefault(index, task)
        found = []
        for index, count in counts.items():
            lack = self._lack_of(self._session.cluster.classes[index], count, first[index])
            if lack is not None:
                found.append(lack)
        order = (ReasonCode.NO_NODE_MATCHES, ReasonCode.WAITING_FOR_RESOURCES, ReasonCode.FRAGMENTED)
        return min(found, key=lambda lack: order.index(lack.code), default=None)

    def _lack_of(self, cls: TaskClass, count: int, task: int) -> Lack | None:
        key = (cls.index, count)
        if key not in self._lacks:
            self._lacks[key] = self._find_lack(cls, count, task)
        return self._lacks[key]

    def _find_lack(self, cls: TaskClass, count: int, task: int) -> Lack | None:
        """See :class:`Lack`; O(rows x nodes). One resource after another is looked at alone on the nodes that match,
        then the cards, then all together: the resource that leaves the fewest places is named."""
        matching = self.matches(cls, task)
        if not matching.any():
            return Lack(ReasonCode.NO_NODE_MATCHES, cls)
        if cls.missing:
            name = cls.missing[0]
            return Lack(ReasonCode.WAITING_FOR_RESOURCES, cls, name, float(count * cls.scalars[name] * node_unit(name)))
        cards, most = self._card_places(cls)
        if int(most[matching].sum()) < count:
            return Lack(ReasonCode.FRAGMENTED, cls, cls.card_key, self._cards_short(cls, count, matching))
        places = {row: np.minimum(self._idle[row] // cls.request[row], most) for row in cls.rows}
        for caps in (most, cards):
            sums = {row: int(np.minimum(at, caps)[matching].sum()) for row, at in places.items()}
            row = min(sums, key=lambda row: (sums[row], row))
            if sums[row] < count:
                return self._short_of(cls, count, row, matching, caps)
            if caps is most and cls.milli and int(cards[matching].sum()) < count:
                return Lack(ReasonCode.FRAGMENTED, cls, cls.card_key, self._cards_short(cls, count, matching))
        together = np.minimum.reduce([cards, *places.values()])
        if int(together[matching].sum()) >= count:
            return None
        # No resource alone is to blame: the one that stops the most nodes.
        stopped = {row: int(np.count_nonzero(matching & (cards > 0) & (at == 0))) for row, at in places.items()}
        row = max(stopped, key=lambda row: (stopped[row], -row))
        return self._short_of(cls, 1, row, matching & (places[row] == 0), np.minimum(cards, 1))

    def _short_of(self, cls: TaskClass, count: int, row: int, nodes: Bools, caps: Ints) -> Lack:
        """How much of one resource is short where ``caps`` tasks could be on each node but for it."""
        asked, idle = int(cls.request[row]), self._idle[row]
        places = np.minimum(idle // asked, caps)
        left = np.where(nodes & (caps > places), idle - places * asked, 0)
        usable = int(places[nodes].sum()) * asked + int(left.max(initial=0))
        name = self._name(row)
        short = max(1, count * asked - usable)
        return Lack(ReasonCode.WAITING_FOR_RESOURCES, cls, name, float(short * node_unit(name)))

    def _cards_short(self, cls: TaskClass, count: int, nodes: Bools) -> float:
        """Cards that would have to be free where they are scattered, at least."""
        session = self._session
        wanted = np.isin(session.cards.row_card, cls.cards) & nodes[session.cards.row_node]
        idle, node = self._idle_cards[wanted], session.cards.row_node[wanted]
        if cls.share:
            places = int((idle // cls.share).sum())
            left = int((idle % cls.share).max(initial=0))
        else:
            free = np.bincount(node[idle >= MILLI], minlength=len(nodes))
            places = int((free // cls.whole).sum())
            left = int((free % cls.whole).max(initial=0)) * MILLI
        return max(1, (count - places) * cls.milli - left) / MILLI

    def _card_places(self, cls: TaskClass) -> tuple[Ints, Ints]:
        """int64 (N,) twice: tasks of the class that the idle cards of each node hold, and that all its cards would."""
        session = self._session
        size = len(session.nodes)
        if not cls.milli:
            many: Ints = np.full(size, _MANY, dtype=np.int64)
            return many, many
        wanted = np.isin(session.cards.row_card, cls.cards)
        idle, node = self._idle_cards[wanted], session.cards.row_node[wanted]
        now: Ints = np.zeros(size, dtype=np.int64)
        most = now.copy()
        if cls.share:
            np.add.at(now, node, idle // cls.share)
            np.add.at(most, node, MILLI // cls.share)
        else:
            np.add.at(now, node, (idle >= MILLI).astype(np.int64))
            np.add.at(most, node, 1)
            now //= cls.whole
            most //= cls.whole
        return now, most

    def matches(self, cls: TaskClass, task: int) -> Bools:
        """bool (N,): nodes that the filters allow once what leaves has left, with enough cards if they were empty."""
        known = self._matching.get(cls.index)
        if known is None:
            known = self._session.candidates.view(cls).allowed & self._has_cards(cls)
            self._matching[cls.index] = known
        for _, *masks in self._session.candidates.said_of(task):
            known = known & masks[-1]
        return known

    def _has_cards(self, cls: TaskClass) -> Bools:
        found: Bools = np.ones(len(self._session.nodes), dtype=np.bool_)
        if cls.oversize_share or (cls.milli and not cls.cards):
            found[:] = False
        elif cls.milli:
            found = np.logical_or.reduce([self._session.cards.count[card] >= max(1, cls.whole) for card in cls.cards])
        return found

    def refused_nodes(self, task: int) -> dict[str, int]:
        """Nodes that say no to a task, by the first reason; together they are all nodes that do."""
        session = self._session
        cls = session.cluster.class_of(task)
        view = session.candidates.view(cls)
        refused = dict(view.refused)
        allowed = view.allowed
        for label, mask, *_ in session.candidates.said_of(task):
            allowed = _note(refused, label, allowed, mask)
        if cls.milli:
            has = np.zeros(len(allowed), dtype=np.bool_)
            for card in cls.cards:
                has |= session.cards.count[card] > 0
            allowed = _note(refused, NodeRefusal.NO_SUCH_CARD, allowed, has)
            allowed = _note(refused, NodeRefusal.TOO_FEW_CARDS, allowed, self._has_cards(cls))
        for name in cls.missing:
            if name in cls.scalars:
                allowed = _note(refused, f"{name} too small", allowed, np.zeros_like(allowed))
        for free, what in ((session.nodes.allocatable, "too small"), (self._idle, "in use")):
            for row in cls.rows:
                label = NodeRefusal.TOO_MANY_PODS if row == PODS else f"{self._name(row)} {what}"
                allowed = _note(refused, label, allowed, free[row] >= cls.request[row])
        if cls.milli:
            room = np.zeros(len(allowed), dtype=np.bool_)
            for card in cls.cards:
                whole, best = session.cards.whole_now[card], session.cards.best_now[card]
                room |= best >= cls.share if cls.share else whole >= cls.whole
            allowed = _note(refused, NodeRefusal.CARDS_IN_USE, allowed, room)
        _note(refused, NodeRefusal.PROMISED, allowed, resource_fit(session.nodes.now, cls.request, cls.rows))
        return {str(label): count for label, count in refused.items()}

    def promised_to_others(self, tasks: list[int]) -> bool:
        """True when something is promised to another gang, or all is kept for one, on a node that could hold a task."""
        session, gang = self._session, int(self._session.tasks.gang[tasks[0]])
        table = session.tasks
        at = np.flatnonzero(table.live & (table.status == PIPELINED) & (table.gang != gang) & (table.node >= 0))
        promised: Bools = np.zeros(len(session.nodes), dtype=np.bool_)
        promised[table.node[at]] = True
        election = session.election
        if election is not None and session.gangs.names[gang] != election.gang:
            index = session.axes.node_index
            promised[[index[name] for name in election.nodes if name in index]] = True
        if not promised.any():
            return False
        classes = {cls.index: cls for cls in map(session.cluster.class_of, tasks)}
        return any(bool((promised & self._could_hold(cls)).any()) for cls in classes.values())

    def _could_hold(self, cls: TaskClass) -> Bools:
        """Nodes that the filters allow and that are large enough when empty."""
        session = self._session
        fits = resource_fit(session.nodes.allocatable, cls.request, cls.rows)
        return session.candidates.view(cls).allowed & self._has_cards(cls) & fits

    # Amounts ----------------------------------------------------------------------------------------------------

    def _row(self, resource: str) -> int | None:
        rows = {name: row for row, name in _NAMES.items()} | self._session.axes.scalar_index
        return rows.get(resource)

    def _name(self, row: int) -> str:
        return _NAMES.get(row) or self._session.axes.scalars[row - FIRST_SCALAR]

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


def _note(refused: dict[str, int], label: str, allowed: Bools, mask: Bools) -> Bools:
    """Count the nodes that ``mask`` takes from ``allowed``; those that are left."""
    count = int(np.count_nonzero(allowed & ~mask))
    if count:
        refused[label] = refused.get(label, 0) + count
    return allowed & mask
