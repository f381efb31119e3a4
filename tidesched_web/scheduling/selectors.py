"""Sessions, decisions, reclaims, usage and alerts that a caller may see."""

from __future__ import annotations

from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Concat

from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.permissions import Access
from tidesched_web.quota.selectors import visible_queues
from tidesched_web.scheduling.models import Alert, Decision, QueueUsage, Reclaim, ReclaimVictim, Session
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


def usage_now(queue_ids: list[int]) -> QuerySet[QueueUsage]:
    """The newest point of these queues' usage."""
    return QueueUsage.objects.filter(queue_id__in=queue_ids).order_by("queue_id", "card")
