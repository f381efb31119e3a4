import datetime as dt
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from tidesched_web.accounts.models import User
from tidesched_web.common.permissions import Access
from tidesched_web.jobs.models import Job, JobState


def visible_jobs(access: Access, user: User) -> QuerySet[Job]:
    """A token for one tenant sees none, since jobs belong to people."""
    jobs = Job.objects.select_related("cluster", "owner").defer("params", "checkpoint", "result")
    if access.administers:
        return jobs
    return jobs.filter(owner=user) if access.limited_to is None else jobs.none()


def visible_job(access: Access, user: User, pk: int) -> Job | None:
    return visible_jobs(access, user).defer(None).filter(pk=pk).first()


def newest_about(access: Access, user: User, subject: str, kind: str) -> Job | None:
    return visible_jobs(access, user).defer(None).filter(subject=subject, kind=kind).order_by("-pk").first()


_PLACES = """
WITH running AS (
    SELECT worker, coalesce(owner_id::text, actor) AS person, count(*) AS jobs FROM jobs_job
    WHERE state = 'running' AND heard_at >= clock_timestamp() - make_interval(secs => %(lost)s)
    GROUP BY worker, person
), had AS (
    SELECT worker, coalesce(owner_id::text, actor) AS person, max(started_at) AS at FROM jobs_job
    WHERE started_at > clock_timestamp() - interval '1 hour' GROUP BY worker, person
), rounds AS (
    SELECT j.id, j.worker, coalesce(r.jobs, 0) AS running, j.state = 'running' AS left_behind, h.at AS last_turn,
           row_number() OVER (PARTITION BY j.worker, coalesce(j.owner_id::text, j.actor) ORDER BY j.id)
               + coalesce(r.jobs, 0) AS round
    FROM jobs_job j
    LEFT JOIN running r ON r.worker = j.worker AND r.person = coalesce(j.owner_id::text, j.actor)
    LEFT JOIN had h ON h.worker = j.worker AND h.person = coalesce(j.owner_id::text, j.actor)
    WHERE j.state = 'queued'
       OR (j.state = 'running' AND j.heard_at < clock_timestamp() - make_interval(secs => %(lost)s))
)
SELECT id, row_number() OVER (PARTITION BY worker ORDER BY left_behind DESC, round, last_turn NULLS FIRST, id), running
FROM rounds WHERE %(worker)s = '' OR worker = %(worker)s
ORDER BY 2, 1
"""


def places(worker: str = "", *, lost_seconds: float) -> list[tuple[int, int, int]]:
    """Turns: a person's second job comes after everybody's first, and who had a turn last comes last."""
    with connection.cursor() as cursor:
        cursor.execute(_PLACES, {"worker": worker, "lost": lost_seconds})
        return [(int(id_), int(place), int(running)) for id_, place, running in cursor.fetchall()]


def job_by_id(pk: int) -> Job | None:
    return Job.objects.filter(pk=pk).first()


def is_asked(worker: str) -> bool:
    return Job.objects.filter(worker=worker, state=JobState.QUEUED).exists()


def newest_question(kind: str, subject: str, params: dict[str, Any]) -> Job | None:
    """The newest job about this subject, of any person, if it is the same question."""
    found = Job.objects.filter(kind=kind, subject=subject).order_by("-id").first()
    return found if found is not None and found.params == params else None


def newest_since(kind: str, subject: str, since: dt.datetime) -> Job | None:
    return Job.objects.filter(kind=kind, subject=subject, created_at__gte=since).order_by("-id").first()


def earlier_answer(pk: int) -> Job | None:
    """The newest answer, of any person, to the question that a job about a subject puts again."""
    asked = Job.objects.filter(pk=pk).exclude(subject="").first()
    if asked is None:
        return None
    earlier = Job.objects.filter(kind=asked.kind, subject=asked.subject, pk__lt=pk, result__isnull=False)
    found = earlier.order_by("-id").first()
    return found if found is not None and found.params == asked.params else None


def newest_answer(kind: str, subject: str, params: dict[str, Any]) -> Job | None:
    """The newest answer about this subject, of any person, if it is to the same question."""
    found = Job.objects.filter(kind=kind, subject=subject, result__isnull=False).order_by("-id").first()
    return found if found is not None and found.params == params else None


def is_answered(kind: str, cluster_id: int) -> bool:
    return Job.objects.filter(kind=kind, cluster_id=cluster_id, result__isnull=False).exists()


def asked_already(kind: str, subject: str, owner_id: int | None, params: dict[str, Any]) -> Job | None:
    """The newest job of this person about this subject, if it is the same question and still without an answer."""
    if owner_id is None:
        return None
    found = Job.objects.filter(kind=kind, subject=subject, owner_id=owner_id).order_by("-id").first()
    waits = found is not None and found.open and found.result is None and found.cancel_asked_at is None
    return found if found is not None and waits and found.params == params else None
