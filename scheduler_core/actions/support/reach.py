"""What reclaim could reach at most: free room as if everybody who could leave left."""

from __future__ import annotations

import numpy as np

from scheduler_core.algorithms.fit import card_fit, resource_fit
from scheduler_core.framework.session import Session
from scheduler_core.model.resources import MILLI
from scheduler_core.state.status import CHARGED, Bools
from scheduler_core.state.task_class import TaskClass


class Reach:
    """An upper bound of the room on each node, made once for an action.

    It counts as taken every task in place whose queue is reclaimable, whatever rules and votes say of it. While an
    action only takes and places, the true room stays below it, so a node that it rules out needs no second look.
    O(tasks + classes + R x N) to make, O(R x N) a question.
    """

    def __init__(self, session: Session) -> None:
        tasks, classes, ledger = session.tasks, session.cluster.classes, session.ledger
        nodes, cards = session.nodes, session.cards
        reclaimable = np.array([queue.reclaimable for queue in ledger.queues] + [False], dtype=np.bool_)
        leaves = tasks.live & CHARGED[tasks.status] & (tasks.gang >= 0) & (tasks.node >= 0)
        leaves &= reclaimable[session.gangs.queue[tasks.gang]] if len(session.gangs) else False
        at = np.flatnonzero(leaves)
        self._session = session
        self._free = nodes.future.copy()
        self._whole, self._best = cards.whole_future.copy(), cards.best_future.copy()
        if not len(at):
            return
        node, cls, card = tasks.node[at], tasks.cls[at], tasks.card[at]
        requests = np.stack([one.request for one in classes.classes])
        for row in range(self._free.shape[0]):
            np.add.at(self._free[row], node, requests[cls, row])
        touched = np.array([max(one.whole, 1 if one.share else 0) for one in classes.classes], dtype=np.int64)
        holds = card >= 0
        np.add.at(self._whole, (card[holds], node[holds]), touched[cls[holds]])
        self._best[card[holds], node[holds]] = MILLI

    def useful(self, cls: TaskClass, allowed: Bools, limits: list[int]) -> Bools:
        """Nodes among ``allowed`` with a card of a type that the quota allows; ``limits``: tasks by card option."""
        if not cls.milli:
            return allowed
        mask: Bools = np.zeros_like(allowed)
        for option, card in enumerate(cls.cards):
            if limits[option]:
                mask |= self._session.cards.count[card] > 0
        return mask & allowed

    def within(self, cls: TaskClass, useful: Bools, limits: list[int]) -> Bools:
        """Nodes among ``useful`` where one task could fit if everybody left who could."""
        fits = useful & resource_fit(self._free, cls.request, cls.rows)
        if not cls.milli:
            return fits
        on_cards: Bools = np.zeros_like(fits)
        for option, card in enumerate(cls.cards):
            if limits[option]:
                here = self._session.cards.count[card] > 0
                on_cards |= here & card_fit(self._whole[card], self._best[card], cls.whole, cls.share)
        return fits & on_cards
