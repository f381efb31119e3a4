import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidesched_web.quota import tide
from tidesched_web.quota.tide import Plan, Quota, Step

# A layer that is open now may have opened so long ago; one that comes next is looked for so far ahead.
_BACK = dt.timedelta(days=2)
AHEAD = dt.timedelta(days=8)


@dataclass(frozen=True, slots=True)
class Change:
    at: dt.datetime
    cards: int
    plans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """``start``: None = more than two days ago; ``end``: None = not within eight days, then ``least`` stays."""

    queue: str
    card: str
    base: int
    cards: int
    start: dt.datetime | None
    end: dt.datetime | None
    plans: tuple[str, ...]
    is_open: bool
    changes: tuple[Change, ...] = ()
    least: int = 0
    standing: tuple[str, ...] = ()

    @property
    def lends(self) -> bool:
        return self.cards < self.base

    @property
    def by(self) -> int:
        return abs(self.cards - self.base)


def turns(base: Quota, plans: Sequence[Plan], now: dt.datetime) -> list[Turn]:
    """By the layers of all plans together: what inference keeps of them is of a moment."""
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
    def cards_of(step: Step) -> int:
        return step.quota[queue].get(card, 0)

    def side(step: Step) -> int:
        return (cards_of(step) > base) - (cards_of(step) < base)

    run: list[Step] = []
    for step in steps:
        if run and side(step) == side(run[0]):
            run.append(step)
        elif run and run[-1].end > now:
            break
        else:
            run = [step] if cards_of(step) != base else []
    if not run or run[-1].end <= now:
        return None
    about = [_plans_about(plans, step.open, queue, card) for step in run]
    found = [Change(run[0].start, cards_of(run[0]), _in_order(about[0]))]
    for step, names in zip(run[1:], about[1:], strict=True):
        if cards_of(step) != found[-1].cards:
            found.append(Change(step.start, cards_of(step), _in_order(names)))
    at = max((place for place, part in enumerate(found) if part.at <= now), default=0)
    ahead = [names for step, names in zip(run, about, strict=True) if step.end > now]
    return Turn(
        queue, card, base, found[at].cards, found[at].at, run[-1].end, found[at].plans,
        is_open=run[0].start <= now,
        changes=tuple(found[at + 1 :]),
        least=min(abs(part.cards - base) for part in found[at:]),
        standing=_in_order(set.intersection(*ahead)),
    )  # fmt: skip


def _plans_about(plans: Sequence[Plan], open_now: tide.Open, queue: str, card: str) -> set[str]:
    return {plans[place].name for place, layer in open_now if card in plans[place].layers[layer].quota.get(queue, {})}


def _in_order(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
