"""Celery tasks. Each one only wakes: the work stands in PostgreSQL, so a message may be lost, late or come twice."""

import logging
from functools import partial
from typing import Any

from celery import shared_task
from celery.signals import celeryd_after_setup, worker_ready, worker_shutdown, worker_shutting_down
from django.core.cache import cache
from django.db import Error as DatabaseError

from tidesched_web.accounts.tasks import CHECK_EVERY_SECONDS, check_identities
from tidesched_web.accounts.tasks import record_rest as record_sign_ins
from tidesched_web.audit.tasks import keep as keep_audit
from tidesched_web.celery import app
from tidesched_web.common import worker_progress
from tidesched_web.common.progress import progress
from tidesched_web.engine.compiling import on_compile
from tidesched_web.engine.model import BadInput, BrokenInvariant
from tidesched_web.jobs.services import SWEEP_SECONDS as JOBS_SECONDS
from tidesched_web.jobs.tasks import sweep as sweep_jobs
from tidesched_web.quota.tasks import push_pending
from tidesched_web.scheduling import pictures, remedies, retention
from tidesched_web.scheduling.input_selectors import cluster_ids
from tidesched_web.scheduling.pipeline import requests, sign_in_alerts
from tidesched_web.scheduling.pipeline.shards import Shards
from tidesched_web.scheduling.services import watch_promises
from tidesched_web.waking import PUSH_QUEUE, SESSIONS_QUEUE, WHAT_IF_QUEUE, cluster_queue, wake_holder

_log = logging.getLogger(__name__)

RETENTION_SECONDS = 60
# Heads of the audit log are signed once an hour; this is how often it is looked whether it is time.
AUDIT_SECONDS = 60
# What an edit leaves to push is pushed after so long, even where its own message was lost.
PUSH_SECONDS = 5
# A message that asks the workers to take clusters is asked again by each tick.
ADOPT_SECONDS = 5.0
# Changes that are due or on their way to a cluster are looked at so often, messages or not.
CHANGES_SECONDS, CHANGES_TASK = 5, "changes.sweep"
METRICS_SECONDS, METRICS_TASK = 5, "metrics.fold"

SIGN_IN_ALERT_SECONDS = 5

_shards: Shards | None = None
_hostname = ""


@shared_task(queue=SESSIONS_QUEUE)
def tick() -> None:
    try:
        due = requests.due_clusters()
        if cache.add("sign_in_alerts", 1, SIGN_IN_ALERT_SECONDS):
            sign_in_alerts.look()
    except DatabaseError as error:
        _log.warning("no tick: %s", str(error).strip().split("\n")[0])
        return
    for cluster_id, held in due:
        if held:
            wake_holder(cluster_id)
        else:
            adopt.apply_async(queue=SESSIONS_QUEUE, expires=ADOPT_SECONDS, retry=False)
    if cache.add("retention", 1, RETENTION_SECONDS):
        retain.apply_async(queue="work", expires=RETENTION_SECONDS, retry=False)
    if cache.add("audit", 1, AUDIT_SECONDS):
        keep_audit.apply_async(queue="work", expires=AUDIT_SECONDS, retry=False)
        record_sign_ins.apply_async(queue="work", expires=AUDIT_SECONDS, retry=False)
    if cache.add("check_identities", 1, CHECK_EVERY_SECONDS):
        check_identities.apply_async(queue="work", expires=CHECK_EVERY_SECONDS, retry=False)
    if cache.add("push_pending", 1, PUSH_SECONDS):
        push_pending.apply_async(queue=PUSH_QUEUE, expires=PUSH_SECONDS, retry=False)
    if cache.add("sweep_changes", 1, CHANGES_SECONDS):  # by name: the changes stand above this context
        app.send_task(CHANGES_TASK, queue=PUSH_QUEUE, expires=CHANGES_SECONDS, retry=False)
    if cache.add("metrics", 1, METRICS_SECONDS):
        app.send_task(METRICS_TASK, queue="work", expires=METRICS_SECONDS, retry=False)
    if cache.add("follow", 1, pictures.FOLLOW_SECONDS):
        follow.apply_async(queue=WHAT_IF_QUEUE, expires=pictures.FOLLOW_SECONDS, retry=False)
    if cache.add("remedies", 1, remedies.EVERY_SECONDS):
        help_waiting.apply_async(queue=WHAT_IF_QUEUE, expires=remedies.EVERY_SECONDS, retry=False)
    if cache.add("sweep_jobs", 1, JOBS_SECONDS):
        sweep_jobs.apply_async(queue="work", expires=JOBS_SECONDS, retry=False)


@shared_task(ignore_result=True)
def wake(cluster_id: int) -> None:
    if _shards is not None:
        _shards.wake(cluster_id)


@shared_task(ignore_result=True)
def adopt() -> None:
    if _shards is not None:
        _shards.adopt()


@shared_task(ignore_result=True)
def retain() -> None:
    retention.run()
    watch_promises()


@shared_task(ignore_result=True)
def follow() -> None:
    for cluster_id in pictures.of_interest(cluster_ids())[: pictures.MOST_LOADED]:
        try:
            pictures.renew(cluster_id)
        except (BadInput, BrokenInvariant, DatabaseError) as error:
            _log.warning("cluster %s is not loaded for what-ifs: %s", cluster_id, str(error).strip().split("\n")[0])


@shared_task(ignore_result=True)
def help_waiting() -> None:
    try:
        remedies.round_of_all()
    except DatabaseError as error:
        _log.warning("no remedies are worked out: %s", str(error).strip().split("\n")[0])


# Code that is compiled for the first time takes its time: that is no standing still.
on_compile(progress.step)


# -- the worker that the session threads live in -----------------------------------------------------------------------


@celeryd_after_setup.connect
def _begin(sender: str, instance: Any, **_: object) -> None:
    """Take clusters as soon as the worker exists; a broker that is down does not keep sessions from running."""
    global _shards, _hostname  # noqa: PLW0603 - one worker a process
    if SESSIONS_QUEUE not in instance.app.amqp.queues.consume_from or _shards is not None:
        return
    _hostname = sender
    _shards = Shards(consume=_consume, release=_give_up, note=partial(worker_progress.leave_note, "sessions"))
    _shards.start()


@worker_ready.connect
def _follow(**_: object) -> None:
    if _shards is not None:
        _shards.follow_leases()


@worker_shutting_down.connect
def _prepare_to_end(**_: object) -> None:
    """Runs inside a signal handler: only says so; the sessions end meanwhile."""
    if _shards is not None:
        _shards.stop(wait_seconds=0)


@worker_shutdown.connect
def _end(**_: object) -> None:
    if _shards is not None:
        _shards.stop()


def _consume(cluster_id: int) -> bool:
    return _control("add_consumer", cluster_id)


def _give_up(cluster_id: int) -> None:
    _control("cancel_consumer", cluster_id)


def _control(command: str, cluster_id: int) -> bool:
    try:
        getattr(app.control, command)(cluster_queue(cluster_id), destination=[_hostname])
    except Exception as error:  # noqa: BLE001 - kombu raises the transport's own errors; the next sweep tries again
        _log.warning("the queue of cluster %s does not follow its lease yet: %s", cluster_id, error)
        return False
    return True
