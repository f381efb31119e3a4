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
    return (request.type_on(node.cards) if node is not None else "") or first_of(request.key)


def first_of(names: str) -> str:
    """The card type at which a request for ``names`` counts while it has none: of a choice ``A|B`` the first."""
    return names.partition("|")[0]


def hardware(nodes: Iterable[Node]) -> dict[str, int]:
    """Cards by type over all nodes, as counts."""
    total: dict[str, int] = {}
    for node in nodes:
        for cards in node.cards:
            total[cards.card] = total.get(cards.card, 0) + cards.count
    return total
