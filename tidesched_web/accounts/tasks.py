from celery import shared_task
from django.conf import settings
from django.core.cache import cache

from tidesched_web.accounts.services import identities, sessions, sign_ins

CLEAR_SECONDS = 3600
# How often it is looked whose check is due; a check that falls due in between comes that much later.
CHECK_EVERY_SECONDS = max(1, settings.SIGN_IN_CHECK_SECONDS // 10)


@shared_task(name="accounts.record_rest", queue="work", expires=60)
def record_rest() -> None:
    sign_ins.record_rest()
    if cache.add("clear_sessions", 1, CLEAR_SECONDS):
        sessions.clear_expired()


@shared_task(name="accounts.check_identities", queue="work", expires=CHECK_EVERY_SECONDS)
def check_identities() -> None:
    identities.check_due()
