"""Sending the message that wakes a worker for a job; losing it only costs time, the row stays."""

import logging

from tidesched_web.celery import app

_log = logging.getLogger(__name__)

WORK_QUEUE = "work"
# One process that keeps the latest snapshots loaded; see `changes.impact`.
WHAT_IF_QUEUE = "what-if"
WORKERS = (WORK_QUEUE, WHAT_IF_QUEUE)
RUN_TASK = "tidesched_web.jobs.tasks.run"


def wake(job_id: int, worker: str, *, expires: float | None = None) -> bool:
    """Wake a process of ``worker``; False when the broker does not take the message."""
    try:
        app.send_task(RUN_TASK, (job_id,), queue=worker, expires=expires, retry=False)
    except Exception as error:  # noqa: BLE001 - kombu raises the transport's own errors; the sweep finds the row anyway
        _log.warning("no worker was woken for job %s: %s", job_id, error)
        return False
    return True
