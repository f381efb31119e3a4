from scheduler_core.model.cards import CardType
from scheduler_core.model.node import Node
from scheduler_core.serde.kubernetes import SnapshotBuilder
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from scheduler_core.simulator.demo import START, tide_level
from scheduler_core.simulator.demo_nodes import demo_nodes
from scheduler_core.simulator.demo_tenancy import (
    BUSINESS_LINES,
    QUEUES,
    TENANTS,
    DemoBusinessLine,
    DemoQueue,
    DemoTenant,
)
from scheduler_core.simulator.manifests import node_manifest
from scheduler_core.simulator.medium_nodes import hall_nodes
from scheduler_core.simulator.medium_tenancy import BUSINESS_LINES as HALL_BUSINESS_LINES
from scheduler_core.simulator.medium_tenancy import TENANTS as HALL_TENANTS
from scheduler_core.simulator.medium_tenancy import queues as hall_queues

__all__ = [
    "BUSINESS_LINES", "FOUNDING_POLICY", "HALL_BUSINESS_LINES", "HALL_TENANTS", "QUEUES", "START", "TENANTS",
    "DemoBusinessLine", "DemoQueue", "DemoTenant", "card_types", "hall_queues", "hardware", "tide_level",
]  # fmt: skip


def _nodes(size: str) -> tuple[Node, ...]:
    return (*demo_nodes(), *hall_nodes()) if size == "M" else demo_nodes()


def hardware(size: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in _nodes(size):
        for group in node.cards:
            found[group.card] = found.get(group.card, 0) + group.count
    return dict(sorted(found.items()))


def card_types(size: str = "S") -> tuple[CardType, ...]:
    builder = SnapshotBuilder()
    boards: dict[str, CardType] = {}
    for node in _nodes(size):
        builder.upsert(node_manifest(node))
    found = builder.build().card_types
    for card in found:
        if card.parent is not None and card.parent not in {other.name for other in found}:
            boards[card.parent] = CardType(name=card.parent, resource="")
    return tuple(sorted((*boards.values(), *found), key=lambda card: (card.parent is not None, card.name)))
