"""Messages that wake workers. Losing one only costs time: the work is a row, and a sweep finds it."""

import logging

from tidesched_web.celery import app

_log = logging.getLogger(__name__)

# What carries intent to clusters has processes of its own: no job delays it.
PUSH_QUEUE = "push"
SESSIONS_QUEUE = "sessions"
WORK_QUEUE = "work"
# One process that keeps the latest snapshots loaded; see `changes.impact`.
WHAT_IF_QUEUE = "what-if"
WORKERS = (WORK_QUEUE, WHAT_IF_QUEUE)
PUSH_TASK = "quota.push_pending"
SWEEP_TASK, SWEEP_SECONDS = "changes.sweep", 5.0
RUN_TASK = "tidesched_web.jobs.tasks.run"
WAKE_TASK, WAKE_SECONDS = "tidesched_web.scheduling.tasks.wake", 1.0


def wake_push() -> bool:
    """Let a worker push what waits now."""
    return _send(PUSH_TASK, queue=PUSH_QUEUE, expires=30)


def wake_changes() -> bool:
    """Let a worker look at the changes now. What is due later is found by the sweep: no message waits for its hour."""
    return _send(SWEEP_TASK, queue=PUSH_QUEUE, expires=SWEEP_SECONDS)


def wake_job(job_id: int, worker: str, *, expires: float | None = None) -> bool:
    return _send(RUN_TASK, job_id, queue=worker, expires=expires)


def wake_holder(cluster_id: int) -> bool:
    """Wake the session thread of a cluster."""
    return _send(WAKE_TASK, cluster_id, queue=cluster_queue(cluster_id), expires=WAKE_SECONDS)


def cluster_queue(cluster_id: int) -> str:
    return f"cluster.{cluster_id}"


def _send(task: str, *arguments: int, queue: str, expires: float | None) -> bool:
    """False when the broker does not take the message."""
    try:
        app.send_task(task, arguments, queue=queue, expires=expires, retry=False)
    except Exception as error:  # noqa: BLE001 - kombu raises the transport's own errors
        _log.warning("no worker was woken by %s%r: %s", task, arguments, error)
        return False
    return True
