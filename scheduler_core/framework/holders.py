"""Who holds what is missing, and who is next in a queue; each question is answered once per session."""

from __future__ import annotations

import numpy as np

from scheduler_core.framework.session import Session
from scheduler_core.model.reason import Holder
from scheduler_core.model.resources import MIB, MILLI
from scheduler_core.state.status import HOLDS, Bools, Ints, TaskStatus

_MOST = 10


class Holders:
    """Look-ups over the tables as they are at the end of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[int, str, tuple[int, ...]], tuple[Holder, ...]] = {}
        self._amounts = session.cluster.classes.amounts

    def of(self, resource: str, cards: tuple[int, ...], queue: int = -1) -> tuple[Holder, ...]:
        """The gangs with the most of a resource, the largest first; of one queue, or of the cluster (-1).

        Args:
            resource: ``cpu``, ``memory``, or anything else for the cards at ``cards``.
        """
        key = (queue, resource if not cards else "", cards)
        if key not in self._known:
            self._known[key] = self._count(resource, cards, queue)
        return self._known[key]

    def _count(self, resource: str, cards: tuple[int, ...], queue: int) -> tuple[Holder, ...]:
        session, tasks = self._session, self._session.tasks
        held: Bools = tasks.live & (tasks.gang >= 0) & (HOLDS[tasks.status] | (tasks.status == TaskStatus.PIPELINED))
        if cards:
            held &= np.isin(tasks.card, cards)
        at = np.flatnonzero(held)
        gang = tasks.gang[at]
        if queue >= 0:
            mine = session.gangs.queue[gang] == queue
            at, gang = at[mine], gang[mine]
        row, unit = (2, 1 / MILLI) if cards else (0, 1.0) if resource == "cpu" else (1, float(MIB))
        sums: Ints = np.zeros(len(session.gangs), dtype=np.int64)
        np.add.at(sums, gang, self._amounts[row, tasks.cls[at]])
        names = session.gangs.names
        found = sorted((-int(sums[g]), names[g], g) for g in np.flatnonzero(sums).tolist())[:_MOST]
        return tuple(Holder(name, session.group(g).queue, -amount * unit) for amount, name, g in found)

    def positions(self, waiting: list[int]) -> dict[int, int]:
        """Place of each waiting gang in its queue, 1 = next."""
        session = self._session
        columns = session.columns.job_order
        if columns is not None and waiting:
            before, late, after, _ = columns
            gangs: Ints = np.array(waiting, dtype=np.int64)
            ready = session.columns.ready(gangs) if late else np.zeros(len(gangs), dtype=np.bool_)
            order = np.lexsort((after[gangs], ready, before[gangs]))
            waiting = gangs[order].tolist()
        else:
            waiting = sorted(waiting, key=session.job_key)
        places: dict[int, int] = {}
        last: dict[str, int] = {}
        for gang in waiting:
            queue = session.gangs.groups[gang].queue
            places[gang] = last[queue] = last.get(queue, 0) + 1
        return places
