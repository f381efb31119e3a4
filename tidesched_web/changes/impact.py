"""The stored answer names the gangs of all tenants: who shows one passes it through `impact_sight.within_sight`."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection, transaction

from tidesched_web.accounts.selectors import active_user
from tidesched_web.celery import app
from tidesched_web.changes.impact_sight import within_sight
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import alive
from tidesched_web.common.permissions import Access
from tidesched_web.jobs import services as jobs
from tidesched_web.jobs import waiting
from tidesched_web.jobs.models import Job, JobKind, JobState
from tidesched_web.jobs.selectors import asked_already, newest_answer, newest_question
from tidesched_web.scheduling import pictures
from tidesched_web.waking import WHAT_IF_QUEUE, WORK_QUEUE

_log = logging.getLogger(__name__)

FOLLOW_TASK = "tidesched_web.scheduling.tasks.follow"
# A page waits so long; what comes later is found under the job's address.
PATIENCE_SECONDS = 2.5

Objects = Iterable[Mapping[str, Any]]


def impact_now(
    cluster: Cluster,
    objects: Objects,
    *,
    access: Access,
    policy_text: str | None = None,
    timeout: float = PATIENCE_SECONDS,
    subject: str = "",
) -> dict[str, Any]:
    """Waits for the answer outside of transactions. A new question about ``subject`` makes the last one void."""
    job = ask(cluster, objects, access=access, policy_text=policy_text, subject=subject)
    return within_sight(answer_in_time(job, timeout), access, cluster.pk)


def ask(
    cluster: Cluster, objects: Objects, *, access: Access, policy_text: str | None = None, subject: str = ""
) -> Job:
    params = _params(objects, policy_text)
    # Who asks again before the answer is there waits for the same one.
    job = asked_already(JobKind.IMPACT, subject, access.user_id, params) if subject else None
    if job is None:
        job = _put(JobKind.IMPACT, cluster, params, access=access, worker=WHAT_IF_QUEUE, subject=subject)
    # The Redis of a slow day must not hold the locks of the transaction that the question may be put in.
    transaction.on_commit(lambda: pictures.note_interest(cluster.pk), robust=True)
    return job


def asked_about(objects: Objects, *, subject: str) -> Job | None:
    return newest_question(JobKind.IMPACT, subject, _params(objects, None))


def answered_about(objects: Objects, *, subject: str) -> Job | None:
    return newest_answer(JobKind.IMPACT, subject, _params(objects, None))


def answer_in_time(job: Job, timeout: float = PATIENCE_SECONDS) -> dict[str, Any]:
    if job.result is None and job.open:
        if connection.in_atomic_block:  # there is no answer before the question is committed
            return _later(job, "timeout")
        if WHAT_IF_QUEUE in alive.silent_roles():
            return _later(job, "no_worker")
        job = waiting.wait(job.pk, timeout) or job
    return answer_of(job)


def start_day_impact(
    cluster: Cluster, objects: Objects, *, access: Access, policy_text: str | None = None, subject: str = ""
) -> Job:
    params = _params(objects, policy_text)
    return _put(JobKind.IMPACT_DAY, cluster, params, access=access, worker=WORK_QUEUE, subject=subject)


def _put(kind: str, cluster: Cluster, params: dict[str, Any], *, access: Access, worker: str, subject: str) -> Job:
    owner = active_user(access.user_id)
    job = jobs.enqueue(
        kind=kind, owner=owner, actor=access.actor, params=params, cluster=cluster, worker=worker, subject=subject
    )
    if subject:
        jobs.cancel_earlier(job)
    return job


def answer_of(job: Job) -> dict[str, Any]:
    if job.result is not None:
        return {**job.result, "job": job.pk}
    if job.state == JobState.FAILED:
        return {"unavailable": "failed", "detail": job.error, "job": job.pk}
    if job.state == JobState.CANCELLED:
        return {"unavailable": "cancelled", "detail": "", "job": job.pk}
    return _later(job, "timeout")


def warm(cluster_id: int) -> None:
    if not pictures.note_interest(cluster_id):
        return
    try:
        app.send_task(FOLLOW_TASK, queue=WHAT_IF_QUEUE, expires=pictures.FOLLOW_SECONDS, retry=False)
    except Exception as error:  # noqa: BLE001 - the transport's own errors; the first question takes longer
        _log.warning("the snapshot of cluster %s is not loaded ahead: %s", cluster_id, error)


def _params(objects: Objects, policy_text: str | None) -> dict[str, Any]:
    return {"objects": [dict(item) for item in objects], "policy": policy_text or ""}


def _later(job: Job, why: str) -> dict[str, Any]:
    return {"unavailable": why, "detail": "", "job": job.pk}
