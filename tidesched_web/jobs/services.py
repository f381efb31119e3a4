"""Every step is a conditional update: an attempt that lost its job to another one changes nothing."""

import datetime as dt
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.module_loading import import_string

from tidesched_web.accounts.models import User
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import live
from tidesched_web.common.errors import DomainError
from tidesched_web.jobs import waiting
from tidesched_web.jobs.models import OPEN_JOB_STATES, Job, JobState
from tidesched_web.jobs.selectors import places
from tidesched_web.waking import WORK_QUEUE, wake_job

_log = logging.getLogger(__name__)

# A running job that has not been heard of for so long was left by its process; the next claim goes on with it.
LOST_SECONDS = 10.0
# How often lost jobs are looked for.
SWEEP_SECONDS = 5
MOST_ATTEMPTS = 2  # what ends its process again would end the next one too


def enqueue(
    *,
    kind: str,
    owner: User | None,
    actor: str,
    params: Mapping[str, Any],
    cluster: Cluster | None = None,
    worker: str = WORK_QUEUE,
    subject: str = "",
) -> Job:
    job = Job.objects.create(
        kind=kind, owner=owner, actor=actor, params=dict(params), cluster=cluster, worker=worker, subject=subject
    )
    transaction.on_commit(lambda: wake_job(job.pk, worker), robust=True)
    return job


def claim(job_id: int, worker: str | None = None) -> Job | None:
    """Take a job that waits, or that its process has left; None when another process has it or it is over."""
    lost = timezone.now() - dt.timedelta(seconds=LOST_SECONDS)
    with transaction.atomic():
        free = Q(state=JobState.QUEUED) | Q(state=JobState.RUNNING, heard_at__lt=lost)
        rows = Job.objects.select_for_update(skip_locked=True).filter(free, pk=job_id)
        if worker is not None:
            rows = rows.filter(worker=worker)
        job = rows.first()
        if job is None:
            return None
        now = timezone.now()
        if job.cancel_asked_at is not None:
            _end(job, JobState.CANCELLED)
            return None
        if job.attempt >= MOST_ATTEMPTS:
            _end(job, JobState.FAILED, error=f"Given up after {job.attempt} attempts: each process that had it ended.")
            return None
        job.state, job.attempt, job.heard_at = JobState.RUNNING, job.attempt + 1, now
        job.started_at = job.started_at or now
        job.save(update_fields=["state", "attempt", "heard_at", "started_at"])
    _announce(job)
    return job


def claim_turn(worker: str) -> Job | None:
    """Two processes that look at once would give one person twice as many, so they look one after the other."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"jobs:{worker}"])
        for job_id, _place, running in places(worker, lost_seconds=LOST_SECONDS):
            if running < settings.JOBS_RUNNING_PER_PERSON and (job := claim(job_id, worker)) is not None:
                return job
    return None


def wake_next(worker: str) -> bool:
    for job_id, _place, running in places(worker, lost_seconds=LOST_SECONDS):
        if running < settings.JOBS_RUNNING_PER_PERSON:
            return wake_job(job_id, worker)
    return False


def places_of(jobs: Iterable[Job]) -> dict[int, int]:
    if not any(job.state == JobState.QUEUED for job in jobs):
        return {}
    return {job_id: place for job_id, place, _running in places(lost_seconds=LOST_SECONDS)}


def carry_on(job: Job, **values: Any) -> bool:
    """Write how far it is. False: the job is not this attempt's any more, or it is to be cancelled."""
    held = Job.objects.filter(pk=job.pk, attempt=job.attempt, state=JobState.RUNNING)
    return bool(held.filter(cancel_asked_at__isnull=True).update(heard_at=timezone.now(), **values))


def is_alive(job: Job) -> None:
    """Of this attempt, also while it is to be cancelled."""
    Job.objects.filter(pk=job.pk, attempt=job.attempt, state=JobState.RUNNING).update(heard_at=timezone.now())


def hand_over(job: Job, *, worker: str, checkpoint: dict[str, Any], result: dict[str, Any]) -> bool:
    held = Job.objects.filter(pk=job.pk, attempt=job.attempt, state=JobState.RUNNING, cancel_asked_at__isnull=True)
    # A hand-over is no failed attempt.
    values = {"worker": worker, "checkpoint": checkpoint, "result": result, "attempt": F("attempt") - 1}
    if not held.update(state=JobState.QUEUED, **values):
        return False
    waiting.tell(job.pk)
    _announce(job)
    wake_job(job.pk, worker)
    return True


def put_back(job: Job) -> bool:
    """Let another attempt begin where the checkpoint says; False where the job is not this attempt's any more."""
    held = Job.objects.filter(pk=job.pk, attempt=job.attempt, state=JobState.RUNNING, cancel_asked_at__isnull=True)
    if not held.update(state=JobState.QUEUED):
        return False
    _announce(job)
    wake_job(job.pk, job.worker)
    return True


