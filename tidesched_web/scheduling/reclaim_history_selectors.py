"""The reclaim history of a day as sums, made in the database: by hour and card, and from whom to whom.

A reader sees the cards and the work of their own queues' gangs alone, as on the page of each reclaim; of the other
side of such a loss not even the queue. Times are of the cluster's clock. What was cancelled took nothing.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.db import connection

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.permissions import Access

PICTURED = dt.timedelta(hours=24)
MOST_PAIRS = 8

_BY_HOUR = """
SELECT date_trunc('hour', r.at) AS hour, c.key AS card, sum(c.value::float) AS cards
FROM scheduling_reclaim r
JOIN scheduling_reclaimvictim v ON v.reclaim_id = r.id
CROSS JOIN LATERAL jsonb_each_text(v.cards) c
WHERE r.cluster_id = %(cluster)s AND r.at >= %(since)s AND r.state <> 'cancelled' AND {own_loss}
GROUP BY 1, 2 ORDER BY 1, 2
"""
_PAIRS = """
SELECT v.queue_name, CASE WHEN {own_gain} THEN r.queue_name ELSE '' END AS gainer, count(DISTINCT r.id) AS reclaims,
       sum((SELECT coalesce(sum(c.value::float), 0) FROM jsonb_each_text(v.cards) c)) AS cards,
       sum(v.work_lost_card_seconds) AS work
FROM scheduling_reclaim r
JOIN scheduling_reclaimvictim v ON v.reclaim_id = r.id
WHERE r.cluster_id = %(cluster)s AND r.at >= %(since)s AND r.state <> 'cancelled' AND {own_loss}
GROUP BY 1, 2 ORDER BY cards DESC, 1, 2
"""
# Promptly: the session after the decision bound the reclaimer, and the one after that saw it run.
_PROMPTLY = """
SELECT count(*), count(*) FILTER (WHERE r.running_at IS NOT NULL),
       count(*) FILTER (WHERE r.running_at IS NOT NULL AND (
           SELECT count(*) FROM (
               SELECT 1 FROM scheduling_session s
               WHERE s.cluster_id = r.cluster_id AND s.id > r.session_id AND s.now <= r.running_at
               ORDER BY s.id LIMIT 3
           ) AS following
       ) <= 2)
FROM scheduling_reclaim r
WHERE r.cluster_id = %(cluster)s AND r.at >= %(since)s AND r.source = 'own' AND r.state <> 'cancelled' AND {own_gain}
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """What one queue lost to another; ``gainer`` is empty where the reader may not know it, or nobody does."""

    loser: str
    gainer: str
    reclaims: int
    cards: float
    work: float


@dataclass(frozen=True, slots=True)
class Day:
    """A day's history: the largest pairs with the sums over all of them, and how soon those that gained ran."""

    since: dt.datetime
    pairs: list[Pair]
    cards: float
    work: float
    more_pairs: int
    gains: int
    ran: int
    promptly: int

    def __bool__(self) -> bool:
        return bool(self.pairs or self.gains)


def pictured_since(cluster: Cluster) -> dt.datetime:
    """The beginning of the day that is shown: a full hour."""
    return (cluster.clock() - PICTURED).replace(minute=0, second=0, microsecond=0)


def taken_by_hour(access: Access, cluster: Cluster, since: dt.datetime) -> list[tuple[dt.datetime, str, float]]:
    """(hour, card, cards taken back) in order. One query."""
    return [(hour, card, cards) for hour, card, cards in _rows(_BY_HOUR, access, cluster, since)]


def day_of(access: Access, cluster: Cluster) -> Day:
    """From whom to whom, work lost, and how soon who gained ran. Two queries."""
    since = pictured_since(cluster)
    pairs = [Pair(*row) for row in _rows(_PAIRS, access, cluster, since)]
    ((gains, ran, promptly),) = _rows(_PROMPTLY, access, cluster, since)
    return Day(
        since=since,
        pairs=pairs[:MOST_PAIRS],
        cards=sum(pair.cards for pair in pairs),
        work=sum(pair.work for pair in pairs),
        more_pairs=max(0, len(pairs) - MOST_PAIRS),
        gains=gains,
        ran=ran,
        promptly=promptly,
    )


def _rows(sql: str, access: Access, cluster: Cluster, since: dt.datetime) -> list[tuple[Any, ...]]:
    own = "{row}.queue_id IN (SELECT id FROM quota_queue WHERE tenant_id = ANY(%(tenants)s))"
    loss, gain = ("TRUE", "TRUE") if access.everything else (own.format(row="v"), own.format(row="r"))
    values: dict[str, Any] = {
        "cluster": cluster.pk,
        "since": since,
        "tenants": list(access.tenant_ids),
    }
    with connection.cursor() as cursor:
        cursor.execute(sql.replace("{own_loss}", loss).replace("{own_gain}", gain), values)
        return cursor.fetchall()
