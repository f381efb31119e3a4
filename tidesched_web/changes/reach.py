"""What a written change reaches: whose forecasts cannot be judged any more once it came between."""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidesched_web.changes.tree_document import kind_of, parts_of

# Fields of a queue that decide about nothing: beside card quotas of single cards, an edit of any other one can move
# all cards that the queue has.
_WORDS: Final = frozenset({"name", "description"})


@dataclass
class Reach:
    """Queues and cards by name, ceilings (tenants, projects, business lines, queues) by key; or ``everything``."""

    queues: set[str] = field(default_factory=set)
    cards: set[str] = field(default_factory=set)
    ceilings: set[str] = field(default_factory=set)
    everything: bool = False

    def touches(self, *, queue: str, ceilings: Iterable[str], cards: Iterable[str]) -> bool:
        return (
            self.everything
            or queue in self.queues
            or not self.ceilings.isdisjoint(ceilings)
            or not self.cards.isdisjoint(cards)
        )


@dataclass(frozen=True)
class Written:
    change: int
    at: dt.datetime
    reach: Reach


def reach_of(edits: Mapping[str, Any], base: Mapping[str, Any]) -> Reach:
    found = Reach()
    for key, patch in edits.items():
        before: Mapping[str, Any] = base.get(key) or {}
        match kind_of(key):
            case "queue":
                found.queues.add(parts_of(key)[0])
                found.ceilings.add(key)
                found.cards |= _cards_of_queue(patch, before)
            case "tenant" | "project" | "business-line":
                found.ceilings.add(key)
            case "rules":
                found.everything = True
            case "card-type":
                found.cards.add(parts_of(key)[0])
            case "grant":
                found.queues.add(parts_of(key)[1])
            case "tide-plan":
                for document in (before, patch or {}):
                    _add_layers(found, document)
            case _:
                pass  # a priority class says nothing of the gangs that have it already
    return found


def _cards_of_queue(patch: Mapping[str, Any] | None, before: Mapping[str, Any]) -> set[str]:
    had, named = before.get("card_quota") or {}, (patch or {}).get("card_quota") or {}
    quotas_only = bool(patch) and bool(before) and set(patch or ()) <= _WORDS | {"card_quota"}
    return set(named) if quotas_only else {*had, *named}


def _add_layers(found: Reach, document: Mapping[str, Any]) -> None:
    for layer in document.get("layers") or ():
        for queue, quota in layer.get("quota", {}).items():
            found.queues.add(queue)
            found.cards |= set(quota)
