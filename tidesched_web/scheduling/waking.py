"""Sending the message that wakes the holder of a cluster; losing it only costs time, the request row stays."""

import logging

from tidesched_web.celery import app

_log = logging.getLogger(__name__)

SESSIONS_QUEUE = "sessions"
WAKE_TASK = "tidesched_web.scheduling.tasks.wake"
WAKE_SECONDS = 1.0


def cluster_queue(cluster_id: int) -> str:
    return f"cluster.{cluster_id}"


def wake_holder(cluster_id: int) -> bool:
    """Wake the session thread of a cluster; False when the broker does not take the message."""
    try:
        app.send_task(WAKE_TASK, (cluster_id,), queue=cluster_queue(cluster_id), expires=WAKE_SECONDS, retry=False)
    except Exception as error:  # noqa: BLE001 - kombu raises the transport's own errors; the sweep finds the row anyway
        _log.warning("cluster %s was not woken: %s", cluster_id, error)
        return False
    return True
