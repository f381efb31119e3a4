from collections.abc import Mapping

from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.quota.models import PriorityClass, Queue
from tidesched_web.quota.push_selectors import limits_of
from tidesched_web.quota.selectors import card_quota_of


def queue_manifest(
    queue: Queue, card_quota: Mapping[str, int] | None = None, counted_by: Mapping[str, str] | None = None
) -> dict[str, object]:
    """``counted_by``: resources of the cards that have to be limited by capability too."""
    cards = card_quota_of(queue) if card_quota is None else card_quota
    return manifests.queue(
        queue.name,
        service_type=queue.service_type,
        weight=queue.weight,
        priority=queue.priority,
        reclaimable=queue.reclaimable,
        card_quota=cards,
        limits=limits_of(cards, counted_by or {}),
        cpu_milli=queue.cpu_milli,
        memory_mib=queue.memory_mib,
        parent=queue.parent,
        deserved=queue.deserved,
        guarantee=queue.guarantee,
        namespaces=queue.granted,  # type: ignore[attr-defined]
        labels={
            manifests.TENANT: queue.tenant.slug if queue.tenant else "",
            manifests.PROJECT: queue.project.slug if queue.project else "",
            manifests.BUSINESS_LINE: queue.business_line.slug if queue.business_line else "",
        },
    )


def class_manifest(row: PriorityClass) -> dict[str, object]:
    return manifests.priority_class(
        row.name,
        value=row.value,
        global_default=row.global_default,
        preemption_policy=row.preemption_policy,
        description=row.description,
    )
