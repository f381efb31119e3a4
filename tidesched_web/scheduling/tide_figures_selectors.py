"""All cards are physical ones: a slice counts as the part of a board that it is."""

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, linear_regression
from typing import Any

from django.db import connection

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.physical import share_of_board
from tidesched_web.engine import demo
from tidesched_web.scheduling.models import TidePoint
from tidesched_web.scheduling.selectors import CARDS_OF_TIDE

DAY = dt.timedelta(days=1)
STEP = dt.timedelta(minutes=30)
# The curve of a day is the mean of so many.
DAYS = 3
# With fewer half hours of a day it is not said when its highest and lowest are.
ENOUGH_STEPS = 40
# A day whose highest and lowest are nearer than this share of the hardware has no tide.
LEAST_RANGE = 0.08
# Where inference goes is told by the means of ten minutes of the last hour; in an hour it moves by less than this share
# of the hardware where it is steady.
HOUR, TEN_MINUTES = dt.timedelta(hours=1), dt.timedelta(minutes=10)
ENOUGH_MEANS = 3
NOISE = 0.02

_MILLI = ("total", "inference", "training", "borrowed", "foreign", "idle", "waiting")

_COLUMNS = ("id", "card", "at", "wall_at", *_MILLI, "quota")
_SELECTED = ", ".join(f'"{name}"' for name in _COLUMNS)
_QUERY = f"""
WITH RECURSIVE {CARDS_OF_TIDE},
     newest AS (SELECT point.* FROM cards CROSS JOIN LATERAL (
                    SELECT * FROM scheduling_tidepoint WHERE cluster_id = %(cluster)s AND card = cards.card
                    ORDER BY at DESC, id DESC LIMIT 1) AS point),
     measured AS (SELECT point.* FROM cards CROSS JOIN LATERAL (
                      SELECT * FROM scheduling_tidepoint WHERE cluster_id = %(cluster)s AND card = cards.card
                      AND at > %(now)s - %(days)s * %(day)s AND at >= %(since)s AND at <= %(now)s) AS point),
     earlier AS (SELECT DISTINCT ON (card) * FROM measured
                 WHERE at <= %(now)s - %(day)s AND at > %(now)s - %(day)s - %(step)s ORDER BY card, at DESC, id DESC),
     means AS (SELECT 'step' AS kind, date_bin(%(step)s, at, '2000-01-01Z') AS step, card,
                      avg(inference)::float8 AS mean FROM measured GROUP BY 2, 3
               UNION ALL
               SELECT 'recent', date_bin(%(recent)s, at, %(now)s), card, avg(inference)::float8
               FROM measured WHERE at > %(now)s - %(hour)s GROUP BY 2, 3),
     uses AS (SELECT card, ARRAY[total - idle, floor(extract(epoch FROM at))::bigint] AS used FROM measured
              WHERE at > %(now)s - %(day)s),
     ranges AS (SELECT card, max(used) AS high, min(used) AS low FROM uses GROUP BY card)
SELECT 'now', 0::float8, {_SELECTED} FROM newest
UNION ALL
SELECT 'earlier', 0, {_SELECTED} FROM earlier
UNION ALL
SELECT kind, mean, 0, card, step, step, {", ".join("0" for _ in _MILLI)}, NULL FROM means
UNION ALL
SELECT 'range', 0, 0, card, to_timestamp(high[2]), to_timestamp(low[2]), high[1], low[1],
       {", ".join("0" for _ in _MILLI[2:])}, NULL FROM ranges
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
    """Milli-cards."""

    high: int
    high_at: dt.datetime
    low: int
    low_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Figures:
    """``rise``: cards of inference in an hour, where enough of the last one was measured. ``curve``: the day ahead, as
    the last days were. What was drawn before a simulated cluster began is in neither of them."""

    now: Moment | None
    earlier: Moment | None
    points: Sequence[TidePoint] = ()
    day: Mapping[str, DayRange] = field(default_factory=dict)
    rise: float | None = None
    curve: Sequence[tuple[dt.datetime, float]] = ()

    @property
    def direction(self) -> int | None:
        """1 as it rises, -1 as it falls, 0 while it is steady."""
        if self.now is None or self.rise is None:
            return None
        return 0 if abs(self.rise) < NOISE * self.now.total else 1 if self.rise > 0 else -1

    def turns(self) -> dict[bool, dt.datetime]:
        """The next peak (True) and the next low; a day may have more than one peak."""
        found: dict[bool, dt.datetime] = {}
        for peak, place in self._turns([value for _at, value in self.curve] * 2):
            days, step = divmod(place, len(self.curve))
            found.setdefault(peak, self.curve[step][0] + DAY * days)
        return found

    def _turns(self, values: Sequence[float]) -> Iterator[tuple[bool, int]]:
        """Where use had moved one way by `LEAST_RANGE`, and then moved back by as much."""
        least = LEAST_RANGE * self.now.total if self.now else math.inf
        high = low = 0
        rises: bool | None = None
        for place, value in enumerate(values):
            high, low = (place if value > values[high] else high), (place if value < values[low] else low)
            if rises is not False and values[high] - value >= least:
                if rises:
                    yield True, high
                rises, low = False, place
            elif rises is not True and value - values[low] >= least:
                if rises is False:
                    yield False, low
                rises, high = True, place


def measured_since(cluster: Cluster) -> dt.datetime:
    """What lies before the first moment of a simulated cluster was drawn."""
    return dt.datetime.fromtimestamp(demo.START if cluster.simulated else 0, dt.UTC)


def tide_figures(cluster: Cluster) -> Figures:
    now = cluster.clock()
    asked: dict[str, Any] = {"cluster": cluster.pk, "now": now, "since": measured_since(cluster), "days": DAYS}
    with connection.cursor() as cursor:
        cursor.execute(_QUERY, asked | {"day": DAY, "step": STEP, "hour": HOUR, "recent": TEN_MINUTES})
        rows = cursor.fetchall()
    points: dict[str, list[TidePoint]] = {"now": [], "earlier": []}
    means: dict[str, dict[dt.datetime, dict[str, float]]] = {"step": {}, "recent": {}}
    ranges: dict[str, DayRange] = {}
    for kind, mean, *columns in rows:
        _id, card, at, wall_at, high, low, *_rest = columns
        if kind in points:
            points[kind].append(TidePoint(cluster=cluster, **dict(zip(_COLUMNS, columns, strict=True))))
        elif kind in means:
            means[kind].setdefault(at, {})[card] = mean * _share(card)
        # A jump within one minute would be the lowest and the highest at one time.
        elif high > low and abs(at - wall_at) >= dt.timedelta(minutes=1):
            ranges[card] = DayRange(high, at, low, wall_at)
    newest = sorted(points["now"], key=lambda point: (-point.total, point.card))
    steps, recent = _summed(means["step"]), _summed(means["recent"])
    curve = _curve(steps, now)
    rise = None
    if len(recent) >= ENOUGH_MEANS:
        rise = linear_regression([(at - now) / HOUR for at, _value in recent], [value for _at, value in recent]).slope
    day = ranges if curve else {}
    return Figures(_moment(newest), _moment(points["earlier"]), newest, day, rise, curve)


def _curve(steps: Sequence[tuple[dt.datetime, float]], now: dt.datetime) -> list[tuple[dt.datetime, float]]:
    """Each half hour of the day ahead as the mean of the days that have it; nothing before a whole day was seen."""
    found: dict[dt.datetime, list[float]] = {}
    for at, value in steps:
        found.setdefault(at + DAY * math.ceil((now - at) / DAY), []).append(value)
    seen = len(found) >= ENOUGH_STEPS and steps[0][0] <= now - DAY + STEP
    return [(at, fmean(found[at])) for at in sorted(found)] if seen else []


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
    """The sum at each step; without a point in it a card type stands where it stood before, or is seen first."""
    standing = {card: value for at in sorted(steps, reverse=True) for card, value in steps[at].items()}
    found = []
    for at in sorted(steps):
        standing |= steps[at]
        found.append((at, sum(standing.values())))
    return found
