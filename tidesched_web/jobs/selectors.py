"""Who may see which jobs."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from tidesched_web.accounts.models import User
from tidesched_web.common.permissions import Access
from tidesched_web.jobs.models import Job, ReplacedProcess


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


def replaced_processes(access: Access, most: int = 50) -> list[ReplacedProcess]:
    """The processes that were replaced last; they are the platform's, and shown to who sees all of it."""
    return list(ReplacedProcess.objects.all()[:most]) if access.everything else []


def job_by_id(pk: int) -> Job | None:
    """A job as it is now."""
    return Job.objects.filter(pk=pk).first()


def asked_already(kind: str, subject: str, owner_id: int | None, params: dict[str, Any]) -> Job | None:
    """The newest job of this person about this subject, if it is the same question and still without an answer."""
    if owner_id is None:
        return None
    found = Job.objects.filter(kind=kind, subject=subject, owner_id=owner_id).order_by("-id").first()
    waits = found is not None and found.open and found.result is None and found.cancel_asked_at is None
    return found if found is not None and waits and found.params == params else None
