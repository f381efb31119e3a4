from collections.abc import Collection, Iterable

from scheduler_core.model.card_names import nearest_card
from tidesched_web.common.hints import LONGEST_NAME, MOST_COMPARED, compared
from tidesched_web.engine.model import Node, Pod


def card_of(pod: Pod, node: Node | None) -> str:
    request = pod.card
    if request is None:
        return ""
    return (request.type_on(node.cards) if node is not None else "") or first_of(request.key)


def first_of(names: str) -> str:
    """The card type at which a request for ``names`` counts while it has none: of a choice ``A|B`` the first."""
    return names.partition("|")[0]


def hardware(nodes: Iterable[Node]) -> dict[str, int]:
    total: dict[str, int] = {}
    for node in nodes:
        for cards in node.cards:
            total[cards.card] = total.get(cards.card, 0) + cards.count
    return total


def near_card(name: str, known: Collection[str]) -> str | None:
    """The known card type that ``name`` is a misspelling of; another model is never offered."""
    return nearest_card(name[:LONGEST_NAME], compared(name, known, MOST_COMPARED // 2))
