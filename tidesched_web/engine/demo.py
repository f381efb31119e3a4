"""The demo as it is described by the engine's simulator: its policy, hardware, owners and queues."""

from __future__ import annotations

from scheduler_core.model.cards import CardType
from scheduler_core.serde.kubernetes import SnapshotBuilder
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from scheduler_core.simulator.demo import START
from scheduler_core.simulator.demo_nodes import demo_nodes
from scheduler_core.simulator.demo_tenancy import BUSINESS_LINES, QUEUES, TENANTS, DemoQueue
from scheduler_core.simulator.manifests import node_manifest

__all__ = ["BUSINESS_LINES", "FOUNDING_POLICY", "QUEUES", "START", "TENANTS", "DemoQueue", "card_types"]


def card_types() -> tuple[CardType, ...]:
    """The card types of the demo's nodes, whole cards before what is cut from them."""
    builder = SnapshotBuilder()
    boards: dict[str, CardType] = {}
    for node in demo_nodes():
        builder.upsert(node_manifest(node))
    found = builder.build().card_types
    for card in found:
        if card.parent is not None and card.parent not in {other.name for other in found}:
            boards[card.parent] = CardType(name=card.parent, resource="")
    return tuple(sorted((*boards.values(), *found), key=lambda card: (card.parent is not None, card.name)))
