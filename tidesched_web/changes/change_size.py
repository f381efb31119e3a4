"""How much one change may say. Pure functions.

Each figure of a change is planned, kept, answered and shown, each time that a reader looks at it. So their number is
bounded for one change, as the card types are for one quota (`documents.MOST_CARD_TYPES`), and that of figures that can
mean nothing, because the cluster has no such card type, far below it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from tidesched_web.changes.tree_document import kind_of, parts_of, pointer
from tidesched_web.common.errors import DomainError
from tidesched_web.common.hints import cut

# The whole tree of 500 queues with 20 card types, their tenants, projects and grants has some 20,000, one of 10,000
# queues with four card types some 130,000.
MOST_FIGURES: Final = 200_000
# Two quotas with as many card types as one may have: a mistake is still planned, and shown where it is.
MOST_UNKNOWN: Final = 2_000
# More than a person edits by hand; to plan as many takes longer than to show any other page.
LARGE: Final = 2_000


def is_large(edits: Mapping[str, Any]) -> bool:
    """Whether edits have more figures than ``LARGE``; O(LARGE)."""
    left = LARGE
    for patch in edits.values():
        left -= _figures(patch)
        if left < 0:
            return True
    return False


def require_size(edits: Mapping[str, Any]) -> None:
    """Refuse edits of more figures than one change may have; O(edits).

    Raises:
        DomainError: ``invalid`` at the object with the most of them, with both numbers.
    """
    count, most, largest = 0, -1, ""
    for key, patch in edits.items():
        found = _figures(patch)
        count += found
        if found > most:
            most, largest = found, key
    if count > MOST_FIGURES:
        said = _(
            "One change has at most %(most)d figures; this one has %(count)d, %(of_one)d of them in %(object)s. Make "
            "several changes of it."
        )
        figures = {"most": MOST_FIGURES, "count": count, "of_one": most, "object": cut(largest)}
        raise _refused(largest, said % figures, count, MOST_FIGURES)


def require_known_cards(edits: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse edits that are mostly about card types that the cluster does not have; O(edits).

    Raises:
        DomainError: ``invalid`` at the first object with one, with both numbers.
    """
    cards = {*known, *(parts_of(key)[0] for key in edits if kind_of(key) == "card-type")}
    count, first, name = 0, "", ""
    for key, patch in edits.items():
        for card in _cards(key, patch):
            if card not in cards:
                first, name = first or key, name or str(card)
                count += 1
    if count > MOST_UNKNOWN:
        said = _(
            "One change has at most %(most)d figures of card types that the cluster does not have; this one has "
            "%(count)d, the first is %(card)s in %(object)s. Name card types of the cluster, or declare these first."
        )
        figures = {"most": MOST_UNKNOWN, "count": count, "card": cut(name), "object": cut(first)}
        raise _refused(first, said % figures, count, MOST_UNKNOWN)


def _refused(key: str, detail: str, count: int, most: int) -> DomainError:
    return DomainError.for_field(pointer("edits", cut(key)), detail, requested=count, limit=most)


def _figures(value: Any) -> int:
    """Values that hold no others; an object without any, and one that is deleted, count as one."""
    if isinstance(value, Mapping):
        return sum(map(_figures, value.values())) or 1
    if isinstance(value, list):
        return sum(map(_figures, value)) or 1
    return 1


def _cards(key: str, patch: Any) -> Iterator[Any]:
    """The card types that a patch names, once for each figure."""
    if not isinstance(patch, Mapping):
        return
    match kind_of(key):
        case "queue":
            yield from _names(patch.get("card_quota"))
        case "tenant" | "project":
            for limits in _values(patch.get("quota")):
                yield from _names(limits.get("card_quota") if isinstance(limits, Mapping) else None)
        case "tide-plan":
            layers = patch.get("layers")
            for layer in layers if isinstance(layers, list) else ():
                for cards in _values(layer.get("quota") if isinstance(layer, Mapping) else None):
                    yield from _names(cards)


def _names(value: Any) -> Iterator[Any]:
    yield from value if isinstance(value, Mapping) else ()


def _values(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, Mapping) else ()
