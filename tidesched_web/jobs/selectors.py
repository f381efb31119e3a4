"""Who may see which jobs."""

from __future__ import annotations

from django.db.models import QuerySet

from tidesched_web.accounts.models import User
from tidesched_web.common.permissions import Access
from tidesched_web.jobs.models import Job


def visible_jobs(access: Access, user: User) -> QuerySet[Job]:
    """The caller's own jobs; a platform admin sees all; a token for one tenant none, since jobs belong to people.

    Without parameters, checkpoint and result: a list does not need them, and they may be long.
    """
    jobs = Job.objects.select_related("cluster", "owner").defer("params", "checkpoint", "result")
    if access.administers:
        return jobs
    return jobs.filter(owner=user) if access.limited_to is None else jobs.none()


def visible_job(access: Access, user: User, pk: int) -> Job | None:
    """One job with all that it has, if the caller may see it."""
    return visible_jobs(access, user).defer(None).filter(pk=pk).first()


def newest_about(access: Access, user: User, subject: str, kind: str) -> Job | None:
    """The newest job of a kind about something, if the caller may see it."""
    return visible_jobs(access, user).defer(None).filter(subject=subject, kind=kind).order_by("-pk").first()


def job_by_id(pk: int) -> Job | None:
    """A job as it is now."""
    return Job.objects.filter(pk=pk).first()


def job_states(pks: list[int]) -> dict[int, tuple[str, float]]:
    """State and progress of some jobs."""
    rows = Job.objects.filter(pk__in=pks).values_list("pk", "state", "progress")
    return {pk: (state, progress) for pk, state, progress in rows}
