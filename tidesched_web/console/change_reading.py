from collections.abc import Mapping
from typing import Any

from django.shortcuts import get_object_or_404

from tidesched_web.changes import services
from tidesched_web.changes.ceiling_requests import NO_ROOM
from tidesched_web.changes.impact import answer_of
from tidesched_web.changes.impact_sight import within_sight
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.selectors import visible_changes
from tidesched_web.console import impact_view
from tidesched_web.console.page import Page
from tidesched_web.jobs.models import Job


def change_of(this: Page, pk: int) -> QuotaChange:
    return get_object_or_404(visible_changes(this.access), cluster=this.cluster, pk=pk)


def plan_of(this: Page, change: QuotaChange) -> dict[str, Any]:
    return services.shown_plan(change=change, access=this.access)


def blocks(plan: Mapping[str, Any]) -> bool:
    """What is asked for may be sent while the cluster has no room for it."""
    sendable = NO_ROOM if plan.get("asked") else frozenset()
    return bool(plan.get("more_errors")) or any(error["code"] not in sendable for error in plan.get("errors", ()))


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def answer_shown(this: Page, job: Job | None) -> dict[str, Any] | None:
    if job is None or (job.result or {}).get("unavailable"):
        return None
    known = within_sight(answer_of(job), this.access, this.cluster.pk)
    return {"view": impact_view.view_of(known), "impact": known}
