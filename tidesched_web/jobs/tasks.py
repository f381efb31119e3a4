"""A message only wakes: it may be lost, late or come twice."""

import logging

from celery import shared_task
from django.db import Error as DatabaseError

from tidesched_web.clusters.connection_services import forget_offers
from tidesched_web.jobs import running, services

_log = logging.getLogger(__name__)


@shared_task(ignore_result=True)
def run(job_id: int) -> None:
    running.take_turn(job_id)


@shared_task(ignore_result=True)
def sweep() -> None:
    try:
        services.sweep()
        services.delete_old()
        forget_offers()
    except DatabaseError as error:
        _log.warning("jobs were not swept: %s", str(error).strip().split("\n")[0])
