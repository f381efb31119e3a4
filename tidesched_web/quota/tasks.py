import logging

from celery import shared_task

from tidesched_web.quota.services import push
from tidesched_web.waking import PUSH_QUEUE

log = logging.getLogger(__name__)


@shared_task(name="quota.push_pending", queue=PUSH_QUEUE, expires=30)
def push_pending() -> None:
    for slug, report in push.push_pending().items():
        if report.unreachable:
            log.warning("%s cannot be reached for the push of its queues: %s", slug, report.unreachable)
        for what, why in report.refused.items():
            log.warning("%s refused %s: %s", slug, what, why)
