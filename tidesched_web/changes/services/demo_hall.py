"""The second hall of the medium demo: its owners and queues, brought in as one change, and the history before it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tidesched_web.changes.services.applying import carry_out
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.actors import SYSTEM
from tidesched_web.common.permissions import Access
from tidesched_web.engine import demo
from tidesched_web.scheduling import drawn_history_services as drawn_history

REASON = "The second hall of the medium demo."


def add_hall(cluster: Cluster, seed: int) -> dict[str, int]:
    """Bring in 480 queues with their owners, then 90 days of drawn history; how many rows of each kind it has."""
    access = Access(actor=SYSTEM, everything=True, administers=True)
    carry_out(cluster=cluster, edits=_edits(), access=access, reason=REASON)
    return drawn_history.draw(cluster=cluster, hardware=demo.hardware("M"), seed=seed)


def _edits() -> dict[str, Any]:
    queues = demo.hall_queues()
    of_tenant: dict[tuple[str, str], Counter[str]] = {}
    of_project: dict[tuple[str, str], Counter[str]] = {}
    for queue in queues:
        of_tenant.setdefault((queue.tenant, queue.service_type), Counter()).update(queue.card_quota)
        of_project.setdefault((queue.tenant, queue.project), Counter()).update(queue.card_quota)

    def quota(owner: dict[tuple[str, str], Counter[str]], tenant: str, name: str) -> dict[str, Any]:
        return {"card_quota": dict(owner[tenant, name])}

    edits: dict[str, Any] = {}
    for tenant in demo.HALL_TENANTS:
        kinds = {kind: quota(of_tenant, tenant.slug, kind) for kind in ("inference", "training")}
        edits[f"tenant/{tenant.slug}"] = {"name": tenant.name, "quota": kinds}
        for project in tenant.projects:
            inference = quota(of_project, tenant.slug, project.slug)
            edits[f"project/{tenant.slug}/{project.slug}"] = {"name": project.name, "quota": {"inference": inference}}
    for line in demo.HALL_BUSINESS_LINES:
        edits[f"business-line/{line.tenant or '-'}/{line.slug}"] = {"name": line.name}
    for queue in queues:
        edits[f"queue/{queue.name}"] = _queue(queue)
        edits |= {f"grant/{namespace}/{queue.name}": {} for namespace in queue.namespaces}
    return edits


def _queue(queue: demo.DemoQueue) -> dict[str, Any]:
    document = {
        "service_type": queue.service_type,
        "weight": queue.weight,
        "priority": queue.priority,
        "reclaimable": queue.reclaimable,
        "cpu_milli": queue.cpu * 1000,
        "memory_bytes": queue.memory_gib * 2**30,
        "card_quota": queue.card_quota,
    }
    owners = {"tenant": queue.tenant, "project": queue.project, "business_line": queue.business_line}
    return document | {name: value for name, value in owners.items() if value}
