"""The table of single cards: one row for each card of each node, in milli-cards. Node sums cannot say whether a share
fits: 0.6 + 0.6 + 0.8 does not fit two cards although the sum does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_core.model.node import Node
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import Axes
from scheduler_core.state.status import Index, Ints


class CardTable:
    """Cards by row, and what each (card type, node) has left.

    Attributes:
        start, count: int32 (C, N), the rows ``start .. start+count`` are the cards of that type on that node.
        row_card, row_node: int32 (rows,), type and node of each card. total: int64 (N,), milli-cards of a node.
        used, releasing, pipelined: int64 (rows,), milli-cards. ``used`` includes what is releasing.
        whole_now, whole_future: int64 (C, N), entirely free cards: now, and once what leaves has left.
        best_now, best_future: int64 (C, N), the largest free part of one card, milli-cards.
        left_now, left_future: int64 (C, N), free milli-cards in all."""

    def __init__(self, axes: Axes, nodes: Sequence[Node]) -> None:
        shape = (len(axes.cards), len(nodes))
        self.start: Index = np.zeros(shape, dtype=np.int32)
        self.count: Index = np.zeros(shape, dtype=np.int32)
        rows = 0
        for n, node in enumerate(nodes):
            for c, count in _cards_of(axes, node):
                self.start[c, n], self.count[c, n] = rows, count
                rows += count
        where = [(c, n) for n, node in enumerate(nodes) for c, k in _cards_of(axes, node) for _ in range(k)]
        self.row_card: Index = np.array([c for c, _ in where], dtype=np.int32)
        self.row_node: Index = np.array([n for _, n in where], dtype=np.int32)
        self.total: Ints = self.count.sum(axis=0).astype(np.int64) * MILLI
        self.used: Ints = np.zeros(rows, dtype=np.int64)
        self.releasing: Ints = np.zeros(rows, dtype=np.int64)
        self.pipelined: Ints = np.zeros(rows, dtype=np.int64)
        self.whole_now: Ints = self.count.astype(np.int64)
        self.best_now: Ints = np.where(self.count > 0, MILLI, 0).astype(np.int64)
        self.whole_future: Ints = self.whole_now.copy()
        self.best_future: Ints = self.best_now.copy()
        self.left_now: Ints = self.count.astype(np.int64) * MILLI
        self.left_future: Ints = self.left_now.copy()
        # As Python objects too: single look-ups happen far more often than whole-array work.
        self.types_on: list[tuple[int, ...]] = [
            tuple(np.flatnonzero(self.count[:, n]).tolist()) for n in range(shape[1])
        ]
        self.start_list: list[list[int]] = self.start.tolist()
        self.count_list: list[list[int]] = self.count.tolist()

    def copy(self) -> CardTable:
        """An independent table; the fixed columns are shared."""
        other = object.__new__(CardTable)
        other.start, other.count = self.start, self.count
        other.types_on, other.total = self.types_on, self.total
        other.row_card, other.row_node = self.row_card, self.row_node
        other.start_list, other.count_list = self.start_list, self.count_list
        other.used, other.releasing, other.pipelined = self.used.copy(), self.releasing.copy(), self.pipelined.copy()
        other.whole_now, other.whole_future = self.whole_now.copy(), self.whole_future.copy()
        other.best_now, other.best_future = self.best_now.copy(), self.best_future.copy()
        other.left_now, other.left_future = self.left_now.copy(), self.left_future.copy()
        return other

    def rows(self, card: int, node: int) -> slice:
        """The rows of the cards of one type on one node."""
        first = self.start_list[card][node]
        return slice(first, first + self.count_list[card][node])

    def free_now(self, card: int, node: int) -> list[int]:
        """Milli-cards free now on each card, less what is promised."""
        at = self.rows(card, node)
        return [
            MILLI - used - max(0, pipelined - releasing)
            for used, releasing, pipelined in zip(
                self.used[at].tolist(), self.releasing[at].tolist(), self.pipelined[at].tolist(), strict=True
            )
        ]

    def free_future(self, card: int, node: int) -> list[int]:
        """Milli-cards free on each card once all that leaves has left, less what is promised."""
        at = self.rows(card, node)
        return [
            MILLI - used + releasing - pipelined
            for used, releasing, pipelined in zip(
                self.used[at].tolist(), self.releasing[at].tolist(), self.pipelined[at].tolist(), strict=True
            )
        ]

    def refresh(self, card: int, node: int) -> None:
        """Recompute what is left of one type on one node, O(cards there)."""
        now, future = self.free_now(card, node), self.free_future(card, node)
        if not now:
            return
        self.whole_now[card, node] = sum(1 for free in now if free >= MILLI)
        self.whole_future[card, node] = sum(1 for free in future if free >= MILLI)
        self.best_now[card, node] = max(0, *now)
        self.best_future[card, node] = max(0, *future)
        self.left_now[card, node] = sum(free for free in now if free > 0)
        self.left_future[card, node] = sum(free for free in future if free > 0)


def _cards_of(axes: Axes, node: Node) -> list[tuple[int, int]]:
    """(card position, count) of a node, one entry a type."""
    counts: dict[int, int] = {}
    for cards in node.cards:
        card = axes.card_index[cards.card]
        counts[card] = counts.get(card, 0) + cards.count
    return sorted(counts.items())


def choose_cards(free: list[int], whole: int, share: int) -> tuple[int, ...] | None:
    """Which cards of a node to take, given what each has free (milli-cards). A share goes to the card that it fills
    best, whole cards to the first free ones; ties to the lowest index, so that equal input gives equal places. None
    when it does not fit."""
    if share:
        fitting = [(left, i) for i, left in enumerate(free) if left >= share]
        return (min(fitting)[1],) if fitting else None
    chosen = tuple(i for i, left in enumerate(free) if left >= MILLI)[:whole]
    return chosen if len(chosen) == whole else None
