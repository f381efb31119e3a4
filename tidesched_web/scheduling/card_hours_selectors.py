"""An hour in which no session ran is not measured: its use is not known, so it counts neither as use nor as time."""

import datetime as dt
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from tidesched_web.clusters.models import Cluster

HOUR: Final = dt.timedelta(hours=1)
# name → how long
PERIODS: Final = {"24h": dt.timedelta(hours=24), "7d": dt.timedelta(days=7)}
# The tide is written every few minutes whatever happens: after so long without a point no session ran.
SILENCE: Final = dt.timedelta(minutes=15)


@dataclass(slots=True)
class CardHours:
    """``cards``: (service type, card) → card-hours in ``measured`` full hours by the cluster's clock."""

    period: str
    start: dt.datetime
    end: dt.datetime
    measured: int = 0
    cards: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def hours(self) -> int:
        return int((self.end - self.start) / HOUR)


# A point of one card type stands for a session: its index is read, not the whole curve.
_HOURS = """
WITH own AS (SELECT id, tenant_id, cluster_id, service_type FROM quota_queue
             WHERE tenant_id = ANY(%(tenants)s) AND cluster_id = ANY(%(clusters)s)),
     clocks AS (SELECT * FROM unnest(%(clusters)s::bigint[], %(ends)s::timestamptz[]) AS c(cluster_id, until)),
     looks AS (SELECT clocks.cluster_id, clocks.until AS now, point.at, point.wall_at,
                      lead(point.at) OVER one AS next_at, lead(point.wall_at) OVER one AS next_wall
               FROM clocks
               CROSS JOIN LATERAL (SELECT card FROM scheduling_tidepoint WHERE cluster_id = clocks.cluster_id
                                   ORDER BY id DESC LIMIT 1) newest
               CROSS JOIN LATERAL (SELECT at, wall_at FROM scheduling_tidepoint
                                   WHERE cluster_id = clocks.cluster_id AND card = newest.card
                                     AND at >= clocks.until - %(longest)s - interval '1 day') point
               WINDOW one AS (PARTITION BY clocks.cluster_id ORDER BY point.wall_at, point.at)),
     silent AS (SELECT cluster_id, at AS since, coalesce(next_at, now) AS until FROM looks
                WHERE coalesce(next_wall, %(wall)s) - wall_at > %(silence)s),
     hours AS (SELECT own.tenant_id, own.cluster_id, own.service_type, kept.card, rolled.at, rolled.allocated_mean,
                      clocks.until
               FROM own JOIN clocks ON clocks.cluster_id = own.cluster_id
               JOIN scheduling_queueusage kept ON kept.queue_id = own.id
               CROSS JOIN LATERAL (SELECT at, allocated_mean FROM scheduling_usagerollup
                                   WHERE queue_id = own.id AND card = kept.card AND step_seconds = 3600
                                     AND at >= clocks.until - %(longest)s AND at < clocks.until) rolled
               WHERE NOT EXISTS (SELECT 1 FROM silent WHERE silent.cluster_id = own.cluster_id
                                 AND silent.since < rolled.at + interval '1 hour' AND silent.until > rolled.at)),
     periods AS (SELECT * FROM unnest(%(periods)s::text[], %(lengths)s::interval[]) AS p(period, length))
SELECT period, tenant_id, cluster_id, service_type, card, sum(allocated_mean) / 1000, 0
  FROM hours JOIN periods ON hours.at >= hours.until - periods.length GROUP BY 1, 2, 3, 4, 5
UNION ALL
SELECT period, tenant_id, cluster_id, '', '', 0, count(DISTINCT at)
  FROM hours JOIN periods ON hours.at >= hours.until - periods.length GROUP BY 1, 2, 3
"""


def card_hours(tenant_ids: Collection[int], clusters: Iterable[Cluster]) -> dict[tuple[int, int], dict[str, CardHours]]:
    """(tenant, cluster) → period → card-hours; each pair is there, also where nothing was measured."""
    ends = {one.pk: one.clock().replace(minute=0, second=0, microsecond=0) for one in clusters}
    found = {
        (tenant, cluster): {name: CardHours(name, end - length, end) for name, length in PERIODS.items()}
        for tenant in tenant_ids
        for cluster, end in ends.items()
    }
    given: dict[str, Any] = {
        "tenants": sorted(tenant_ids),
        "clusters": list(ends),
        "ends": list(ends.values()),
        "periods": list(PERIODS),
        "lengths": list(PERIODS.values()),
        "longest": max(PERIODS.values()),
        "silence": SILENCE,
        "wall": timezone.now(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_HOURS, given)
        for period, tenant, cluster, service, card, hours, measured in cursor.fetchall():
            one = found[tenant, cluster][period]
            if card:
                one.cards[service, card] = float(hours)
            else:
                one.measured = int(measured)
    return found
