"""Sending the message that wakes the sweep; losing it only costs time, the rows stay."""

import logging

from tidesched_web.celery import app
from tidesched_web.quota.waking import PUSH_QUEUE

_log = logging.getLogger(__name__)

SWEEP_TASK = "changes.sweep"
SWEEP_SECONDS = 5.0


def wake() -> bool:
    """Let a worker look at the changes now; False when the broker does not take the message.

    What is due later is found by the sweep that runs every few seconds: no message waits for its hour.
    """
    try:
        app.send_task(SWEEP_TASK, queue=PUSH_QUEUE, expires=SWEEP_SECONDS, retry=False)
    except Exception as error:  # noqa: BLE001 - the transport's own errors; the sweep finds the rows anyway
        _log.warning("no worker was woken for a change: %s", error)
        return False
    return True
