"""Celery tasks of the changes. The work is what the rows say; a message only wakes, and may come twice."""

from celery import shared_task
from django.core.cache import cache

from tidesched_web.changes import services
from tidesched_web.changes.services import demo_life
from tidesched_web.waking import PUSH_QUEUE, SWEEP_SECONDS, SWEEP_TASK

PRUNE_SECONDS = 60


@shared_task(name=SWEEP_TASK, queue=PUSH_QUEUE, expires=SWEEP_SECONDS)
def sweep() -> None:
    services.sweep()
    if cache.add("prune_changes", 1, PRUNE_SECONDS):
        services.prune()
        demo_life.end_people()
