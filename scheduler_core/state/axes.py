"""The rows of the tables: resources of nodes, and card types."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler_core.model.snapshot import Snapshot

CPU, MEMORY, PODS = 0, 1, 2
FIRST_SCALAR = 3
# Rows of the queue ledger: cpu, memory, then one row for each card type.
LEDGER_CARDS = 2
# Larger than any sum of amounts, and still far from the end of int64.
NO_LIMIT = 2**62


class Axes:
    """Names and positions of resources and card types, fixed for one set of nodes.

    Attributes:
        scalars: extended resources that are not cards; resource row ``FIRST_SCALAR + i``.
        cards: card types that nodes have or that are declared, by name.
        resources: Kubernetes resource of each card type. nodes: node names, by name.
        images: container images that some node has."""

    def __init__(self, snapshot: Snapshot) -> None:
        types = {card.name: card.resource for card in snapshot.card_types}
        scalars: dict[str, None] = {}
        for node in snapshot.nodes:
            scalars.update(dict.fromkeys(node.scalars))
            for cards in node.cards:
                types.setdefault(cards.card, cards.resource)
        self.images: frozenset[str] = frozenset(name for node in snapshot.nodes for name in node.images)
        self.scalars = tuple(sorted(scalars))
        self.cards = tuple(sorted(types))
        self.resources = tuple(types[name] for name in self.cards)
        self.nodes = tuple(node.name for node in snapshot.nodes)
        self.node_index = {name: i for i, name in enumerate(self.nodes)}
        self.scalar_index = {name: FIRST_SCALAR + i for i, name in enumerate(self.scalars)}
        self.card_index = {name: i for i, name in enumerate(self.cards)}
        self.cards_of_resource: dict[str, tuple[int, ...]] = {}
        for i, resource in enumerate(self.resources):
            self.cards_of_resource[resource] = (*self.cards_of_resource.get(resource, ()), i)

    @property
    def resource_rows(self) -> int:
        """Number of rows R of the node table."""
        return FIRST_SCALAR + len(self.scalars)

    @property
    def ledger_rows(self) -> int:
        """Number of rows D of the queue ledger."""
        return LEDGER_CARDS + len(self.cards)
