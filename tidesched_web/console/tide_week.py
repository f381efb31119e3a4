import contextlib
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from tidesched_web.common.calendar_bounds import FIRST_YEAR, LAST_YEAR
from tidesched_web.quota import tide
from tidesched_web.quota.tide_rules import WEEKDAY_NAMES

WEEK = dt.timedelta(days=7)
# A band narrower than the first has no room for its number on a wide screen, one narrower than the second on a phone.
LABELLED, LABELLED_NARROW = 1.7, 4.5


@dataclass(frozen=True, slots=True)
class Band:
    x: float
    width: float
    cards: int
    kind: str
    start: dt.datetime
    end: dt.datetime
    layers: list[str]

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 3)

    @property
    def labelled(self) -> bool:
        return self.width >= LABELLED

    @property
    def slim(self) -> bool:
        return self.width < LABELLED_NARROW


@dataclass(frozen=True, slots=True)
class Row:
    queue: str
    card: str
    service_type: str
    base: int
    bands: list[Band]
    most: int = 0


@dataclass(frozen=True, slots=True)
class Day:
    x: float
    name: str
    date: dt.date
    exception: str = ""

    @property
    def middle(self) -> float:
        return round(self.x + 50 / 7, 3)


@dataclass(frozen=True, slots=True)
class Week:
    start: dt.datetime
    zone: str
    days: list[Day]
    rows: list[Row] = field(default_factory=list)
    now: float | None = None

    @property
    def key(self) -> str:
        return f"{self.start:%G-W%V}"

    @property
    def has_exceptions(self) -> bool:
        return any(day.exception for day in self.days)

    @property
    def kinds(self) -> list[str]:
        return sorted({row.service_type for row in self.rows})

    @property
    def earlier(self) -> str:
        return f"{self.start - dt.timedelta(days=3):%G-W%V}"

    @property
    def later(self) -> str:
        return f"{self.start + dt.timedelta(days=10):%G-W%V}"


def monday_of(text: str, zone: ZoneInfo, now: dt.datetime) -> dt.date:
    with contextlib.suppress(ValueError):
        monday = dt.datetime.strptime(f"{text}-1 +0000", "%G-W%V-%u %z").date()
        if FIRST_YEAR < monday.year < LAST_YEAR:  # the week before and the one after are named, too
            return monday
    today = now.astimezone(zone).date()
    return today - dt.timedelta(days=today.weekday())


def week_of(
    plans: Sequence[tide.Plan],
    shown: tide.Plan,
    base: tide.Quota,
    service_types: Mapping[str, str],
    *,
    text: str,
    now: dt.datetime,
) -> Week:
    """A week with a change of clocks has 167 or 169 hours: positions are by the moments that pass, not by the dial."""
    monday = monday_of(text, shown.zone, now)
    start = tide.instant(monday, 0, shown.zone)
    end = tide.instant(monday + WEEK, 0, shown.zone)
    span = (end - start).total_seconds()

    def place(moment: dt.datetime) -> float:
        return round((moment - start).total_seconds() / span * 100, 3)

    days = []
    for number in range(7):
        date = monday + dt.timedelta(days=number)
        exception = ""
        if date in shown.exceptions:
            counts = shown.exceptions[date]
            exception = tide.NO_DAY if counts is None else str(WEEKDAY_NAMES[counts])
        days.append(Day(place(tide.instant(date, 0, shown.zone)), str(WEEKDAY_NAMES[number]), date, exception))
    steps = tide.steps(base, plans, start, end)
    rows = [
        _row(queue, card, base[queue].get(card, 0), service_types.get(queue, ""), plans, steps, place, shown.zone)
        for queue in sorted({queue for layer in shown.layers for queue in layer.quota if queue in base})
        for card in sorted({card for layer in shown.layers for card in layer.quota.get(queue, {})})
    ]
    local = now.astimezone(shown.zone)
    return Week(start.astimezone(shown.zone), shown.zone.key, days, rows, place(local) if start <= now < end else None)


def _row(
    queue: str,
    card: str,
    base: int,
    service_type: str,
    plans: Sequence[tide.Plan],
    steps: Sequence[tide.Step],
    place: Callable[[dt.datetime], float],
    zone: ZoneInfo,
) -> Row:
    bands: list[Band] = []
    for step in steps:
        cards = step.quota[queue].get(card, 0)
        layers = [
            name
            for name, (number, layer) in zip(tide.names_of(plans, step.open, _("layer %(n)s")), step.open, strict=True)
            if card in plans[number].layers[layer].quota.get(queue, {})
        ]
        start = bands.pop() if bands and bands[-1].cards == cards and bands[-1].layers == layers else None
        left = place(step.start) if start is None else start.x
        kind = "raised" if cards > base else "lowered" if cards < base else "base"
        bands.append(
            Band(
                left,
                round(place(step.end) - left, 3),
                cards,
                kind,
                (step.start if start is None else start.start).astimezone(zone),
                step.end.astimezone(zone),
                layers,
            )
        )
    return Row(queue, card, service_type, base, bands, max(band.cards for band in bands))
