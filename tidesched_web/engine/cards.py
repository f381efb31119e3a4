"""Which card type a pod holds where it runs, and how many cards a cluster has."""

from __future__ import annotations

from collections.abc import Iterable

from tidesched_web.engine.model import Node, Pod


def card_of(pod: Pod, node: Node | None) -> str:
    """The card type that ``pod`` takes on ``node``: the first of its names that the node has, else by resource.

    Without a node, the preferred name (empty for a pod that names none).
    """
    request = pod.card
    if request is None:
        return ""
    if node is not None:
        have = {cards.card for cards in node.cards}
        for name in request.names:
            if name in have:
                return name
        if not request.names:
            for cards in node.cards:
                if cards.resource == request.resource:
                    return cards.card
    return request.names[0] if request.names else ""


def hardware(nodes: Iterable[Node]) -> dict[str, int]:
    """Cards by type over all nodes, as counts."""
    total: dict[str, int] = {}
    for node in nodes:
        for cards in node.cards:
            total[cards.card] = total.get(cards.card, 0) + cards.count
    return total
