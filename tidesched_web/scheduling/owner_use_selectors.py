"""What the queues of one tenant or project may use now and use, by cluster, service type and card type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.models import Queue


@dataclass(frozen=True, slots=True)
class OwnerUse:
    """The sum over the queues in sight. Milli-cards; ``quota`` as tide plans make it now, ``base`` without them."""

    cluster_id: int
    service_type: str
    card: str
    quota: int
    base: int
    allocated: int
    inqueue: int


_USE = """
WITH own AS (SELECT id, cluster_id, service_type, tide FROM quota_queue
             WHERE id IN ({queues}) AND cluster_id = ANY(%s)),
     bases AS (SELECT own.id, card.name AS card, quota.cards::bigint AS cards
               FROM own JOIN quota_cardquota quota ON quota.queue_id = own.id
               JOIN clusters_cardtype card ON card.id = quota.card_type_id),
     turns AS (SELECT own.id, turn.key AS card, turn.value::bigint AS cards
               FROM own CROSS JOIN LATERAL jsonb_each_text(own.tide) AS turn),
     used AS (SELECT own.id, usage.card, usage.allocated, usage.inqueue
              FROM own JOIN scheduling_queueusage usage ON usage.queue_id = own.id)
SELECT own.cluster_id, own.service_type, card,
       sum(1000 * coalesce(turns.cards, bases.cards, 0))::bigint, sum(1000 * coalesce(bases.cards, 0))::bigint,
       sum(coalesce(used.allocated, 0))::bigint, sum(coalesce(used.inqueue, 0))::bigint
  FROM bases FULL JOIN turns USING (id, card) FULL JOIN used USING (id, card) JOIN own USING (id)
 GROUP BY 1, 2, 3
HAVING sum(coalesce(turns.cards, 0)) + sum(coalesce(bases.cards, 0))
       + sum(coalesce(used.allocated, 0)) + sum(coalesce(used.inqueue, 0)) > 0
 ORDER BY 1, 2, 3
"""


def owner_use(queues: QuerySet[Queue], clusters: Iterable[Cluster]) -> list[OwnerUse]:
    try:
        own, parameters = queues.order_by().values("pk").query.sql_with_params()
    except EmptyResultSet:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_USE.format(queues=own), [*parameters, [cluster.pk for cluster in clusters]])
        return [OwnerUse(*row) for row in cursor.fetchall()]
