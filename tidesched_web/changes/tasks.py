"""Celery tasks of the changes. The work is what the rows say; a message only wakes, and may come twice."""

from __future__ import annotations

from celery import shared_task

from tidesched_web.changes import services
from tidesched_web.changes.waking import SWEEP_SECONDS, SWEEP_TASK


@shared_task(name=SWEEP_TASK, queue="work", expires=SWEEP_SECONDS)
def sweep() -> None:
    """Apply what is due and carry what is written."""
    services.sweep()
