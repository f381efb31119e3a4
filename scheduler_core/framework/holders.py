"""Who holds what is missing, and who is next in a queue; each question is answered once per session."""

from functools import cached_property

import numpy as np

from scheduler_core.framework.session import Session
from scheduler_core.model.reason import Holder
from scheduler_core.model.resources import MILLI, node_unit, quota_unit
from scheduler_core.state.axes import CPU, MEMORY, PODS
from scheduler_core.state.status import CHARGED, HOLDS, PIPELINED, Bools, Floats, Ints

_MOST = 10
_ROWS = {"cpu": CPU, "memory": MEMORY, "pods": PODS}
_COUNTED: Bools = CHARGED.copy()
_COUNTED[PIPELINED] = True


class Holders:
    """Look-ups over the tables as they are at the end of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[int, str, tuple[int, ...]], tuple[Holder, ...]] = {}

    def in_use(self, resource: str, cards: tuple[int, ...], *, but: int) -> tuple[Holder, ...]:
        """The gangs whose pods take the most of a resource of the nodes, without ``but``; the largest first.
        ``resource``: of nodes; anything for the cards at ``cards``."""
        key = (-2, "" if cards else resource, cards)
        if key not in self._known:
            self._known[key] = self._largest(self._taken(resource, cards, HOLDS))
        return self._without(key, but)

    def counted(self, resource: str, cards: tuple[int, ...], *, but: int, queue: int = -1) -> tuple[Holder, ...]:
        """The gangs that count the most against a quota: what they use and what they are promised, without ``but``.
        ``queue``: of one queue, or of the cluster (-1)."""
        key = (queue, "" if cards else resource, cards)
        if key not in self._known:
            sums, promised = self._taken(resource, cards, _COUNTED), self._promised(resource, cards)
            if queue >= 0:
                mine = self._session.gangs.queue == queue
                sums, promised = np.where(mine, sums, 0.0), np.where(mine, promised, 0.0)
            self._known[key] = self._largest(sums + promised, promised > 0)
        return self._without(key, but)

    def _without(self, key: tuple[int, str, tuple[int, ...]], but: int) -> tuple[Holder, ...]:
        name = self._session.gangs.names[but]
        return tuple(holder for holder in self._known[key] if holder.gang != name)[:_MOST]

    def _largest(self, sums: Floats, promised: Bools | None = None) -> tuple[Holder, ...]:
        """One more than are shown: the gang that asks is left out."""
        session = self._session
        names = session.gangs.names
        found = sorted((-float(sums[gang]), names[gang], gang) for gang in np.flatnonzero(sums > 0).tolist())
        return tuple(
            Holder(
                name,
                session.group(gang).queue,
                -amount,
                session.promised_since(gang) if promised is not None and promised[gang] else None,
            )
            for amount, name, gang in found[: _MOST + 1]
        )

    def _taken(self, resource: str, cards: tuple[int, ...], statuses: Bools) -> Floats:
        """float64 (G,): what members in one of the statuses take, in the units of results."""
        session, tasks = self._session, self._session.tasks
        at: Ints = np.flatnonzero(tasks.live & (tasks.gang >= 0) & statuses[tasks.status])
        if cards:
            at = at[np.isin(tasks.card[at], cards)]
            each, unit = session.cluster.classes.amounts[2], 1 / MILLI
        else:
            row = _ROWS.get(resource, session.axes.scalar_index.get(resource))
            if row is None:
                return np.zeros(len(session.gangs), dtype=np.float64)
            each, unit = session.cluster.classes.columns.request[:, row], float(node_unit(resource))
        sums: Ints = np.zeros(len(session.gangs), dtype=np.int64)
        np.add.at(sums, tasks.gang[at], each[tasks.cls[at]])
        found: Floats = sums.astype(np.float64) * unit
        return found

    def _promised(self, resource: str, cards: tuple[int, ...]) -> Floats:
        """float64 (G,): what admitted gangs are promised beyond what they have."""
        found = np.zeros(len(self._session.gangs), dtype=np.float64)
        if cards:
            wanted = frozenset(cards)
            for gang, card, milli in self._promised_cards:
                if not wanted.isdisjoint(card):
                    found[gang] += milli / MILLI
        elif resource in ("cpu", "memory"):
            for gang, demand in self._session.promised.items():
                amount = demand.cpu_milli if resource == "cpu" else demand.memory_mib
                found[gang] = amount * quota_unit(resource)
        return found

    @cached_property
    def _promised_cards(self) -> list[tuple[int, tuple[int, ...], int]]:
        return [
            (gang, choice, milli)
            for gang, demand in self._session.promised.items()
            for choice, milli in demand.all_cards().items()
        ]

    def positions(self, waiting: list[int]) -> dict[int, int]:
        """Place of each waiting gang in its queue, 1 = next."""
        session = self._session
        order = session.columns.job_order
        if order is not None and waiting:
            gangs: Ints = np.array(waiting, dtype=np.int64)
            waiting = gangs[np.lexsort(order.keys(gangs)[::-1])].tolist()
        else:
            waiting = sorted(waiting, key=session.job_key)
        places: dict[int, int] = {}
        last: dict[str, int] = {}
        for gang in waiting:
            queue = session.gangs.groups[gang].queue
            places[gang] = last[queue] = last.get(queue, 0) + 1
        return places
