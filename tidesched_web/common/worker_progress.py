import contextlib
import os
import threading
import time
from typing import Any

import psycopg
import redis
from celery.worker import state
from django.conf import settings

from tidesched_web.common import alive, incidents
from tidesched_web.common.progress import HANG_SECONDS, WRITE_SECONDS, Reporter, folder, progress

# How long a server may take to say that it is there, when something of ours stands still.
_ASK_SECONDS = max(1, min(3, int(HANG_SECONDS / 6)))
MAIN_LOOP, QUEUE = "main loop", "queue"
# Whether this worker takes messages, or beat sends them: before that nothing is said in Redis.
_at_work = threading.Event()


def report_main(role: str) -> None:
    """Let the main process of a worker, or beat, report from now on, and say in Redis that it moves once it works."""
    reporter = _reporter(role, f"{role}.json")
    threading.Thread(target=_tell_for_ever, args=(reporter, role), name="progress-told", daemon=True).start()


def report_forked(role: str) -> None:
    _reporter(role, f"{role}.{os.getpid()}.json")


def _reporter(role: str, file: str) -> Reporter:
    place = folder()
    reporter = Reporter(place / file if place else None, role, excuse=server_that_is_away)
    reporter.start()
    return reporter


def _tell_for_ever(reporter: Reporter, role: str) -> None:
    """In a thread of its own: Redis may take its time, and the file must not wait for it."""
    _at_work.wait()
    while True:
        if (report := reporter.last) is not None and report.standing is None:
            alive.mark(role)
            alive.tell(report)
            alive.tell_watches()
        time.sleep(min(alive.LIFETIME_SECONDS / 3, HANG_SECONDS / 4))


def works() -> None:
    _at_work.set()


def server_that_is_away() -> str:
    try:
        with psycopg.connect(settings.DATABASE_URL, connect_timeout=max(2, _ASK_SECONDS), autocommit=True) as there:
            there.execute("SELECT 1")
    except (psycopg.Error, OSError):
        return "the database"
    try:
        with contextlib.closing(_client()) as client:
            client.ping()
    except (redis.RedisError, OSError):
        return "Redis"
    return ""


def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=_ASK_SECONDS, socket_connect_timeout=_ASK_SECONDS)


def watch_worker(worker: Any, queues: list[str]) -> None:
    works()
    progress.begin(MAIN_LOOP)
    worker.timer.call_repeatedly(WRITE_SECONDS, progress.touch, (MAIN_LOOP,))
    threading.Thread(target=_watch_queues, args=(queues,), name="queues-taken", daemon=True).start()


def _watch_queues(queues: list[str]) -> None:
    client, taken = _client(), -1
    progress.begin(QUEUE)
    while True:
        try:
            waiting = any(client.llen(f"celery:{queue}") for queue in queues)
        except (redis.RedisError, OSError):
            waiting = False
        before, taken = taken, sum(state.total_count.values())
        if not waiting or before != taken or state.reserved_requests:
            progress.touch(QUEUE)
        time.sleep(WRITE_SECONDS)


def leave_note(role: str, activity: str) -> None:
    report = Reporter(None, role).write()
    incidents.write(settings.REDIS_URL, incidents.note_of(report, progress.of(activity), ended_by="its own watchdog"))
