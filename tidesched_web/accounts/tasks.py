from celery import shared_task
from django.core.cache import cache

from tidesched_web.accounts.services import sessions, sign_ins

CLEAR_SECONDS = 3600


@shared_task(name="accounts.record_rest", queue="work", expires=60)
def record_rest() -> None:
    sign_ins.record_rest()
    if cache.add("clear_sessions", 1, CLEAR_SECONDS):
        sessions.clear_expired()
