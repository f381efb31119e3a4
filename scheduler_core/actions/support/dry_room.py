"""Free room that a dry run uses up: equal pods on the first nodes by name that have room for them."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec
import numpy as np

from scheduler_core.model.resources import MILLI
from scheduler_core.state.card_table import CardTable
from scheduler_core.state.status import Bools, Ints


class Shape(msgspec.Struct, frozen=True, gc=False):
    """What each of several equal pods needs.

    Attributes:
        key: the same for equal shapes.
        request: int64 (R,), the rows of the node table.
        cards: card positions of which any will do; empty = none needed. whole: entirely free cards. share:
            milli-cards of one card.
        allowed: bool (N,), None = every node.
    """

    key: Hashable
    request: Ints
    cards: tuple[int, ...] = ()
    whole: int = 0
    share: int = 0
    allowed: Bools | None = None


class DryRoom:
    """Free room, apart from the tables of the session.

    Attributes:
        nodes: int64 (R, N). cards: int64 (rows,), milli-cards by single card.
    """

    def __init__(self, table: CardTable, nodes: Ints, cards: Ints) -> None:
        self._table = table
        self.nodes, self.cards = nodes, cards

    def copy(self) -> DryRoom:
        """An independent room."""
        return DryRoom(self._table, self.nodes.copy(), self.cards.copy())

    def slots(self, shape: Shape) -> Ints:
        """int64 (N,): how many such pods each node has room for. O(R x N + cards)."""
        rows = np.flatnonzero(shape.request)
        slots: Ints = (np.maximum(self.nodes[rows], 0) // shape.request[rows, None]).min(axis=0)
        if shape.allowed is not None:
            slots = np.where(shape.allowed, slots, 0)
        if shape.cards:
            on_cards = np.zeros_like(slots)
            for card in shape.cards:
                on_cards += self._card_slots(shape, card)
            slots = np.minimum(slots, on_cards)
        return slots

    def use(self, shape: Shape, count: int, slots: Ints) -> None:
        """Use up the room of ``count`` pods, on the first nodes with ``slots`` for them; there must be enough."""
        here = np.clip(count - (np.cumsum(slots) - slots), 0, slots)
        at = np.flatnonzero(here)
        self.nodes[:, at] -= shape.request[:, None] * here[at]
        if shape.cards:
            for node, pods in zip(at.tolist(), here[at].tolist(), strict=True):
                self._take_cards(shape, node, pods)

    def _card_slots(self, shape: Shape, card: int) -> Ints:
        """int64 (N,): the same on the cards of one type alone."""
        table = self._table
        rows = np.flatnonzero(table.row_card == card)
        left = np.maximum(self.cards[rows], 0)
        fits = left // shape.share if shape.share else left >= MILLI
        on_node: Ints = np.bincount(table.row_node[rows], fits, self.nodes.shape[1]).astype(np.int64)
        return on_node if shape.share else on_node // shape.whole

    def _take_cards(self, shape: Shape, node: int, pods: int) -> None:
        """Take the cards of ``pods`` pods on one node, the types in order, the cards of a type from the first on."""
        for card in shape.cards:
            left = self.cards[self._table.rows(card, node)]
            if shape.share:
                for i, free in enumerate(left.tolist()):
                    fits = min(pods, max(0, free) // shape.share)
                    left[i] -= fits * shape.share
                    pods -= fits
            else:
                free_cards = np.flatnonzero(left >= MILLI)
                fits = min(pods, len(free_cards) // shape.whole)
                left[free_cards[: fits * shape.whole]] -= MILLI
                pods -= fits
