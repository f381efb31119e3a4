"""Gangs that a caller may see: those in the queues of their tenants."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from tidesched_web.common.permissions import Access
from tidesched_web.workloads.models import Gang, GangEvent, GangPod


def visible_gangs(access: Access) -> QuerySet[Gang]:
    """Gangs in queues of the caller's tenants; those without a known queue only for who sees everything."""
    gangs = Gang.objects.all()
    return gangs if access.everything else gangs.filter(queue__tenant_id__in=access.tenant_ids)


def pods_of(gang: Gang) -> QuerySet[GangPod]:
    """The members of a gang that the caller sees."""
    return GangPod.objects.filter(gang=gang).order_by("id")


def timeline_of(gang: Gang) -> QuerySet[GangEvent]:
    """What happened to a gang that the caller sees, in order."""
    return GangEvent.objects.filter(gang=gang).order_by("id")


def visible_gang_keys(access: Access, cluster_ids: Iterable[int], keys: Iterable[str]) -> set[tuple[int, str]]:
    """Which of these gangs (``namespace/name``) the caller may see anything of, as (cluster, key). One query."""
    wanted = set(keys)
    parts = [key.partition("/") for key in wanted]
    rows = (
        visible_gangs(access)
        .filter(
            cluster_id__in=set(cluster_ids),
            namespace__in={namespace for namespace, _, _ in parts},
            name__in={name for _, _, name in parts},
        )
        .values_list("cluster_id", "namespace", "name")
        .distinct()
    )
    found = {(cluster, f"{namespace}/{name}") for cluster, namespace, name in rows}
    return {(cluster, key) for cluster, key in found if key in wanted}
