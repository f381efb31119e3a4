"""When tide plans make another figure of a queue's quota than its base: from when, to when, and by which plans."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidesched_web.quota import tide
from tidesched_web.quota.tide import Plan, Quota, Step

# A layer that is open now may have opened so long ago; one that comes next is looked for so far ahead.
_BACK = dt.timedelta(days=2)
AHEAD = dt.timedelta(days=8)


@dataclass(frozen=True, slots=True)
class Turn:
    """A stretch in which a figure is not its base: fewer cards are lent, more are got.

    ``start`` is None where it began more than two days ago, ``end`` where it goes on for more than eight.
    """

    queue: str
    card: str
    base: int
    cards: int
    start: dt.datetime | None
    end: dt.datetime | None
    plans: tuple[str, ...]
    is_open: bool

    @property
    def lends(self) -> bool:
        return self.cards < self.base

    @property
    def by(self) -> int:
        """How many cards it is about."""
        return abs(self.cards - self.base)


def turns(base: Quota, plans: Sequence[Plan], now: dt.datetime) -> list[Turn]:
    """Of each figure the stretch that is open now, or else the next one; the open ones first, then by their start.

    By the layers alone: what inference keeps of them is of a moment. O(steps of the plans × figures).
    """
    first, last = now - _BACK, now + AHEAD
    steps = tide.steps(base, plans, first, last)
    found = []
    for queue, had in base.items():
        for card in sorted({card for plan in plans for layer in plan.layers for card in layer.quota.get(queue, {})}):
            turn = _first_turn(steps, plans, queue, card, had.get(card, 0), now)
            if turn is not None:
                start, end = (None if at in (first, last) else at for at in (turn.start, turn.end))
                found.append(replace(turn, start=start, end=end))
    return sorted(found, key=lambda turn: (not turn.is_open, turn.start or first, turn.queue, turn.card))


def _first_turn(
    steps: Sequence[Step], plans: Sequence[Plan], queue: str, card: str, base: int, now: dt.datetime
) -> Turn | None:
    run: list[Step] = []
    for step in steps:
        cards = step.quota[queue].get(card, 0)
        if run and cards == run[-1].quota[queue].get(card, 0):
            run.append(step)
        elif run and run[-1].end > now:
            break
        else:
            run = [step] if cards != base else []
    if not run or run[-1].end <= now:
        return None
    names = {name for step in run for name in _plans_about(plans, step.open, queue, card)}
    start, end, cards = run[0].start, run[-1].end, run[0].quota[queue].get(card, 0)
    return Turn(queue, card, base, cards, start, end, tuple(sorted(names)), is_open=start <= now)


def _plans_about(plans: Sequence[Plan], open_now: tide.Open, queue: str, card: str) -> set[str]:
    """The plans with an open layer that names this figure."""
    return {plans[place].name for place, layer in open_now if card in plans[place].layers[layer].quota.get(queue, {})}
