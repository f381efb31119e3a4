"""Intent that a test stands on, written as a change writes it, without the row of a change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.audit import services as audit
from tidesched_web.changes.services.planning import require_sound, work_out
from tidesched_web.changes.services.writing import write_documents
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.locking import lock_tree
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import (
    DEFAULT_PRIORITY_CLASSES,
    CardQuota,
    NamespaceGrant,
    PriorityClass,
    Queue,
    QuotaTree,
    TidePlan,
)
from tidesched_web.quota.services import create_business_line, create_project, create_tenant


def write(cluster: Cluster, edits: Mapping[str, Any], *, actor: str = "tests", reason: str = "") -> None:
    access = Access(actor=actor, everything=True, administers=True)
    with transaction.atomic():
        version = lock_tree(cluster.pk)
        plan = work_out(cluster, edits, access=access, version=version)
        require_sound(plan, access=access)
        if not plan.fields:
            return
        facts = write_documents(cluster=cluster, reading=plan.reading, after=plan.after, keys=plan.edits)
        QuotaTree.objects.filter(cluster=cluster).update(version=version + 1)
        audit.append_all(
            facts, chain=audit.cluster_chain(cluster.pk), actor=actor, cluster_id=cluster.pk, reason=reason
        )


def ensure_tenant(*, slug: str, actor: str, name: str = "", **more: Any) -> Tenant:
    found = Tenant.objects.filter(slug=slug).first()
    return found or create_tenant(slug=slug, name=name or slug, actor=actor, **more)


def ensure_project(*, tenant: Tenant, slug: str, actor: str, name: str = "", **more: Any) -> Project:
    found = Project.objects.filter(tenant=tenant, slug=slug).first()
    return found or create_project(tenant=tenant, slug=slug, name=name or slug, actor=actor, **more)


def ensure_business_line(*, tenant: Tenant | None, slug: str, actor: str, name: str = "", **more: Any) -> BusinessLine:
    found = BusinessLine.objects.filter(tenant=tenant, slug=slug).first()
    return found or create_business_line(tenant=tenant, slug=slug, name=name or slug, actor=actor, **more)


def create_queue(
    *,
    cluster: Cluster,
    name: str,
    service_type: str,
    actor: str = "tests",
    project: Project | None = None,
    business_line: BusinessLine | None = None,
    card_quota: Mapping[str, int] | None = None,
    memory_mib: int | None = None,
    reason: str = "",
    **fields: Any,
) -> Queue:
    owner = project or business_line
    document = {"service_type": service_type, "card_quota": dict(card_quota or {}), **fields}
    if memory_mib is not None:
        document["memory_bytes"] = memory_mib * 2**20
    if owner is not None and owner.tenant is not None:
        document["tenant"] = owner.tenant.slug
    document |= {"project": project.slug} if project else {}
    document |= {"business_line": business_line.slug} if business_line else {}
    write(cluster, {f"queue/{name}": document}, actor=actor, reason=reason)
    queue = Queue.objects.get(cluster=cluster, name=name)
    queue.cluster = cluster  # the test's own object: it moves its clock
    return queue


def set_card_quota(
    *,
    cluster: Cluster,
    owner: Queue | Project | Tenant,
    cards: Mapping[str, int],
    actor: str = "tests",
    service_type: str = "",
    reason: str = "",
) -> bool:
    """The whole card quota of ``owner``; False where it is that already."""
    kind = service_type or getattr(owner, "service_type", "")
    column = owner._meta.model_name or ""
    rows = CardQuota.objects.filter(cluster=cluster, service_type=kind, **{column: owner})
    before = dict(rows.values_list("card_type__name", "cards"))
    patch: dict[str, Any] = {"card_quota": dict.fromkeys(before) | dict(cards)}
    if isinstance(owner, Queue):
        key = f"queue/{owner.name}"
    else:
        key = f"tenant/{owner.slug}" if isinstance(owner, Tenant) else f"project/{owner.tenant.slug}/{owner.slug}"
        patch = {"quota": {kind: patch}}
    write(cluster, {key: patch}, actor=actor, reason=reason)
    owner.refresh_from_db()
    return before != dict(cards)


def ensure_grant(*, queue: Queue, namespace: str, actor: str = "tests", reason: str = "") -> NamespaceGrant:
    write(queue.cluster, {f"grant/{namespace}/{queue.name}": {}}, actor=actor, reason=reason)
    return NamespaceGrant.objects.get(queue=queue, namespace=namespace)


def ensure_priority_class(*, cluster: Cluster, name: str, actor: str = "tests", **fields: Any) -> PriorityClass:
    if not PriorityClass.objects.filter(cluster=cluster, name=name).exists():
        write(cluster, {f"priority-class/{name}": fields}, actor=actor)
    return PriorityClass.objects.get(cluster=cluster, name=name)


def ensure_default_priority_classes(*, cluster: Cluster, actor: str = "tests") -> None:
    words = {name: f"{name[3:].title()} priority class for Volcano." for name in DEFAULT_PRIORITY_CLASSES}
    documents = {name: {"value": value, "description": words[name]} for name, value in DEFAULT_PRIORITY_CLASSES.items()}
    write(cluster, {f"priority-class/{name}": document for name, document in documents.items()}, actor=actor)


def write_tide_plan(
    *, cluster: Cluster, name: str, document: Mapping[str, Any] | None, actor: str = "tests", reason: str = ""
) -> TidePlan | None:
    plan = TidePlan.objects.filter(cluster=cluster, name=name).first()
    if document is not None and plan is not None:  # the document is the whole plan
        document = {**document, "exceptions": dict.fromkeys(plan.exceptions) | document.get("exceptions", {})}
    write(cluster, {f"tide-plan/{name}": document}, actor=actor, reason=reason)
    return TidePlan.objects.filter(cluster=cluster, name=name).first()
