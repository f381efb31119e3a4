"""Tables of a finished session, brought back to what the workspace knows instead of copied anew."""

from collections.abc import Iterable

import numpy as np

from scheduler_core.algorithms.compiled import compiled
from scheduler_core.state.card_table import CardTable
from scheduler_core.state.node_rows import Room, room_of
from scheduler_core.state.node_table import NodeTable
from scheduler_core.state.status import Ints

# With more nodes to repair than this share, copies are made instead.
_REPAIR_SHARE = 4


class SpareTables:
    """A node table and a card table that differ from those of the workspace at some nodes only. Whatever a session
    changes is in the log of its node table."""

    def __init__(self) -> None:
        self._tables: tuple[NodeTable, CardTable] | None = None
        self._stale: dict[int, None] = {}

    def lend(self, nodes: NodeTable, cards: CardTable) -> tuple[NodeTable, CardTable]:
        """Tables that say the same as these, for a session of its own. O(nodes that differ)."""
        tables, self._tables = self._tables, None
        if tables is None or len(self._stale) * _REPAIR_SHARE > len(nodes):
            return nodes.copy(), cards.copy()
        mine, own_cards = tables
        mine.nodes, mine.allocatable, mine.log = nodes.nodes, nodes.allocatable, []
        if self._stale:
            at = np.fromiter(self._stale, dtype=np.int64, count=len(self._stale))
            _restore(at, room_of(nodes, cards), room_of(mine, own_cards), mine.pipelined, own_cards.pipelined)
        return mine, own_cards

    def take_back(self, nodes: NodeTable, cards: CardTable) -> None:
        """A session is over, and these tables are not read any more."""
        self._tables, self._stale = (nodes, cards), dict.fromkeys(nodes.log)

    def differ(self, nodes: Iterable[int]) -> None:
        """These nodes have changed in the tables of the workspace."""
        if self._tables is not None:
            self._stale.update(dict.fromkeys(nodes))


@compiled
def _restore(at: Ints, base: Room, room: Room, promised: Ints, promised_cards: Ints) -> None:
    """Write what ``base`` says of some nodes; a base table holds no promises."""
    for node in at:
        for row in range(base.used.shape[0]):
            room.used[row, node], room.releasing[row, node] = base.used[row, node], base.releasing[row, node]
            room.now[row, node], room.future[row, node] = base.now[row, node], base.future[row, node]
            promised[row, node] = 0
        for card in range(base.number.shape[0]):
            room.whole_now[card, node] = base.whole_now[card, node]
            room.whole_future[card, node] = base.whole_future[card, node]
            room.best_now[card, node] = base.best_now[card, node]
            room.best_future[card, node] = base.best_future[card, node]
            room.left_now[card, node] = base.left_now[card, node]
            room.left_future[card, node] = base.left_future[card, node]
            first = base.start[card, node]
            for i in range(first, first + base.number[card, node]):
                room.card_used[i], room.card_releasing[i] = base.card_used[i], base.card_releasing[i]
                promised_cards[i] = 0
