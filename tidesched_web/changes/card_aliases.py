from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from tidesched_web.changes.tree_document import kind_of, pointer
from tidesched_web.clusters.models import CardType
from tidesched_web.common.errors import DomainError


def canonical_cards(edits: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Edits with every alias of a card replaced; what has no such shape stays for others to refuse."""
    if not aliases:
        return dict(edits)
    return {key: _document(key, patch, aliases) for key, patch in edits.items()}


def named_anew(card: CardType, patch: Mapping[str, Any]) -> dict[str, Any] | None:
    if not card.discovered:
        return dict(patch)
    if not patch.get("aliases"):
        return None
    found = {"kind": card.kind, "parent": card.parent.name if card.parent else None, "resource": card.resource or None}
    return {name: value for name, value in found.items() if value} | dict(patch)


def _document(key: str, patch: Any, aliases: Mapping[str, str]) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    at = pointer("edits", key)
    match kind_of(key):
        case "queue":
            return _field(patch, "card_quota", aliases, at)
        case "tenant" | "project" if isinstance(patch.get("quota"), Mapping):
            at += "/quota"
            quota = {
                kind: _field(limits, "card_quota", aliases, f"{at}/{kind}") for kind, limits in patch["quota"].items()
            }
            return {**patch, "quota": quota}
        case "tide-plan" if isinstance(patch.get("layers"), list):
            return {**patch, "layers": [_layer(layer, aliases, f"{at}/layers") for layer in patch["layers"]]}
    return patch


def _layer(layer: Any, aliases: Mapping[str, str], at: str) -> Any:
    if not isinstance(layer, Mapping) or not isinstance(layer.get("quota"), Mapping):
        return layer
    return {**layer, "quota": {queue: _cards(cards, aliases, at) for queue, cards in layer["quota"].items()}}


def _field(document: Any, name: str, aliases: Mapping[str, str], at: str) -> Any:
    if not isinstance(document, Mapping) or name not in document:
        return document
    return {**document, name: _cards(document[name], aliases, f"{at}/{name}")}


def _cards(cards: Any, aliases: Mapping[str, str], at: str) -> Any:
    if not isinstance(cards, Mapping):
        return cards
    found: dict[str, Any] = {}
    for name, figure in cards.items():
        card = aliases.get(name, name)
        if card in found:
            said = _("%(card)s is there twice: %(name)s is another name for it.")
            raise DomainError.for_field(at + pointer(str(name)), said % {"card": card, "name": name})
        found[card] = figure
    return found
