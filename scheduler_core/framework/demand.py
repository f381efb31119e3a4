"""What a gang still asks for, and what a refusal says in numbers."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from scheduler_core.model.reason import ReasonCode

_Key = TypeVar("_Key")


class Demand(msgspec.Struct, frozen=True, gc=False):
    """CPU, memory and cards of several tasks together, as they count against a quota. ``cpu_milli``, ``memory_mib``:
    milli-cores, MiB. ``cards``: milli-cards by the tuple of card positions of which any will do. ``unnamed``: the same
    for requests that name no card but a resource. ``unknown``: milli-cards by name that no node has."""

    cpu_milli: int = 0
    memory_mib: int = 0
    cards: dict[tuple[int, ...], int] = {}
    unnamed: dict[tuple[int, ...], int] = {}
    unknown: dict[str, int] = {}

    def less(self, other: Demand) -> Demand:
        """What is left of it when ``other`` is taken care of. A choice only counts against the same choice; cards that
        no request names are any of their choice."""
        return Demand(
            max(0, self.cpu_milli - other.cpu_milli), max(0, self.memory_mib - other.memory_mib),
            _left(self.cards, other.cards), _left(self.unnamed, other._within(self.unnamed)),
            _left(self.unknown, other.unknown),
        )  # fmt: skip

    def at_least(self, other: Demand) -> Demand:
        """The larger of the two, of each resource."""
        more = other.less(self)
        if more == Demand():
            return self
        return Demand(
            self.cpu_milli + more.cpu_milli, self.memory_mib + more.memory_mib, _sum(self.cards, more.cards),
            _sum(self.unnamed, more.unnamed), _sum(self.unknown, more.unknown),
        )  # fmt: skip

    def _within(self, choices: dict[tuple[int, ...], int]) -> dict[tuple[int, ...], int]:
        """Milli-cards of which every card that will do is one of the choice, by choice."""
        cards = self.all_cards()
        return {
            choice: sum(milli for narrower, milli in cards.items() if set(narrower) <= set(choice))
            for choice in choices
        }

    def all_cards(self) -> dict[tuple[int, ...], int]:
        """``cards`` and ``unnamed`` together."""
        return _sum(self.cards, self.unnamed)


def _sum(mine: dict[_Key, int], theirs: dict[_Key, int]) -> dict[_Key, int]:
    return {key: mine.get(key, 0) + theirs.get(key, 0) for key in {**mine, **theirs}}


def _left(mine: dict[_Key, int], theirs: dict[_Key, int]) -> dict[_Key, int]:
    return {key: milli - theirs.get(key, 0) for key, milli in mine.items() if milli > theirs.get(key, 0)}


class Shortfall(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A refusal because of an amount; all numbers in the canonical unit of ``resource``.

    Attributes:
        code: the reason that it leads to. resource: ``cpu``, ``memory`` or a card (``A|B`` for a choice).
        requested, limit, allocated, inqueue: what is asked, what is allowed, what is in use, what is promised.
        short: how much more would be needed. queue: whose limit, empty for the cluster's.
        whose: whose limit it is in words, where it is no queue's."""

    code: ReasonCode
    resource: str
    requested: int
    limit: int = 0
    allocated: int = 0
    inqueue: int = 0
    short: int = 0
    queue: str = ""
    whose: str = ""
