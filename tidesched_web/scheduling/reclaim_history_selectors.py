"""A reader sees cards and work of their own queues' gangs alone; of the other side not even the queue."""

import datetime as dt
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.permissions import Access
from tidesched_web.common.physical import is_part, share_of_board

PICTURED = dt.timedelta(hours=24)
MOST_PAIRS = 60
# Ids of the reclaims that are asked for; None = all.
Chosen = list[int] | None

_BY_HOUR = """
SELECT date_trunc('hour', r.at) AS hour, c.key AS card, sum(c.value::float) AS cards
FROM scheduling_reclaim r
JOIN scheduling_reclaimvictim v ON v.reclaim_id = r.id
CROSS JOIN LATERAL jsonb_each_text(v.cards) c
WHERE r.cluster_id = %(cluster)s AND r.at >= %(since)s AND r.state <> 'cancelled' AND {chosen} AND {own_loss}
GROUP BY 1, 2 ORDER BY 1, 2
"""
_PAIRS = """
WITH losses AS (
    SELECT r.id AS reclaim, v.queue_name AS loser, CASE WHEN {own_gain} THEN r.queue_name ELSE '' END AS gainer,
           CASE WHEN {own_gain} THEN coalesce(g.service_type, '') ELSE '' END AS service, v.cards,
           v.work_lost_card_seconds AS work
    FROM scheduling_reclaim r
    JOIN scheduling_reclaimvictim v ON v.reclaim_id = r.id
    LEFT JOIN quota_queue g ON g.id = r.queue_id
    WHERE r.cluster_id = %(cluster)s AND r.at >= %(since)s AND r.state <> 'cancelled' AND {chosen} AND {own_loss}
), by_card AS (
    SELECT loser, gainer, service, c.key AS card, sum(c.value::float) AS cards
    FROM losses CROSS JOIN LATERAL jsonb_each_text(losses.cards) c GROUP BY 1, 2, 3, 4
)
SELECT loser, gainer, service, count(DISTINCT reclaim),
       (SELECT jsonb_object_agg(b.card, b.cards) FROM by_card b
        WHERE b.loser = losses.loser AND b.gainer = losses.gainer AND b.service = losses.service),
       sum(work)
FROM losses GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
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
WHERE r.cluster_id = %(cluster)s AND r.at >= %(since)s AND r.source = 'own' AND r.state <> 'cancelled' AND {chosen}
  AND {own_gain}
"""


@dataclass(frozen=True, slots=True)
class Pair:
    loser: str
    gainer: str
    # Of the queue that gained; empty where it may not be known, or the queue is gone.
    service: str
    reclaims: int
    # Physical cards; slices and shares are in them as their part of a board, and counted in ``parts``.
    cards: float
    parts: float
    work: float


@dataclass(frozen=True, slots=True)
class Loser:
    queue: str
    pairs: list[Pair]

    @property
    def reclaims(self) -> int:
        return sum(pair.reclaims for pair in self.pairs)

    @property
    def cards(self) -> float:
        return sum(pair.cards for pair in self.pairs)

    @property
    def work(self) -> float:
        return sum(pair.work for pair in self.pairs)


@dataclass(frozen=True, slots=True)
class Day:
    since: dt.datetime
    losers: list[Loser]
    # Physical cards, and how many slices and shares are in them.
    cards: float
    parts: float
    work: float
    more_pairs: int
    gains: int
    ran: int
    promptly: int

    def __bool__(self) -> bool:
        return bool(self.losers or self.gains)


def pictured_since(cluster: Cluster) -> dt.datetime:
    return (cluster.clock() - PICTURED).replace(minute=0, second=0, microsecond=0)


def taken_by_hour(
    access: Access, cluster: Cluster, since: dt.datetime, chosen: Chosen
) -> list[tuple[dt.datetime, str, float]]:
    return [(hour, card, cards) for hour, card, cards in _rows(_BY_HOUR, access, cluster, since, chosen)]


def day_of(access: Access, cluster: Cluster, chosen: Chosen) -> Day:
    since = pictured_since(cluster)
    pairs = sorted(map(_pair, _rows(_PAIRS, access, cluster, since, chosen)), key=lambda pair: -pair.cards)
    ((gains, ran, promptly),) = _rows(_PROMPTLY, access, cluster, since, chosen)
    by_loser: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_loser.setdefault(pair.loser, []).append(pair)
    losers = [Loser(queue, of_it) for queue, of_it in by_loser.items()]
    losers.sort(key=lambda loser: (-loser.cards, loser.queue))
    # A queue is shown with all of its pairs or not at all, so that its sum is true.
    shown: list[Loser] = []
    for loser in losers:
        if shown and sum(len(one.pairs) for one in shown) + len(loser.pairs) > MOST_PAIRS:
            break
        shown.append(loser)
    return Day(
        since=since,
        losers=shown,
        cards=sum(pair.cards for pair in pairs),
        parts=sum(pair.parts for pair in pairs),
        work=sum(pair.work for pair in pairs),
        more_pairs=len(pairs) - sum(len(one.pairs) for one in shown),
        gains=gains,
        ran=ran,
        promptly=promptly,
    )


def _pair(row: tuple[Any, ...]) -> Pair:
    loser, gainer, service, reclaims, cards, work = row
    by_card: dict[str, float] = orjson.loads(cards or "{}")
    return Pair(
        loser,
        gainer,
        service,
        reclaims,
        cards=sum(count * float(share_of_board(card)) for card, count in by_card.items()),
        parts=sum(count for card, count in by_card.items() if is_part(card)),
        work=work,
    )


def _rows(sql: str, access: Access, cluster: Cluster, since: dt.datetime, chosen: Chosen) -> list[tuple[Any, ...]]:
    own = "{row}.queue_id IN (SELECT id FROM quota_queue WHERE tenant_id = ANY(%(tenants)s))"
    loss, gain = ("TRUE", "TRUE") if access.everything else (own.format(row="v"), own.format(row="r"))
    values: dict[str, Any] = {
        "cluster": cluster.pk,
        "since": since,
        "tenants": list(access.tenant_ids),
        "chosen": chosen,
    }
    sql = sql.replace("{chosen}", "TRUE" if chosen is None else "r.id = ANY(%(chosen)s)")
    with connection.cursor() as cursor:
        cursor.execute(sql.replace("{own_loss}", loss).replace("{own_gain}", gain), values)
        return cursor.fetchall()
