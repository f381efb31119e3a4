"""A filter by queue, tenant or cards finds only the caller's own side: what is hidden does not exist."""

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Value

from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import Queue
from tidesched_web.quota.selectors import visible_queues
from tidesched_web.scheduling.models import Reclaim, ReclaimVictim


def filter_choices(access: Access, cluster: Cluster) -> tuple[list[tuple[str, str]], list[str]]:
    tenants = visible_tenants(access).order_by().values_list(Value("tenant"), "slug", "name")
    cards = CardType.objects.filter(cluster=cluster).values_list(Value("card"), "name", "name")
    rows = sorted(tenants.union(cards, all=True), key=lambda row: (row[2], row[1]))
    return [row[1:] for row in rows if row[0] == "tenant"], [row[1] for row in rows if row[0] == "card"]


def gained_by_queue(access: Access, value: str) -> Q:
    return _named_queue(value) & _in_sight(access)


def lost_by_queue(access: Access, value: str) -> Q:
    return _lost(_named_queue(value) & _in_sight(access))


def gained_by_tenant(access: Access, value: str) -> Q:
    return Q(queue_id__in=_queues_of(access, value))


def gained_by_service(access: Access, value: str) -> Q:
    return Q(queue__service_type=value) & _in_sight(access)


def lost_by_tenant(access: Access, value: str) -> Q:
    return _lost(Q(queue_id__in=_queues_of(access, value)))


def touched_queue(access: Access, value: str) -> Q:
    return gained_by_queue(access, value) | lost_by_queue(access, value)


def touched_tenant(access: Access, value: str) -> Q:
    return gained_by_tenant(access, value) | lost_by_tenant(access, value)


def moved_card(access: Access, card: str) -> Q:
    needed = Q(needed__cards__has_key=card) | Q(freed__cards__has_key=card)
    return (needed & _in_sight(access)) | _lost(Q(cards__has_key=card) & _in_sight(access))


def mentions(access: Access, text: str) -> Q:
    of_queue = Q(queue_name__icontains=text) & _in_sight(access)
    return Q(reclaimer__icontains=text) | of_queue | _lost(Q(gang__icontains=text) | of_queue)


def lost_by(access: Access, text: str) -> Q:
    return _lost(Q(gang__icontains=text) | (Q(queue_name__icontains=text) & _in_sight(access)))


def _lost(wanted: Q) -> Q:
    return Q(Exists(ReclaimVictim.objects.filter(wanted, reclaim=OuterRef("pk"))))


def _in_sight(access: Access) -> Q:
    return Q() if access.everything else Q(queue_id__in=visible_queues(access).order_by().values("pk"))


def _named_queue(value: str) -> Q:
    return Q(queue_id=int(value)) if _is_id(value) else Q(queue_name=value)


def _queues_of(access: Access, value: str) -> QuerySet[Queue, Any]:
    tenant = int(value) if _is_id(value) else value
    by = "pk" if isinstance(tenant, int) else "slug"
    owned = Q(**{f"tenant__{by}": tenant}) | Q(**{f"business_line__tenant__{by}": tenant})
    return visible_queues(access).filter(owned).order_by().values("pk")


def _is_id(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) < 19


def entries_of_gang(gang: str) -> Q:
    """Audit entries of reclaims in which a gang (namespace/name) gained or lost; the reader's sight is the caller's."""
    lost = ReclaimVictim.objects.filter(gang=gang).values("reclaim_id")
    rows = Reclaim.objects.filter(Q(reclaimer=gang) | Q(pk__in=lost), audit_entry_id__isnull=False)
    return Q(object_type="reclaim") & (Q(object_label=gang) | Q(pk__in=rows.values("audit_entry_id")))
