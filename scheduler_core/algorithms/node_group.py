"""Which nodes to keep free so that several tasks will fit on them once what can end has ended."""

from collections.abc import Iterable, Sequence

import msgspec

from scheduler_core.model.resources import MILLI


class Need(msgspec.Struct, frozen=True, gc=False):
    """Equal tasks: amount by resource row (those above zero), card types that will do, cards or a share of one.
    ``request``: (row, amount) pairs. ``cards``: positions on the card axis. ``whole``: cards; ``share``: milli-cards of
    one card. ``count``: how many tasks."""

    request: tuple[tuple[int, int], ...]
    cards: tuple[int, ...]
    whole: int
    share: int
    count: int


class Emptied(msgspec.Struct, frozen=True, gc=False):
    """A node as it will be: free amount by resource row, untouched cards by type, and the needs that it may serve."""

    name: str
    free: tuple[int, ...]
    cards: dict[int, int]
    admits: tuple[bool, ...]


def served(node: Emptied, needs: Sequence[Need], left: Sequence[int]) -> list[int]:
    """How many tasks of each need fit on the node together, the first need first, at most ``left`` of each. Shares go
    onto untouched cards only, so the answer never says too much."""
    free, cards = list(node.free), dict(node.cards)
    found = []
    for need, open_count, admitted in zip(needs, left, node.admits, strict=True):
        fits = open_count if admitted else 0
        for row, amount in need.request:
            fits = min(fits, max(0, free[row]) // amount)
        if need.whole or need.share:
            fits = min(fits, _take_cards(cards, need, fits))
        for row, amount in need.request:
            free[row] -= fits * amount
        found.append(fits)
    return found


def _take_cards(cards: dict[int, int], need: Need, most: int) -> int:
    """Take cards for up to ``most`` tasks; returns for how many there were any."""
    done = 0
    for card in need.cards:
        there = cards.get(card, 0)
        each = MILLI // need.share if need.share else 1
        fits = min(most - done, there * each if need.share else there // need.whole)
        if fits > 0:
            cards[card] = there - (-(-fits // each) if need.share else fits * need.whole)
            done += fits
    return done


def choose_group(nodes: Iterable[Emptied], needs: Sequence[Need]) -> list[str] | None:
    """The first nodes, in the order given, that serve all needs together; None when all of them do not. A node that
    serves nothing is left out. O(nodes x needs)."""
    left = [need.count for need in needs]
    chosen: list[str] = []
    for node in nodes:
        if not any(left):
            break
        fits = served(node, needs, left)
        if any(fits):
            chosen.append(node.name)
            left = [count - done for count, done in zip(left, fits, strict=True)]
    return None if any(left) else chosen
