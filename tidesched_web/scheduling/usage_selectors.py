import datetime as dt
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import F, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest, JSONObject

from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.models import ServiceType
from tidesched_web.quota.models import Queue
from tidesched_web.scheduling.models import QueueUsage, UsageChange
from tidesched_web.scheduling.usage_series import UsageRow


class CardTotals(NamedTuple):
    """In milli-cards. ``inference_unused``: what the inference queues leave of their quotas, each by itself."""

    hardware: int
    inference_quota: int
    training: int
    inference_unused: int = 0

    @property
    def borrowed(self) -> int:
        return max(0, self.training - max(0, self.hardware - self.inference_quota))


def borrowed(allocated: int, total: CardTotals) -> int:
    """A training queue's part of what training borrows, by what it uses itself."""
    return min(allocated, round(total.borrowed * allocated / total.training)) if total.training else 0


def lent(unused: int, total: CardTotals) -> int:
    """An inference queue's part of what training borrows, by what it leaves of its quota."""
    return min(unused, round(total.borrowed * unused / total.inference_unused)) if total.inference_unused else 0


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


# A choice of cards that was asked for once leaves a row of zeros behind.
_USAGE = """
SELECT queue_id, card, quota, allocated, inqueue, elastic FROM scheduling_queueusage
WHERE queue_id = ANY(%s) AND (quota <> 0 OR allocated <> 0 OR inqueue <> 0 OR elastic <> 0)
ORDER BY queue_id, card
"""


def usage_now(queues: Sequence[Queue]) -> dict[int, dict[str, dict[str, float]]]:
    found: dict[int, dict[str, dict[str, float]]] = {queue.pk: {} for queue in queues}
    by_id = {queue.pk: queue for queue in queues}
    totals = card_totals({queue.cluster_id for queue in queues}) if queues else {}
    with connection.cursor() as cursor:
        cursor.execute(_USAGE, [list(found)])
        figures = cursor.fetchall()
    for pk, card, quota, allocated, inqueue, elastic in figures:
        queue = by_id[pk]
        total = totals.get((queue.cluster_id, card))
        takes, gives = borrowed_and_lent(queue.service_type, quota, allocated, total)
        found[pk][card] = {
            "quota": quota / 1000,
            "allocated": allocated / 1000,
            "inqueue": inqueue / 1000,
            "elastic": elastic / 1000,
            "borrowed": takes / 1000,
            "lent": gives / 1000,
        }
    return found


def allocated_of(queue_ids: Collection[int]) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    rows = QueueUsage.objects.filter(queue_id__in=queue_ids).exclude(allocated=0)
    for queue, card, milli in rows.values_list("queue_id", "card", "allocated"):
        found.setdefault(queue, {})[card] = milli
    return found


def borrowed_and_lent(service_type: str, quota: int, allocated: int, total: CardTotals | None) -> tuple[int, int]:
    """In milli-cards; a queue does one of them at most. ``quota`` is that of the newest session, as ``total`` is."""
    if total is None:
        return 0, 0
    if service_type == ServiceType.TRAINING:
        return borrowed(allocated, total), 0
    return 0, lent(max(0, quota - allocated), total)


def card_totals(cluster_ids: Collection[int]) -> dict[tuple[int, str], CardTotals]:
    """Of the newest session, as the quota that it saw: a tide plan may make it another than the base. One query."""

    def summed(service_type: ServiceType, figure: str | Combinable) -> Coalesce:
        rows = QueueUsage.objects.filter(
            queue__cluster=OuterRef("cluster"), queue__service_type=service_type, card=OuterRef("name")
        )
        return Coalesce(Subquery(rows.order_by().values("card").annotate(n=Sum(figure)).values("n")), 0)

    rows = CardType.objects.filter(cluster_id__in=cluster_ids).annotate(
        promised=summed(ServiceType.INFERENCE, "quota"),
        training=summed(ServiceType.TRAINING, "allocated"),
        unused=summed(ServiceType.INFERENCE, Greatest(F("quota") - F("allocated"), Value(0))),
    )
    figures = rows.order_by("name").values_list("cluster_id", "name", "hardware", "promised", "training", "unused")
    return {
        (cluster, name): CardTotals(hardware * 1000, quota, used, unused)
        for cluster, name, hardware, quota, used, unused in figures
    }


def usage_at(queue_ids: Collection[int], card: str | None, start: dt.datetime) -> list[UsageRow]:
    earlier = UsageChange.objects.filter(queue=OuterRef("queue"), card=OuterRef("card"), at__lte=start).order_by(
        "-at", "-id"
    )
    kept = QueueUsage.objects.filter(queue_id__in=queue_ids)
    if card is not None:
        kept = kept.filter(card=card)
    figures = JSONObject(quota="quota", allocated="allocated", inqueue="inqueue", elastic="elastic")
    rows = kept.annotate(then=Subquery(earlier.values(then=figures)[:1])).values_list("queue_id", "card", "then")
    return [
        UsageRow((queue, name), start, then["quota"], then["allocated"], then["inqueue"], then["elastic"])
        for queue, name, then in rows
        if then is not None
    ]


def usage_changes(
    queue_ids: Collection[int], card: str | None, start: dt.datetime, end: dt.datetime, *, limit: int
) -> list[UsageRow]:
    rows = UsageChange.objects.filter(queue_id__in=queue_ids, at__gt=start, at__lte=end)
    if card is not None:
        rows = rows.filter(card=card)
    found = rows.order_by("at", "id").values_list("queue_id", "card", "at", "quota", "allocated", "inqueue", "elastic")
    return [UsageRow((row[0], row[1]), *row[2:]) for row in found[:limit]]


_DEMAND = """
SELECT (extract(isodow FROM at AT TIME ZONE %(zone)s)::int - 1) * 24 + extract(hour FROM at AT TIME ZONE %(zone)s)::int,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY used), percentile_cont(0.9) WITHIN GROUP (ORDER BY used),
       max(most)
FROM (SELECT at, sum(allocated_mean) AS used, sum(allocated_max) AS most FROM scheduling_usagerollup
      WHERE queue_id = ANY(%(queues)s) AND card = %(card)s AND step_seconds = 3600
        AND at > (SELECT max(at) FROM scheduling_usagerollup WHERE queue_id = ANY(%(queues)s) AND step_seconds = 3600)
                 - make_interval(weeks => %(weeks)s)
      GROUP BY at) hours
GROUP BY 1
"""


class HourOfWeek(NamedTuple):
    """What was in use at one hour of the week in the past, in cards: half of the time at most ``p50``, and so on."""

    p50: float
    p90: float
    most: float


def demand_by_hour_of_week(queue_ids: Collection[int], card: str, zone: str) -> dict[int, HourOfWeek]:
    """Hour of the week in ``zone`` (0 = Monday 00:00) → use in the newest 8 weeks; gaps of the record are absent."""
    with connection.cursor() as cursor:
        cursor.execute(_DEMAND, {"queues": sorted(queue_ids), "card": card, "zone": zone, "weeks": 8})
        return {
            hour: HourOfWeek(p50 / 1000, p90 / 1000, float(most) / 1000) for hour, p50, p90, most in cursor.fetchall()
        }
