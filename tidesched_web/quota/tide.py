"""Quota by the clock: layers over the base quota, as pure functions over plain values.

A plan has layers; a layer is open from ``start`` to ``end`` of a local day, over midnight where ``end`` is not after
``start``. It belongs to the day on which it begins. ``exceptions`` make a date count as another weekday, or as none.

Clock changes, one rule: **a time that happens twice means its first occurrence, and a time that does not happen means
the moment at which the clock jumps.** So layers that follow each other neither overlap nor leave a gap, and a layer
whose whole time is jumped over does not open.

A layer that a person has ended (``ended_at``) is closed from then on until it would have closed; the next time it opens
as ever.

Plans apply in order of position and name, their layers in the order in which they stand: ``set`` makes a figure,
``add`` changes what is there. Nothing is remembered between two moments: what holds now follows from now alone.
"""

import datetime as dt
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
NO_DAY: Final = "none"
DAY_MINUTES: Final = 24 * 60
# A year and a day: every weekday on both sides of every clock change.
HORIZON_DAYS: Final = 367

# queue name → card name → number of cards
Quota = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Amount:
    act: str
    cards: int

    def on(self, figure: int) -> int:
        """The figure after it, never below 0."""
        return max(0, self.cards if self.act == "set" else figure + self.cards)


@dataclass(frozen=True)
class Layer:
    name: str
    days: frozenset[int]
    start: int
    end: int
    quota: Mapping[str, Mapping[str, Amount]]
    ended_at: dt.datetime | None = None

    @property
    def over_midnight(self) -> bool:
        return self.end <= self.start


@dataclass(frozen=True)
class Plan:
    name: str
    position: int
    zone: ZoneInfo
    exceptions: Mapping[dt.date, int | None]
    layers: Sequence[Layer]

    def weekday(self, day: dt.date) -> int | None:
        return self.exceptions.get(day, day.weekday())


# Which layers are open: positions of plan and layer, in the order in which they apply.
Open = tuple[tuple[int, int], ...]


def in_order(plans: Iterable[Plan]) -> list[Plan]:
    return sorted(plans, key=lambda plan: (plan.position, plan.name))


def instant(day: dt.date, minute: int, zone: ZoneInfo) -> dt.datetime:
    """The moment at which the clocks of ``zone`` show ``minute`` of ``day`` (UTC); the rule above for clock changes."""
    local = dt.datetime.combine(day, dt.time()) + dt.timedelta(minutes=minute)
    first = local.replace(tzinfo=zone).astimezone(dt.UTC)
    if first.astimezone(zone).replace(tzinfo=None) == local:
        return first
    # It does not happen: the offset changes somewhere between its two readings.
    low, high = local.replace(tzinfo=zone, fold=1).astimezone(dt.UTC), first
    before = low.astimezone(zone).utcoffset()
    while high - low > dt.timedelta(seconds=1):
        middle = low + (high - low) // 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)


def window(plan: Plan, layer: Layer, day: dt.date) -> tuple[dt.datetime, dt.datetime] | None:
    found = _written_window(plan, layer, day)
    if found is None or layer.ended_at is None or not found[0] <= layer.ended_at < found[1]:
        return found
    return (found[0], layer.ended_at) if found[0] < layer.ended_at else None


def _written_window(plan: Plan, layer: Layer, day: dt.date) -> tuple[dt.datetime, dt.datetime] | None:
    if plan.weekday(day) not in layer.days:
        return None
    opens = instant(day, layer.start, plan.zone)
    closes = instant(day, layer.end + (DAY_MINUTES if layer.over_midnight else 0), plan.zone)
    return (opens, closes) if opens < closes else None


def _days_near(plan: Plan, now: dt.datetime) -> Iterator[dt.date]:
    """The days on which a layer that is open now can have begun."""
    today = now.astimezone(plan.zone).date()
    for back in (2, 1, 0):
        yield today - dt.timedelta(days=back)


def open_layers(plans: Sequence[Plan], now: dt.datetime) -> Open:
    found = []
    for place, plan in enumerate(plans):
        days = list(_days_near(plan, now))
        for number, layer in enumerate(plan.layers):
            windows = (window(plan, layer, day) for day in days)
            if any(opens <= now < closes for opens, closes in filter(None, windows)):
                found.append((place, number))
    return tuple(found)


@dataclass(frozen=True)
class Ended:
    layer: int
    at: dt.datetime
    opens_next: dt.datetime | None


