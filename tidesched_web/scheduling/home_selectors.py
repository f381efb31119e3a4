"""Only tenants that the caller belongs to are counted, whatever else the caller may see."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.permissions import Access
from tidesched_web.workloads.models import Gang
from tidesched_web.workloads.selectors import that_wait, visible_gangs

HOURS = 24


@dataclass(slots=True)
class CardUse:
    """Milli-cards. ``quota`` is what holds now; tide plans ``turned`` so much of it (less than 0 where they take)."""

    quota: int = 0
    turned: int = 0
    allocated: int = 0
    inqueue: int = 0
    waiting: int = 0


@dataclass(slots=True)
class TenantFigures:
    cards: dict[tuple[str, str], CardUse] = field(default_factory=dict)
    queues: int = 0
    gangs_waiting: int = 0
    reclaims: int = 0
    work_lost: float = 0.0


# Each part: what, tenant, cluster, service type, card, three figures.
_FIGURES = """
WITH own AS (SELECT id, tenant_id, cluster_id, service_type, tide FROM quota_queue
             WHERE tenant_id = ANY(%(tenants)s) AND cluster_id = ANY(%(clusters)s)),
     clocks AS (SELECT * FROM unnest(%(clusters)s::bigint[], %(starts)s::timestamptz[]) AS c(cluster_id, start)),
     waits AS (SELECT g.*, own.tenant_id, own.service_type AS of_type
               FROM workloads_gang g JOIN own ON own.id = g.queue_id WHERE g.needs AND g.gone_at IS NULL)
SELECT 'queues', tenant_id, cluster_id, '', '', count(*), 0, 0 FROM own GROUP BY 2, 3
UNION ALL
SELECT 'use', own.tenant_id, own.cluster_id, own.service_type, u.card, sum(u.quota), sum(u.allocated), sum(u.inqueue)
  FROM scheduling_queueusage u JOIN own ON own.id = u.queue_id GROUP BY 2, 3, 4, 5
UNION ALL
SELECT 'tide', own.tenant_id, own.cluster_id, own.service_type, turn.key,
       sum(1000 * (turn.value::bigint - coalesce(quota.cards, 0))), 0, 0
  FROM own CROSS JOIN LATERAL jsonb_each_text(own.tide) AS turn
  LEFT JOIN clusters_cardtype card ON card.cluster_id = own.cluster_id AND card.name = turn.key
  LEFT JOIN quota_cardquota quota ON quota.queue_id = own.id AND quota.card_type_id = card.id GROUP BY 2, 3, 4, 5
UNION ALL
SELECT 'gangs', tenant_id, cluster_id, '', '', count(*), 0, 0 FROM waits GROUP BY 2, 3
UNION ALL
SELECT 'waiting', waits.tenant_id, waits.cluster_id, waits.of_type, split_part(asks.key, '|', 1),
       sum(asks.value::numeric * 1000), 0, 0
  FROM waits CROSS JOIN LATERAL jsonb_each_text(
    CASE WHEN waits.state <> 'running' THEN waits.cards
         WHEN waits.reason_numbers->>'resource' NOT IN ('cpu', 'memory') AND waits.reason_numbers->>'requested' <> ''
         THEN jsonb_build_object(waits.reason_numbers->>'resource', waits.reason_numbers->'requested')
         ELSE '{}'::jsonb END) AS asks GROUP BY 2, 3, 4, 5
UNION ALL
SELECT 'suffered', own.tenant_id, own.cluster_id, '', '', count(DISTINCT v.reclaim_id),
       sum(v.work_lost_card_seconds), 0
  FROM scheduling_reclaimvictim v JOIN own ON own.id = v.queue_id JOIN scheduling_reclaim s ON s.id = v.reclaim_id
  JOIN clocks ON clocks.cluster_id = s.cluster_id WHERE s.at >= clocks.start GROUP BY 2, 3
"""


def own_figures(access: Access, clusters: Iterable[Cluster]) -> dict[tuple[int, int], TenantFigures]:
    starts = {cluster.pk: cluster.clock() - dt.timedelta(hours=HOURS) for cluster in clusters}
    found: dict[tuple[int, int], TenantFigures] = {}
    given: dict[str, Any] = {
        "tenants": sorted(access.tenant_ids),
        "clusters": list(starts),
        "starts": list(starts.values()),
    }
    with connection.cursor() as cursor:
        cursor.execute(_FIGURES, given)
        rows = cursor.fetchall()
    for what, tenant, cluster, service, card, first, second, third in rows:
        one = found.setdefault((tenant, cluster), TenantFigures())
        if what == "queues":
            one.queues = int(first)
        elif what == "gangs":
            one.gangs_waiting = int(first)
        elif what == "suffered":
            one.reclaims, one.work_lost = int(first), float(second)
        else:
            use = one.cards.setdefault((service, card), CardUse())
            if what == "use":
                use.quota, use.allocated, use.inqueue = int(first), int(second), int(third)
            elif what == "tide":
                use.turned = int(first)
            else:
                use.waiting = int(first)
    return found


def own_waiting(access: Access, clusters: Iterable[Cluster], rows: int) -> list[Gang]:
    gangs = visible_gangs(access).filter(queue__tenant_id__in=access.tenant_ids, cluster__in=list(clusters))
    waiting = that_wait(gangs).select_related("queue__tenant").defer("manifest")
    return list(waiting.order_by("waiting_since", "id")[:rows])
