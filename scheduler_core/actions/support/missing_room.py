"""What would have to leave a node so that one more task fits on it."""

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from scheduler_core.algorithms.smallest_set import Cost, cost, go_together
from scheduler_core.algorithms.victims import Unit
from scheduler_core.framework.session import Session
from scheduler_core.model.resources import MILLI
from scheduler_core.state.card_table import choose_cards
from scheduler_core.state.status import Bools
from scheduler_core.state.task_class import TaskClass

Offer = tuple[tuple[int, int], Cost, int, list[Unit]]

# So many nodes are tried, the cheapest first, where something beside room keeps the task off them.
_MOST_NODES = 8


class MissingRoom:
    """Offers of nodes to a task, over the units that may be taken."""

    def __init__(self, session: Session, pool: Sequence[Unit]) -> None:
        self._session = session
        self._on_node: dict[int, dict[str, Unit]] = {}
        self._nodes_of: dict[str, set[int]] = {}
        # By class: the offers found so far, and up to where in the log of changes they hold.
        self._known: dict[int, dict[int, Offer]] = {}
        self._read: dict[int, int] = {}
        for unit in sorted(pool, key=lambda u: (u.work, u.size, u.name)):
            for task in unit.members:
                node = int(session.tasks.node[task])
                if node >= 0:
                    self._on_node.setdefault(node, {})[unit.name] = unit
                    self._nodes_of.setdefault(unit.gang, set()).add(node)

    def offers(self, task: int, chosen: Sequence[Unit]) -> Iterator[list[Unit]]:
        """Units beside the chosen ones that make room on a node, the cheapest first; an empty one where there is room.
        O(units on the nodes in question)."""
        session = self._session
        cls = session.cluster.class_of(task)
        view = session.candidates.view(cls)
        # What holds for this very task and not for its class.
        only: Bools = np.ones(len(session.nodes), dtype=np.bool_)
        for _, mask, *_ in session.candidates.said_of(task):
            only = only & mask
        if (view.future & only).any():
            yield []
        known = self._bring_up(cls, view.curable, chosen)
        open_to_it = (entry for entry in known.values() if only[entry[2]])
        for _, _, _, offer in heapq.nsmallest(_MOST_NODES, open_to_it, key=lambda entry: entry[:3]):
            yield offer

    def _bring_up(self, cls: TaskClass, curable: Bools, chosen: Sequence[Unit]) -> dict[int, Offer]:
        """Offers by node, looked for anew where a node has changed or a gang can spare fewer than before."""
        log = self._session.nodes.log
        known, read = self._known.setdefault(cls.index, {}), self._read.get(cls.index)
        if read is None:
            stale = set(self._on_node)
        else:
            stale = set(log[read:]).intersection(self._on_node)
            stale = stale.union(*(self._nodes_of.get(unit.gang, ()) for unit in chosen if unit.spare))
        self._read[cls.index] = len(log)
        taken = {unit.name for unit in chosen}
        for node in sorted(stale):
            known.pop(node, None)
            if curable[node]:
                open_units = [unit for name, unit in self._on_node[node].items() if name not in taken]
                offer = self._offer(cls, node, open_units, chosen)
                if offer:
                    known[node] = (max(unit.level for unit in offer), cost(offer), node, offer)
        return known

    def same_kind(self, task: int, unit: Unit) -> bool:
        """True when the unit holds something of what the task asks for: one of its card types, else anything."""
        cards = self._session.cluster.class_of(task).cards
        return not cards or any(int(self._session.tasks.card[member]) in cards for member in unit.members)

    def _offer(self, cls: TaskClass, node: int, units: Sequence[Unit], chosen: Sequence[Unit]) -> list[Unit] | None:
        """The cheapest units found on a node that let one task fit there; None when all of them do not."""
        added: list[Unit] = []
        for unit in units:
            if not go_together([*chosen, *added], unit):
                continue
            if self._fits(cls, node, [unit]):
                added = [unit]
                break
            added.append(unit)
            if self._fits(cls, node, added):
                break
        else:
            return None
        for unit in sorted(added, key=lambda u: (u.level, u.work, u.size, u.name), reverse=True):
            fewer = [other for other in added if other is not unit]
            if fewer and self._fits(cls, node, fewer):
                added = fewer
        return added

    def _fits(self, cls: TaskClass, node: int, leaving: Sequence[Unit]) -> bool:
        session, tasks = self._session, self._session.tasks
        here = [task for unit in leaving for task in unit.members if tasks.node[task] == node]
        for row in cls.rows:
            freed = sum(int(session.cluster.class_of(task).request[row]) for task in here)
            if int(session.nodes.future[row, node]) + freed < int(cls.request[row]):
                return False
        if not cls.milli:
            return not cls.missing
        for card in cls.cards:
            free = session.cards.free_future(card, node)
            for task in here:
                if tasks.card[task] == card:
                    for index in tasks.indices[task]:
                        free[index] += session.cluster.class_of(task).share or MILLI
            if choose_cards(free, cls.whole, cls.share) is not None:
                return True
        return False
