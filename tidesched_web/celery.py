"""The Celery application. A message only wakes a worker; the work itself is a row in PostgreSQL."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tidesched_web.settings")


def broker_url(redis_url: str) -> str:
    """Return the broker's address as Celery writes it: redis-py's `unix://` is its `redis+socket://`."""
    scheme, separator, rest = redis_url.partition("://")
    if scheme != "unix":
        return redis_url
    path, mark, query = rest.partition("?")
    return f"redis+socket{separator}{path}{mark}{query.replace('db=', 'virtual_host=')}"


def _make() -> Celery:
    from django.conf import settings

    made = Celery("tidesched")
    made.conf.update(
        broker_url=broker_url(settings.REDIS_URL),
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"socket_timeout": 30, "socket_connect_timeout": 5, "global_keyprefix": "celery:"},
        task_ignore_result=True,
        task_default_queue="work",
        task_acks_late=False,
        task_serializer="json",
        accept_content=["json"],
        timezone="UTC",
        enable_utc=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        beat_scheduler="celery.beat:Scheduler",
    )
    made.autodiscover_tasks()
    return made


app = _make()
