"""The figures of the overview: how full the physical cards are, what stands idle while it is waited for, and the tide.

All cards are physical ones: a slice counts as the part of a board that it is. One query.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import connection

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.physical import share_of_board

DAY = dt.timedelta(days=1)
STEP = dt.timedelta(minutes=30)
# With fewer half hours of the last day it is not said when its highest and lowest were.
ENOUGH_STEPS = 40
# A day whose highest and lowest are nearer than this share of the hardware has no tide.
LEAST_RANGE = 0.08

_QUERY = """
WITH parts AS (SELECT * FROM unnest(%(cards)s::text[], %(shares)s::float8[]) AS part(card, share)),
     points AS (SELECT p.*, parts.share FROM parts JOIN scheduling_tidepoint p
                ON p.card = parts.card AND p.cluster_id = %(cluster)s),
     newest AS (SELECT DISTINCT ON (card) * FROM points WHERE at <= %(now)s ORDER BY card, at DESC, id DESC),
     earlier AS (SELECT DISTINCT ON (card) * FROM points
                 WHERE at <= %(now)s - make_interval(secs => %(day)s) ORDER BY card, at DESC, id DESC)
SELECT 'now', NULL::timestamptz, '', sum(total * share), sum((total - idle) * share),
       sum(least(idle, waiting) * share), sum(waiting * share), sum(borrowed * share) FROM newest
UNION ALL
SELECT 'earlier', NULL, '', sum(total * share), sum((total - idle) * share),
       sum(least(idle, waiting) * share), sum(waiting * share), sum(borrowed * share) FROM earlier
UNION ALL
SELECT 'step', date_bin(make_interval(secs => %(step)s), at, %(now)s), card, 0, 0, 0, 0, avg(inference * share)
  FROM points WHERE at > %(now)s - make_interval(secs => %(day)s) AND at <= %(now)s GROUP BY 2, 3
"""


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
        """Share of the physical cards that are in use, in percent."""
        return 100 * self.used / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures now and a day ago, and what inference used in each half hour of the last day."""

    now: Moment | None
    earlier: Moment | None
    inference: Sequence[tuple[dt.datetime, float]] = field(default_factory=list)

    def turn(self) -> tuple[bool, dt.datetime] | None:
        """Whether the next turn of the tide is its highest (flood) or its lowest (ebb), and when, as yesterday's was.

        None where too little of a day is recorded, or the day had no tide.
        """
        if self.now is None or len(self.inference) < ENOUGH_STEPS:
            return None
        highest = max(self.inference, key=lambda step: step[1])
        lowest = min(self.inference, key=lambda step: step[1])
        if highest[1] - lowest[1] < LEAST_RANGE * self.now.total:
            return None
        flood = highest[0] < lowest[0]
        return flood, (highest if flood else lowest)[0] + DAY


def tide_figures(cluster: Cluster, cards: Sequence[str]) -> Figures:
    """The figures of these card types, by the cluster's clock."""
    with connection.cursor() as cursor:
        cursor.execute(
            _QUERY,
            {
                "cards": list(cards),
                "shares": [float(share_of_board(card)) / 1000 for card in cards],
                "cluster": cluster.pk,
                "now": cluster.clock(),
                "day": DAY.total_seconds(),
                "step": STEP.total_seconds(),
            },
        )
        rows = cursor.fetchall()
    moments = {kind: Moment(*figures) for kind, _at, _card, *figures in rows if kind != "step" and figures[0]}
    steps: dict[dt.datetime, dict[str, float]] = {}
    for kind, at, card, *figures in rows:
        if kind == "step":
            steps.setdefault(at, {})[card] = figures[-1]
    return Figures(moments.get("now"), moments.get("earlier"), _summed(steps))


def _summed(steps: dict[dt.datetime, dict[str, float]]) -> list[tuple[dt.datetime, float]]:
    """The sum at each half hour; a card type without a point in it stands where it stood before."""
    standing: dict[str, float] = {}
    found = []
    for at in sorted(steps):
        standing |= steps[at]
        found.append((at, sum(standing.values())))
    return found