def ended_layers(plan: Plan, now: dt.datetime) -> list[Ended]:
    """The layers of a plan that would be open at ``now``, had they not been ended by hand."""
    found = []
    for number, layer in enumerate(plan.layers):
        for day in _days_near(plan, now):
            whole = _written_window(plan, layer, day)
            if layer.ended_at is None or whole is None or not whole[0] <= layer.ended_at <= now < whole[1]:
                continue
            starts = [edge for edge, opens, _layer in _edges([replace(plan, layers=[layer])], now, 8) if opens]
            found.append(Ended(number, layer.ended_at, min((edge for edge in starts if edge > now), default=None)))
    return found


def next_change(plans: Sequence[Plan], now: dt.datetime, *, days: int = 8) -> dt.datetime | None:
    edges = sorted({edge for edge, _opens, _layer in _edges(plans, now, days) if edge > now})
    return next((edge for edge in edges if _other_layers(plans, edge)), None)


def last_change(plans: Sequence[Plan], now: dt.datetime, *, days: int = 8) -> dt.datetime | None:
    edges = {edge for edge, _opens, _layer in _edges(plans, now - dt.timedelta(days=days), days + 2) if edge <= now}
    return next((edge for edge in sorted(edges, reverse=True) if _other_layers(plans, edge)), None)


def _other_layers(plans: Sequence[Plan], edge: dt.datetime) -> bool:
    return open_layers(plans, edge) != open_layers(plans, edge - dt.timedelta(microseconds=1))


def about(plans: Iterable[Plan], queue: str, card: str) -> list[Plan]:
    """The plans with those layers alone that name this figure; a plan without one is left out."""
    found = []
    for plan in plans:
        layers = [layer for layer in plan.layers if card in layer.quota.get(queue, {})]
        if layers:
            found.append(replace(plan, layers=layers))
    return found


def _edges(plans: Sequence[Plan], start: dt.datetime, days: int) -> Iterator[tuple[dt.datetime, bool, tuple[int, int]]]:
    for place, plan in enumerate(plans):
        first = start.astimezone(plan.zone).date() - dt.timedelta(days=2)
        for number, layer in enumerate(plan.layers):
            for step in range(days + 2):
                found = window(plan, layer, first + dt.timedelta(days=step))
                if found is not None:
                    yield found[0], True, (place, number)
                    yield found[1], False, (place, number)


def _places(plans: Sequence[Plan]) -> Iterator[tuple[int, int]]:
    return ((place, number) for place, plan in enumerate(plans) for number in range(len(plan.layers)))


def moments(plans: Sequence[Plan], start: dt.datetime, *, days: int = HORIZON_DAYS) -> dict[Open, dt.datetime]:
    """Every combination of open layers from ``start`` on, each with its first moment. Without any layer too."""
    found: dict[Open, dt.datetime] = {}
    standing: dict[tuple[int, int], int] = {}
    # Which layers are open, as the bits of a number: most combinations come again, and only a new one is spelt out.
    bits = {layer: 1 << bit for bit, layer in enumerate(_places(plans))}
    mask, seen = 0, set[int]()
    edges = sorted(_edges(plans, start, days))
    since = start
    for place, (edge, opens, layer) in enumerate(edges):
        standing[layer] = standing.get(layer, 0) + (1 if opens else -1)
        mask = mask | bits[layer] if standing[layer] > 0 else mask & ~bits[layer]
        together = place + 1 < len(edges) and edges[place + 1][0] == edge
        if edge <= start:
            since = edge
        elif not together and mask not in seen:
            seen.add(mask)
            found[tuple(sorted(key for key, count in standing.items() if count > 0))] = edge
    # What stands at the start, unless it comes again: since its own beginning.
    found.setdefault(open_layers(plans, start), since)
    return found


def with_layers(base: Quota, plans: Sequence[Plan], open_now: Open) -> dict[str, dict[str, int]]:
    """The quota under these open layers. A queue that is not in ``base`` is passed over: it is not there (any more)."""
    quota = {queue: dict(cards) for queue, cards in base.items()}
    for place, number in open_now:
        for queue, cards in plans[place].layers[number].quota.items():
            if queue in quota:
                for card, amount in cards.items():
                    quota[queue][card] = amount.on(quota[queue].get(card, 0))
    return quota


def effective_quota(
    base: Quota, plans: Sequence[Plan], now: dt.datetime, floors: Quota | None = None
) -> dict[str, dict[str, int]]:
    """``floors``: what inference uses now, which no plan takes; it never gives more than the base does."""
    quota = with_layers(base, plans, open_layers(plans, now))
    for queue, used in (floors or {}).items():
        for card, count in used.items():
            own = base.get(queue, {}).get(card, 0)
            if queue in quota and quota[queue].get(card, 0) < min(own, count):
                quota[queue][card] = min(own, count)
    return quota


