"""All cards are physical ones: a slice counts as the part of a board that it is."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.physical import share_of_board
from tidesched_web.scheduling.models import TidePoint
from tidesched_web.scheduling.selectors import CARDS_OF_TIDE

DAY = dt.timedelta(days=1)
STEP = dt.timedelta(minutes=30)
# With fewer half hours of the last day it is not said when its highest and lowest were.
ENOUGH_STEPS = 40
# A day whose highest and lowest are nearer than this share of the hardware has no tide.
LEAST_RANGE = 0.08

_MILLI = ("total", "inference", "training", "borrowed", "foreign", "idle", "waiting")

_COLUMNS = ("id", "card", "at", "wall_at", *_MILLI, "quota")
_SELECTED = ", ".join(f'"{name}"' for name in _COLUMNS)
_QUERY = f"""
WITH RECURSIVE {CARDS_OF_TIDE},
     newest AS (SELECT point.* FROM cards CROSS JOIN LATERAL (
                    SELECT * FROM scheduling_tidepoint WHERE cluster_id = %(cluster)s AND card = cards.card
                    ORDER BY at DESC, id DESC LIMIT 1) AS point),
     earlier AS (SELECT point.* FROM cards CROSS JOIN LATERAL (
                    SELECT * FROM scheduling_tidepoint WHERE cluster_id = %(cluster)s AND card = cards.card
                                                         AND at <= %(now)s - make_interval(secs => %(day)s)
                    ORDER BY at DESC, id DESC LIMIT 1) AS point),
     day AS (SELECT card, at, inference, total - idle AS used FROM scheduling_tidepoint
             WHERE cluster_id = %(cluster)s AND at > %(now)s - make_interval(secs => %(day)s) AND at <= %(now)s),
     steps AS (SELECT date_bin(make_interval(secs => %(step)s), at, %(now)s) AS step, card,
                      avg(inference)::float8 AS mean FROM day GROUP BY 1, 2),
     halves AS (SELECT date_bin(make_interval(secs => %(step)s), at, 'epoch'::timestamptz) AS half, card,
                       max(used) AS high, min(used) AS low FROM day GROUP BY 1, 2)
SELECT 'now', 0::float8, {_SELECTED} FROM newest
UNION ALL
SELECT 'earlier', 0, {_SELECTED} FROM earlier
UNION ALL
SELECT 'step', mean, 0, card, step, step, {", ".join("0" for _ in _MILLI)}, NULL FROM steps
UNION ALL
SELECT 'half', 0, 0, card, half, half, high, low, {", ".join("0" for _ in _MILLI[2:])}, NULL FROM halves
"""  # noqa: S608 - names of columns


@dataclass(frozen=True, slots=True)
class Moment:
    """Physical cards at one moment. ``idle_wanted``: idle although gangs wait for that card type."""

    total: float
    used: float
    idle_wanted: float
    waiting: float
    lent: float

    @property
    def utilisation(self) -> float:
        return 100 * self.used / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class DayRange:
    """Milli-cards. Half hours are those of the clock: the same is said as long as nothing new is measured."""

    high: int
    high_at: dt.datetime
    low: int
    low_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Figures:
    now: Moment | None
    earlier: Moment | None
    inference: Sequence[tuple[dt.datetime, float]] = field(default_factory=list)
    points: Sequence[TidePoint] = ()
    day: Mapping[str, DayRange] = field(default_factory=dict)

    def turn(self) -> tuple[bool, dt.datetime] | None:
        """A turn is where use then moved back by `LEAST_RANGE`: a day may have more than one peak."""
        if self.now is None or len(self.inference) < ENOUGH_STEPS:
            return None
        least, steps = LEAST_RANGE * self.now.total, len(self.inference)
        values = [value for _at, value in self.inference] * 2
        high = low = 0
        rises: bool | None = None
        for place, value in enumerate(values):
            high, low = (place if value > values[high] else high), (place if value < values[low] else low)
            if rises is not False and values[high] - value >= least:
                if rises:
                    return True, self._then(high, steps)
                rises, low = False, place
            elif rises is not True and value - values[low] >= least:
                if rises is False:
                    return False, self._then(low, steps)
                rises, high = True, place
        return None

    def last_peak(self) -> tuple[dt.datetime, float] | None:
        """A peak is where use had risen by `LEAST_RANGE` and then moved back by as much, else the highest half hour."""
        if self.now is None or len(self.inference) < ENOUGH_STEPS:
            return None
        values, least = [value for _at, value in self.inference], LEAST_RANGE * self.now.total
        if max(values) - min(values) < least:
            return None
        peak = values.index(max(values))
        high = low = 0
        rises = False
        for place, value in enumerate(values):
            if rises:
                high = place if value > values[high] else high
                if values[high] - value >= least:
                    peak, rises, low = high, False, place
            else:
                low = place if value < values[low] else low
                if value - values[low] >= least:
                    rises, high = True, place
        return self.inference[peak]

    def _then(self, place: int, steps: int) -> dt.datetime:
        return self.inference[place % steps][0] + DAY * (1 + place // steps)


def tide_figures(cluster: Cluster) -> Figures:
    asked: dict[str, Any] = {
        "cluster": cluster.pk,
        "now": cluster.clock(),
        "day": DAY.total_seconds(),
        "step": STEP.total_seconds(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_QUERY, asked)
        rows = cursor.fetchall()
    points: dict[str, list[TidePoint]] = {"now": [], "earlier": []}
    steps: dict[dt.datetime, dict[str, float]] = {}
    uses: dict[str, list[tuple[dt.datetime, int, int]]] = {}
    for kind, mean, *columns in rows:
        if kind in points:
            points[kind].append(TidePoint(cluster=cluster, **dict(zip(_COLUMNS, columns, strict=True))))
        else:
            _id, card, at, _wall_at, high, low, *_rest = columns
            if kind == "step":
                steps.setdefault(at, {})[card] = mean * _share(card)
            else:
                uses.setdefault(card, []).append((at, high, low))
    newest = sorted(points["now"], key=lambda point: (-point.total, point.card))
    day = {card: _range(found) for card, found in uses.items()}
    return Figures(_moment(newest), _moment(points["earlier"]), _summed(steps), newest, day)


def _range(steps: Sequence[tuple[dt.datetime, int, int]]) -> DayRange:
    high_at, high, _low = max(steps, key=lambda step: (step[1], step[0]))
    low_at, _high, low = min(steps, key=lambda step: (step[2], -step[0].timestamp()))
    return DayRange(high, high_at, low, low_at)


def _share(card: str) -> float:
    return float(share_of_board(card)) / 1000


def _moment(points: Sequence[TidePoint]) -> Moment | None:
    shares = [(point, _share(point.card)) for point in points]
    total = sum(point.total * share for point, share in shares)
    if not total:
        return None
    return Moment(
        total=total,
        used=sum((point.total - point.idle) * share for point, share in shares),
        idle_wanted=sum(min(point.idle, point.waiting) * share for point, share in shares),
        waiting=sum(point.waiting * share for point, share in shares),
        lent=sum(point.borrowed * share for point, share in shares),
    )


def _summed(steps: dict[dt.datetime, dict[str, float]]) -> list[tuple[dt.datetime, float]]:
    """The sum at each half hour; a card type without a point in it stands where it stood before."""
    standing: dict[str, float] = {}
    found = []
    for at in sorted(steps):
        standing |= steps[at]
        found.append((at, sum(standing.values())))
    return found
