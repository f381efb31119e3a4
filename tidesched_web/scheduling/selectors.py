"""Sessions, decisions, reclaims, usage and alerts that a caller may see."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, Exists, F, IntegerField, OuterRef, Prefetch, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Concat, JSONObject

from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import Queue
from tidesched_web.quota.selectors import visible_queues, with_card_quota
from tidesched_web.scheduling.models import (
    Alert,
    Decision,
    QueueUsage,
    Reclaim,
    ReclaimVictim,
    Session,
    TidePoint,
    UsageChange,
)
from tidesched_web.workloads.models import Gang, GangState
from tidesched_web.workloads.selectors import visible_gangs


def clusters_with_sessions(access: Access) -> QuerySet[Cluster]:
    """Visible clusters with their newest session and how many alerts are open, in one query.

    Annotations: ``session_id``, ``session_number``, ``session_state``, ``session_at`` (wall), ``session_now`` (the
    cluster's clock), ``open_alerts``.
    """
    newest = Session.objects.filter(cluster=OuterRef("pk")).order_by("-id")
    alerts = (
        Alert.objects.filter(cluster=OuterRef("pk"), resolved_at__isnull=True)
        .order_by()
        .values("cluster")
        .annotate(n=Count("pk"))
        .values("n")
    )
    return visible_clusters(access).annotate(
        session_id=Subquery(newest.values("pk")[:1]),
        session_number=Subquery(newest.values("number")[:1]),
        session_state=Subquery(newest.values("state")[:1]),
        session_at=Subquery(newest.values("started_at")[:1]),
        session_now=Subquery(newest.values("now")[:1]),
        open_alerts=Coalesce(Subquery(alerts), 0),
        alert_rows=ArraySubquery(
            Alert.objects.filter(cluster=OuterRef("pk"), resolved_at__isnull=True)
            .order_by("-raised_at")
            .values(row=JSONObject(severity="severity", code="code", message="message", raised_at="raised_at"))[:3]
        ),
    )


def clusters_now(access: Access) -> list[Cluster]:
    """Visible clusters by name, as `clusters_with_sessions` gives them."""
    return list(clusters_with_sessions(access).order_by("name"))


def visible_sessions(access: Access) -> QuerySet[Session]:
    """Sessions of visible clusters."""
    return Session.objects.filter(cluster__in=visible_clusters(access)).select_related("cluster", "policy")


def visible_alerts(access: Access) -> QuerySet[Alert]:
    """Alerts of visible clusters."""
    return Alert.objects.filter(cluster__in=visible_clusters(access)).select_related("cluster")


def visible_decisions(access: Access, session: Session) -> QuerySet[Decision]:
    """Decisions of a visible session; a member sees those about gangs of their tenants."""
    decisions = Decision.objects.filter(session_id=session.pk)
    if access.everything:
        return decisions
    own = visible_gangs(access).filter(cluster_id=session.cluster_id)
    return decisions.filter(gang__in=own.values(key=Concat(F("namespace"), Value("/"), F("name"))))


def visible_reclaims(access: Access) -> QuerySet[Reclaim]:
    """Reclaims where the reclaimer's or a victim's queue is of the caller's tenants.

    Of the other side only the gang's name may be shown: `own_queue_ids` says which queues are the caller's.
    """
    reclaims = Reclaim.objects.select_related("cluster", "session").prefetch_related(
        Prefetch("victims", queryset=ReclaimVictim.objects.order_by("gang"))
    )
    if access.everything:
        return reclaims
    fell = ReclaimVictim.objects.filter(reclaim=OuterRef("pk"), queue__tenant_id__in=access.tenant_ids)
    return reclaims.filter(Q(queue__tenant_id__in=access.tenant_ids) | Exists(fell))


def own_queue_ids(access: Access) -> frozenset[int]:
    """Ids of the queues that the caller may see."""
    return frozenset(visible_queues(access).values_list("pk", flat=True))


def usage_now(queues: Sequence[Queue]) -> dict[int, dict[str, dict[str, float]]]:
    """Queue id → card → quota, allocated, inqueue, elastic, borrowed, in cards. Two queries for any number of queues."""
    found: dict[int, dict[str, dict[str, float]]] = {queue.pk: {} for queue in queues}
    by_id = {queue.pk: queue for queue in queues}
    rows = list(QueueUsage.objects.filter(queue_id__in=list(found)).order_by("queue_id", "card"))
    trains = {queue.cluster_id for queue in queues if queue.service_type == ServiceType.TRAINING}
    totals = _card_totals(trains) if trains else {}
    for row in rows:
        queue = by_id[row.queue_id]
        total = totals.get((queue.cluster_id, row.card))
        lent = borrowed(row.allocated, total) if total and queue.service_type == ServiceType.TRAINING else 0
        found[row.queue_id][row.card] = {
            "quota": row.quota / 1000,
            "allocated": row.allocated / 1000,
            "inqueue": row.inqueue / 1000,
            "elastic": row.elastic / 1000,
            "borrowed": lent / 1000,
        }
    return found


def _card_totals(cluster_ids: Collection[int]) -> dict[tuple[int, str], CardTotals]:
    training = (
        QueueUsage.objects.filter(
            queue__cluster=OuterRef("cluster"), queue__service_type=ServiceType.TRAINING, card=OuterRef("name")
        )
        .order_by()
        .values("card")
        .annotate(n=Sum("allocated"))
        .values("n")
    )
    rows = with_promised(CardType.objects.filter(cluster_id__in=cluster_ids)).annotate(
        training=Coalesce(Subquery(training), 0)
    )
    return {
        (cluster, name): CardTotals(hardware=hardware * 1000, inference_quota=quota * 1000, training=used)
        for cluster, name, hardware, quota, used in rows.values_list(
            "cluster_id", "name", "hardware", "inference_quota", "training"
        )
    }


def usage_at(queue_ids: Collection[int], card: str | None, start: dt.datetime) -> list[UsageRow]:
    """Where each queue × card stood at ``start``. One index look-up for each, in one query."""
    earlier = UsageChange.objects.filter(
        queue=OuterRef("queue"), card=OuterRef("card"), at__lte=start
    ).order_by("-at", "-id")
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
    """The change points after ``start`` up to ``end``, at most ``limit`` of them, in order."""
    rows = UsageChange.objects.filter(queue_id__in=queue_ids, at__gt=start, at__lte=end)
    if card is not None:
        rows = rows.filter(card=card)
    found = rows.order_by("at", "id").values_list(
        "queue_id", "card", "at", "quota", "allocated", "inqueue", "elastic"
    )
    return [UsageRow((queue, name), *rest) for queue, name, *rest in found[:limit]]
