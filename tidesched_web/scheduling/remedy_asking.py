"""What is not taken is asked for again by the next refresh of the gang's page. Nothing here loads the engine."""

import logging

from django.core.cache import cache

from tidesched_web.celery import app
from tidesched_web.waking import WHAT_IF_QUEUE

_log = logging.getLogger(__name__)

MOST_ASKED = 8
_KEPT_SECONDS = 20
_TASK = "tidesched_web.scheduling.tasks.help_waiting"


def ask(cluster_id: int, gang_id: int) -> bool:
    asked = cache.get(_key(cluster_id)) or []
    if gang_id in asked or len(asked) >= MOST_ASKED:
        return False
    cache.set(_key(cluster_id), [*asked, gang_id], _KEPT_SECONDS)
    try:
        app.send_task(_TASK, queue=WHAT_IF_QUEUE, expires=_KEPT_SECONDS, retry=False)
    except Exception as error:  # noqa: BLE001 - kombu raises the transport's own errors; the next round looks anyway
        _log.warning("the what-if worker was not woken: %s", error)
    return True


def asked_for(cluster_id: int) -> list[int]:
    return list(cache.get(_key(cluster_id)) or [])


def take(cluster_id: int) -> list[int]:
    asked = asked_for(cluster_id)
    if asked:
        cache.delete(_key(cluster_id))
    return asked


def _key(cluster_id: int) -> str:
    return f"remedies-asked:{cluster_id}"
