"""A plan as its reader may see it, with the impact. Call it outside of transactions: the impact is waited for."""

from __future__ import annotations

from typing import Any

from tidesched_web.changes.impact import answer_of, impact_now
from tidesched_web.changes.impact_sight import within_sight
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.server_check import server_check
from tidesched_web.changes.services.drafting import plan
from tidesched_web.common.permissions import Access
from tidesched_web.jobs.models import OPEN_JOB_STATES
from tidesched_web.jobs.selectors import job_by_id


def shown_plan(*, change: QuotaChange, access: Access, impact: bool = False, server: bool = False) -> dict[str, Any]:
    """The plan of now (or of when it was written); ``impact`` asks the what-if process, else a kept answer is shown.

    ``server`` asks the cluster too, by a dry run, whether it would take the objects.
    """
    document = plan(change=change, access=access)
    kept = (change.plan or {}).get("impact")
    if impact and document.get("objects") and not document.get("errors"):
        found = impact_now(change.cluster, document["objects"], access=access, subject=f"change:{change.pk}")
        _keep(change, document, found)
    elif kept and (change.plan or {}).get("objects") == document.get("objects"):
        found = within_sight(_completed(change, document, kept), access, change.cluster_id)
    else:
        found = None
    errors = document.get("errors", [])
    if not access.everything and change.state not in QuotaChange.OPEN:
        # Written down for its author, who may have seen more.
        errors = [error | {"sibling": None, "sibling_object": None} for error in errors]
    asks = server and change.state in QuotaChange.OPEN and not errors
    answer = server_check(change.cluster, document.get("objects") or []) if asks else None
    return document | {"impact": found, "errors": errors, "server": answer}


def _completed(change: QuotaChange, document: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """A kept impact, with the parts that its job has found since; once nothing is missing it is kept as a whole.

    A job that failed or is forgotten finds no more: what there was stays, and nobody waits for the rest.
    """
    if not kept.get("pending"):
        return kept
    job = job_by_id(kept.get("job") or 0)
    answer = kept if job is None or job.result is None else answer_of(job)
    if not answer.get("pending"):
        _keep(change, document, answer)
    elif job is None or job.state not in OPEN_JOB_STATES:
        return {**answer, "pending": [], "flood_unavailable": "failed"}
    return answer


def _keep(change: QuotaChange, document: dict[str, Any], found: dict[str, Any]) -> None:
    """Keep the whole impact with the plan that it was worked out for: those who decide later see what was known."""
    job = None if "unavailable" in found else job_by_id(found.get("job") or 0)
    if job is not None:
        rows = QuotaChange.objects.filter(pk=change.pk, version=change.version, committed_at__isnull=True)
        rows.update(plan=document | {"impact": answer_of(job)})