def finish(job: Job, *, state: JobState, result: dict[str, Any] | None = None, error: str = "") -> bool:
    """The end of this attempt and of the job; False where another attempt has it."""
    return _end(job, state, result=result, error=error, attempt=job.attempt)


def cancel(*, job: Job) -> Job:
    """At once where it waits, at its next step where it runs."""
    if _end(job, JobState.CANCELLED, waiting_only=True):
        job.refresh_from_db()
        return job
    asked = Job.objects.filter(pk=job.pk, state=JobState.RUNNING)
    if not asked.update(cancel_asked_at=timezone.now()):
        raise DomainError("conflict", "This job is over already.", {"state": Job.objects.get(pk=job.pk).state})
    job.refresh_from_db()
    _announce(job)
    return job


def cancel_earlier(job: Job) -> int:
    same = Job.objects.filter(kind=job.kind, subject=job.subject, owner=job.owner, cluster=job.cluster, pk__lt=job.pk)
    now = timezone.now()
    gone = same.filter(state=JobState.QUEUED).update(state=JobState.CANCELLED, finished_at=now)
    return gone + same.filter(state=JobState.RUNNING).update(cancel_asked_at=now)


_TOO_MANY_WAIT = """
SELECT id FROM (
    SELECT id, row_number() OVER (PARTITION BY owner_id ORDER BY id DESC) AS place
    FROM jobs_job WHERE state = 'queued' AND owner_id IS NOT NULL
) AS ranked WHERE place > %s
"""


def give_up_oldest() -> int:
    """Nothing is refused: most jobs are asked by pages themselves, and the newest are those that are looked at."""
    most = settings.KEPT_WAITING_JOBS
    with connection.cursor() as cursor:
        cursor.execute(_TOO_MANY_WAIT, [most])
        pks = [row[0] for row in cursor.fetchall()]
    error = f"Given up: {most} newer jobs of the same person wait, the most that may."
    waiting_jobs = Job.objects.filter(pk__in=pks)
    return sum(_end(job, JobState.CANCELLED, error=error, waiting_only=True) for job in waiting_jobs)


def sweep() -> int:
    give_up_oldest()
    now = timezone.now()
    waits = Q(state=JobState.QUEUED, created_at__lt=now - dt.timedelta(seconds=3))
    left = Q(state=JobState.RUNNING, heard_at__lt=now - dt.timedelta(seconds=LOST_SECONDS))
    found = list(Job.objects.filter(waits | left).order_by("pk").values_list("pk", "worker")[:100])
    for pk, worker in found:
        wake_job(pk, worker, expires=SWEEP_SECONDS)
    return len(found)


_BEYOND = """
DELETE FROM jobs_job WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (ORDER BY id DESC) AS place,
               row_number() OVER (PARTITION BY kind, owner_id ORDER BY id DESC) AS place_of_owner
        FROM jobs_job WHERE state IN ('done', 'failed', 'cancelled')
    ) ranked WHERE place > %s OR place_of_owner > %s
)
"""


def delete_old() -> int:
    keep = settings.RETENTION_JOBS
    with connection.cursor() as cursor:
        cursor.execute(_BEYOND, [keep, max(10, keep // 10)])
        return int(cursor.rowcount)


def _end(
    job: Job,
    state: JobState,
    *,
    result: dict[str, Any] | None = None,
    error: str = "",
    attempt: int | None = None,
    waiting_only: bool = False,
) -> bool:
    rows = Job.objects.filter(pk=job.pk, state__in=[JobState.QUEUED] if waiting_only else OPEN_JOB_STATES)
    if attempt is not None:
        rows = rows.filter(attempt=attempt)
    values: dict[str, Any] = {"state": state, "error": error[:4000], "finished_at": timezone.now(), "checkpoint": None}
    if result is not None:
        values |= {"result": result}
    if state == JobState.DONE:
        values |= {"progress": 1.0}
    with transaction.atomic():
        if not rows.update(**values):
            return False
        if state != JobState.DONE and (ending := settings.JOB_ENDINGS.get(job.kind)):
            _tell_ending(ending, job, error)
    waiting.tell(job.pk)
    _announce(job)
    return True


def _tell_ending(ending: str, job: Job, error: str) -> None:
    """What it was for may be broken itself: the job ends all the same, else its worker takes no other."""
    try:
        with transaction.atomic():
            import_string(ending)(job, error)
    except Exception:  # noqa: BLE001 - a bug; the job ends all the same
        _log.exception("the ending of job %s failed", job.pk)


def _announce(job: Job) -> None:
    about = live.About("job", job.kind, str(job.state), person=job.owner_id or 0)
    live.publish("jobs", job.pk, job.attempt, cluster_id=job.cluster_id, about=about)
