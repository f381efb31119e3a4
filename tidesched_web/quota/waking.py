"""Sending the message that wakes the push; losing it only costs time, the rows stay."""

import logging

from tidesched_web.celery import app

_log = logging.getLogger(__name__)

PUSH_TASK = "quota.push_pending"
# What carries intent to clusters has processes of its own: no job delays it.
PUSH_QUEUE = "push"


def wake_push() -> bool:
    """Let a worker push what waits now; False when the broker does not take the message."""
    try:
        app.send_task(PUSH_TASK, queue=PUSH_QUEUE, expires=30, retry=False)
    except Exception as error:  # noqa: BLE001 - kombu raises the transport's own errors; the tick finds the rows anyway
        _log.warning("no worker was woken for the push: %s", error)
        return False
    return True
