"""Queues: inference queues belong to a tenant's project, training queues to a business line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypedDict, Unpack

from django.db import transaction

from tidesched_web.accounts.models import BusinessLine, Project, Tenant
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.common.models import ServiceType
from tidesched_web.common.validation import check_fields
from tidesched_web.quota.models import Queue
from tidesched_web.quota.services.card_quota import write_card_rows
from tidesched_web.quota.services.recording import record
from tidesched_web.quota.services.tree import quota_write

# Founding document 000: all inference queues on one level, all training queues on a lower one that may be taken from.
DEFAULT_PRIORITY = {ServiceType.INFERENCE: 80000, ServiceType.TRAINING: 20000}
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def _owners(
    service_type: str, tenant: Tenant | None, project: Project | None, business_line: BusinessLine | None
) -> Tenant | None:
    """Check who the queue is for and return its tenant (None for a business line of the platform)."""
    if service_type == ServiceType.INFERENCE:
        if project is None:
            raise DomainError.for_field("/project", "An inference queue belongs to a project.")
        if business_line is not None:
            raise DomainError.for_field("/business_line", "A business line is for training queues.")
        owner: Tenant | None = project.tenant
    else:
        if business_line is None:
            raise DomainError.for_field("/business_line", "A training queue belongs to a business line.")
        owner = business_line.tenant
        if project is not None and (owner is None or project.tenant_id != owner.pk):
            raise DomainError.for_field("/project", "The project is not of the business line's tenant.")
    if tenant is not None and tenant != owner:
        raise DomainError.for_field("/tenant", f"The queue would belong to {owner or 'the platform'}, not to {tenant}.")
    return owner


class QueueFields(TypedDict, total=False):
    """What else may be said of a new queue."""

    tenant: Tenant | None
    project: Project | None
    business_line: BusinessLine | None
    weight: int
    priority: int | None
    reclaimable: bool | None
    cpu_milli: int | None
    memory_mib: int | None
    card_quota: Mapping[str, int] | None
    reason: str


@transaction.atomic
def create_queue(
    *,
    cluster: Cluster,
    name: str,
    service_type: str,
    actor: str,
    tenant: Tenant | None = None,
    project: Project | None = None,
    business_line: BusinessLine | None = None,
    weight: int = 1,
    priority: int | None = None,
    reclaimable: bool | None = None,
    cpu_milli: int | None = None,
    memory_mib: int | None = None,
    card_quota: Mapping[str, int] | None = None,
    reason: str = "",
) -> Queue:
    """Make a queue with its card quota; absent cards are 0, absent cpu or memory is no limit."""
    if service_type not in ServiceType.values:
        raise DomainError.for_field("/service_type", f"A queue is for one of {', '.join(ServiceType.values)}.")
    if not _NAME.fullmatch(name):
        raise DomainError.for_field(
            "/name", f"{name!r} is no Kubernetes name: lower-case letters, digits and '-', at most 63."
        )
    kind = ServiceType(service_type)
    cards = dict(card_quota or {})
    queue = Queue(
        cluster=cluster,
        name=name,
        service_type=kind,
        tenant=_owners(kind, tenant, project, business_line),
        project=project,
        business_line=business_line,
        weight=weight,
        priority=DEFAULT_PRIORITY[kind] if priority is None else priority,
        reclaimable=(kind == ServiceType.TRAINING) if reclaimable is None else reclaimable,
        cpu_milli=cpu_milli,
        memory_mib=memory_mib,
    )
    check_fields(queue)
    for field, figure in (("cpu_milli", cpu_milli), ("memory_bytes", memory_mib)):
        if figure is not None and figure < 0:
            raise DomainError.for_field(f"/{field}", f"{figure} is negative.")
    with quota_write(cluster):
        if Queue.objects.filter(cluster=cluster, name=name).exists():
            raise DomainError.for_field("/name", f"{cluster.name} has a queue {name!r} already.", code="already_exists")
        queue.save()
        write_card_rows(cluster, queue, kind, cards)
    record(
        queue,
        kind="queue",
        verb="create",
        actor=actor,
        label=name,
        cluster=cluster,
        tenant_ids=[queue.tenant_id],
        reason=reason,
        after={
            "name": name,
            "service_type": kind,
            "tenant": queue.tenant.slug if queue.tenant else None,
            "project": project.slug if project else None,
            "business_line": business_line.slug if business_line else None,
            "weight": weight,
            "priority": queue.priority,
            "reclaimable": queue.reclaimable,
            "cpu_milli": cpu_milli,
            "memory_mib": memory_mib,
            "card_quota": cards,
        },
    )
    return queue


def ensure_queue(
    *,
    cluster: Cluster,
    name: str,
    service_type: str,
    actor: str,
    **more: Unpack[QueueFields],
) -> Queue:
    """The queue of this name, made where it is missing; one that is there keeps what people have set since."""
    found = Queue.objects.filter(cluster=cluster, name=name).first()
    if found is not None:
        return found
    return create_queue(cluster=cluster, name=name, service_type=service_type, actor=actor, **more)
