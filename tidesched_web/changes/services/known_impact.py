"""The impact of a change as far as it is known: kept with its plan, or in the job that works it out. Only reads."""

from __future__ import annotations

from typing import Any

from tidesched_web.changes.impact import answer_in_time, answer_of, asked_about
from tidesched_web.changes.models import QuotaChange
from tidesched_web.jobs.models import OPEN_JOB_STATES
from tidesched_web.jobs.selectors import job_by_id


def subject_of(change: QuotaChange) -> str:
    return f"change:{change.pk}"


def known_impact(change: QuotaChange, document: dict[str, Any], *, wait: bool = False) -> dict[str, Any] | None:
    """The whole impact for the objects of a plan; None where it was never asked for. Names everybody's gangs.

    ``wait``: for the answer of a question that is under way, outside of transactions. An answer whose job failed or is
    forgotten before all parts were found stays as it is, and says so.
    """
    objects = document.get("objects") or []
    old = change.plan or {}
    kept: dict[str, Any] | None = old.get("impact") if old.get("objects") == objects else None
    if kept is not None and not kept.get("pending"):
        return kept
    if kept is None:
        asked = asked_about(objects, subject=subject_of(change)) if objects else None
        return None if asked is None else (answer_in_time if wait else answer_of)(asked)
    job = job_by_id(kept.get("job") or 0)
    answer = kept if job is None or job.result is None else answer_of(job)
    if answer.get("pending") and (job is None or job.state not in OPEN_JOB_STATES):
        return {**answer, "pending": [], "flood_unavailable": "failed"}
    return answer