@dataclass(frozen=True)
class Step:
    start: dt.datetime
    end: dt.datetime
    quota: Mapping[str, Mapping[str, int]]
    open: Open


def steps(base: Quota, plans: Sequence[Plan], start: dt.datetime, end: dt.datetime) -> list[Step]:
    """The quota between two moments as a step function; the floors of inference are not in it: they are of a moment."""
    days = (end - start).days + 2  # local days that such a span may touch, whole or in part
    edges = sorted({edge for edge, _opens, _layer in _edges(plans, start, days) if start < edge < end})
    found = []
    for left, right in pairwise([start, *edges, end]):
        open_then = open_layers(plans, left)
        found.append(Step(left, right, with_layers(base, plans, open_then), open_then))
    return found


def touched(plans: Iterable[Plan]) -> set[str]:
    return {queue for plan in plans for layer in plan.layers for queue in layer.quota}


def minutes(text: str) -> int | None:
    """``HH:MM`` as minutes after midnight, 24:00 included; None for anything else."""
    hours, colon, rest = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not colon or len(rest) != 2 or len(hours) not in (1, 2) or not (hours + rest).isascii():
        return None
    if not hours.isdigit() or not rest.isdigit() or int(rest) > 59:
        return None
    found = int(hours) * 60 + int(rest)
    return found if found <= DAY_MINUTES else None


def clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def plan_of(name: str, document: Mapping[str, Any]) -> Plan:
    return Plan(
        name=name,
        position=document.get("position", 0),
        zone=ZoneInfo(document.get("time_zone", "UTC")),
        exceptions={
            dt.date.fromisoformat(day): None if counts_as == NO_DAY else WEEKDAYS.index(counts_as)
            for day, counts_as in document.get("exceptions", {}).items()
        },
        layers=[_layer_of(layer) for layer in document.get("layers", ())],
    )


def _layer_of(layer: Mapping[str, Any]) -> Layer:
    return Layer(
        name=layer.get("name", ""),
        days=frozenset(WEEKDAYS.index(day) for day in layer["days"]),
        start=minutes(layer["start"]) or 0,
        end=minutes(layer["end"]) or 0,
        quota={
            queue: {card: Amount(*next(iter(amount.items()))) for card, amount in cards.items()}
            for queue, cards in layer["quota"].items()
        },
        ended_at=dt.datetime.fromisoformat(layer["ended_at"]) if layer.get("ended_at") else None,
    )


def enabled_plans(documents: Mapping[str, Mapping[str, Any]]) -> list[Plan]:
    return in_order(plan_of(name, document) for name, document in documents.items() if document.get("enabled"))


def moments_ahead(documents: Mapping[str, Mapping[str, Any]], now: dt.datetime) -> dict[Open, dt.datetime]:
    """`moments` of the enabled plans of ``documents`` from the day of ``now`` on; remembered, since edits ask often."""
    enabled = {name: dict(document) for name, document in documents.items() if document.get("enabled")}
    day = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return _moments_of(json.dumps(enabled, sort_keys=True), day)


@lru_cache(maxsize=64)
def _moments_of(documents: str, day: dt.datetime) -> dict[Open, dt.datetime]:
    return moments(enabled_plans(json.loads(documents)), day)


def names_of(plans: Sequence[Plan], open_now: Open, unnamed: str = "layer %(n)s") -> list[str]:
    """The open layers as ``plan: layer``; one without a name by its number."""
    named = ((plans[place], number) for place, number in open_now)
    return [f"{plan.name}: {plan.layers[number].name or unnamed % {'n': number + 1}}" for plan, number in named]


def held_within(
    wanted: Quota, base: Quota, excess: Iterable[tuple[Collection[str], str, int]]
) -> dict[str, dict[str, int]]:
    """Raises wait while inference still uses what a plan moves; the last queue by name gives first."""
    quota = {queue: dict(cards) for queue, cards in wanted.items()}
    for queues, card, by in excess:
        left = by
        for queue in sorted(queues, reverse=True):
            raised = quota.get(queue, {}).get(card, 0) - base.get(queue, {}).get(card, 0)
            cut = min(max(raised, 0), left)
            if cut > 0:
                quota[queue][card] -= cut
                left -= cut
    return quota
