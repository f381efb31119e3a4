from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.permissions import Access
from tidesched_web.quota.drift_fields import Fields, fields_of
from tidesched_web.quota.manifest import class_manifest, queue_manifest
from tidesched_web.quota.models import (
    Drift,
    DriftEnd,
    DriftLook,
    DriftState,
    DriftWhat,
    PriorityClass,
    PushedObject,
    Queue,
)
from tidesched_web.quota.push_selectors import limited_cards
from tidesched_web.quota.selectors import queue_grants, visible_queues, with_card_quota
from tidesched_web.quota.tide_selectors import effective_now

QUEUE, CLASS = "Queue", "PriorityClass"
Key = tuple[str, str]


def visible_drift(access: Access) -> QuerySet[Drift]:
    rows = Drift.objects.filter(cluster__in=visible_clusters(access)).select_related("cluster", "queue")
    return rows if access.everything else rows.filter(queue__in=visible_queues(access).values("pk"))


def open_drift(access: Access, cluster: Cluster) -> QuerySet[Drift]:
    return visible_drift(access).filter(cluster=cluster).exclude(state=DriftState.RESOLVED)


def changed_by_hand(cluster: Cluster) -> set[tuple[str, str]]:
    """Kinds and names of what a push leaves alone until a person has decided on it."""
    rows = Drift.objects.filter(cluster=cluster, what=DriftWhat.CHANGED, asked="").exclude(state=DriftState.RESOLVED)
    return set(rows.values_list("kind", "name"))


def drift_counts(access: Access, cluster: Cluster) -> dict[str, int]:
    rows = open_drift(access, cluster).order_by().values_list("state").annotate(n=Count("pk"))
    return dict(rows)


def drift_look(cluster: Cluster) -> DriftLook | None:
    return DriftLook.objects.filter(cluster=cluster).first()


def asked_again(cluster: Cluster) -> set[Key]:
    """Objects that a person asked to push again: their fields are taken from their holders."""
    rows = Drift.objects.filter(cluster=cluster, asked=DriftEnd.PUSHED).exclude(state=DriftState.RESOLVED)
    return set(rows.values_list("kind", "name"))


@dataclass(frozen=True)
class Intended:
    fields: Fields
    state: str = ""
    queue_id: int | None = None
    refused: str = ""


def intended(cluster: Cluster, names: Collection[Key] | None) -> dict[Key, Intended]:
    queues = Queue.objects.filter(cluster=cluster).select_related("tenant", "project", "business_line")
    classes = PriorityClass.objects.filter(cluster=cluster)
    if names is not None:
        queues = queues.filter(name__in=[name for kind, name in names if kind == QUEUE])
        classes = classes.filter(name__in=[name for kind, name in names if kind == CLASS])
    rows = list(with_card_quota(queues).annotate(granted=queue_grants()))
    quota = effective_now(cluster, rows) if rows else {}
    counted_by = limited_cards(cluster) if rows else {}
    found: dict[Key, Intended] = {}
    for queue in rows:
        manifest = queue_manifest(queue, quota[queue.pk], counted_by)
        fields = fields_of(manifest, state=str(queue.state))
        found[QUEUE, queue.name] = Intended(fields, str(queue.state), queue.pk, _refusal(queue))
    for row in classes:
        found[CLASS, row.name] = Intended(fields_of(class_manifest(row)), refused=_refusal(row))
    return found


def _refusal(row: Queue | PriorityClass) -> str:
    """Until a push has succeeded: an edit since, or being sent again, takes no refusal back."""
    return row.sync_error if row.refusals else ""


def refused_names(cluster: Cluster) -> set[Key]:
    queues = Queue.objects.filter(cluster=cluster, refusals__gt=0).order_by().values_list("name", flat=True)
    classes = PriorityClass.objects.filter(cluster=cluster, refusals__gt=0).order_by().values_list("name", flat=True)
    return {*((QUEUE, name) for name in queues), *((CLASS, name) for name in classes)}


def managed_names(cluster: Cluster) -> set[Key]:
    queues = Queue.objects.filter(cluster=cluster).order_by().values_list("name", flat=True)
    classes = PriorityClass.objects.filter(cluster=cluster).order_by().values_list("name", flat=True)
    return {*((QUEUE, name) for name in queues), *((CLASS, name) for name in classes)}


def pushed_objects(cluster: Cluster, names: Collection[Key] | None) -> dict[Key, PushedObject]:
    rows = PushedObject.objects.filter(cluster=cluster)
    if names is not None:
        wanted = Q(pk__in=[])
        for kind in (QUEUE, CLASS):
            wanted |= Q(kind=kind, name__in=[name for of, name in names if of == kind])
        rows = rows.filter(wanted)
    return {(row.kind, row.name): row for row in rows}


def has_been_pushed(cluster: Cluster) -> bool:
    return PushedObject.objects.filter(cluster=cluster).exists()


def first_refusal(cluster: Cluster) -> str:
    models: tuple[tuple[str, type[Queue] | type[PriorityClass]], ...] = ((QUEUE, Queue), (CLASS, PriorityClass))
    for kind, model in models:
        rows = model._base_manager.filter(cluster=cluster, refusals__gt=0).exclude(sync_error="").order_by("name")
        if found := rows.values_list("name", "sync_error").first():
            return f"{kind} {found[0]}: {found[1]}"
    return ""
