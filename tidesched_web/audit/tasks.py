"""Each task looks at the rows and does what is due; it may run twice, or late."""

import logging

from celery import shared_task

from tidesched_web.audit import check_services, segment_services, signing_services
from tidesched_web.common.errors import DomainError

_log = logging.getLogger(__name__)


@shared_task(name="audit.check_chains", queue="work", expires=300)
def check_chains() -> None:
    for report in check_services.check_due():
        if not report.intact:
            _log.critical("audit chain %s is broken at entry %s: %s", report.chain, report.broken_seq, report.problem)


@shared_task(name="audit.keep", queue="work", expires=60)
def keep() -> None:
    try:
        signing_services.sign_heads()
    except DomainError as error:  # the key that encrypts the signing key is not there
        _log.error("audit heads were not signed: %s", error.message)
    segment_services.purge()
    check_chains()
