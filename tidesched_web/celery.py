"""The Celery application. A message only wakes a worker; the work itself is a row in PostgreSQL."""

import os
import signal
import warnings
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import (
    beat_init,
    before_task_publish,
    celeryd_init,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_ready,
)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tidesched_web.settings")
# Where processors are scarce, what is tried out gives way to pages, sessions and pushes; jobs over a day, exports and
# retention give way to all of them. Not so far that a job which works is taken for one that hangs (`common.progress`).
NICE = {"what-if": 5, "work": 10}
# A worker of threads as a whole: who opens a page waits for it, and a session of the next period comes anyway.
NICE_WHOLE = {"sessions": 3}

# It warns of a worker under root that takes pickles; these take JSON alone.
warnings.simplefilter("ignore", SecurityWarning)


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
        # No state file; and one entry, since a tick that was missed is made good by the next one.
        beat_scheduler="celery.beat:Scheduler",
        beat_schedule={
            "tick": {
                "task": "tidesched_web.scheduling.tasks.tick",
                "schedule": 1.0,
                # A late tick still does its work; only where they pile up the old ones go.
                "options": {"queue": "sessions", "expires": 10.0},
            }
        },
    )
    if os.environ.get("TIDESCHED_ROLE") != "beat":  # it sends by name, and starts sooner without the tasks' code
        made.autodiscover_tasks()
    return made


app = _make()


@celeryd_init.connect
def _report(sender: Any, **_: object) -> None:
    from tidesched_web.common import worker_progress

    if nice := NICE_WHOLE.get(os.environ.get("TIDESCHED_ROLE", "")):
        os.nice(nice)
    worker_progress.report_main(str(sender).partition("@")[0])


@worker_ready.connect
def _show_worker(sender: Any, **_: object) -> None:
    from tidesched_web.common import worker_progress

    worker_progress.watch_worker(sender, list(sender.app.amqp.queues.consume_from))


@beat_init.connect
def _show_beat(**_: object) -> None:
    """Each message that beat sends is its progress, and the first one its first sign of life."""
    from tidesched_web.common import worker_progress
    from tidesched_web.common.progress import progress

    def sends(**_: object) -> None:
        worker_progress.works()
        progress.touch("beat")

    progress.begin("beat")
    before_task_publish.connect(sends, weak=False)
    worker_progress.report_main("beat")


@task_prerun.connect
def _begin_task(task_id: str = "", task: Any = None, **_: object) -> None:
    from tidesched_web.common.progress import progress

    progress.begin(f"task {task_id}", task.name)


@task_postrun.connect
def _end_task(task_id: str = "", **_: object) -> None:
    from tidesched_web.common.progress import progress

    progress.end(f"task {task_id}")


@worker_process_init.connect
def _end_with_worker(**_: object) -> None:
    """Tie a pool process to its worker: killed, the worker would leave it behind."""
    from tidesched_web.embedded.account import die_with_parent

    die_with_parent(signal.SIGKILL)
    if nice := NICE.get(os.environ.get("TIDESCHED_ROLE", "")):
        os.nice(nice)
    from tidesched_web.common import worker_progress

    worker_progress.report_forked(os.environ.get("TIDESCHED_ROLE", "work"))
