"""Progress of the Celery processes: what counts as one, who hears of it, and the end of pool processes that hang."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psycopg
import redis
from celery.worker import state
from django.conf import settings
from django.db import connection
from django.utils.module_loading import import_string

from tidesched_web.common import alive, incidents
from tidesched_web.common.progress import (
    HANG_SECONDS,
    WRITE_SECONDS,
    Reporter,
    Standing,
    file_of,
    folder,
    progress,
    read,
    why_replaced,
)

_log = logging.getLogger(__name__)

# How long a server may take to say that it is there, when something of ours stands still.
_ASK_SECONDS = max(1, min(3, int(HANG_SECONDS / 6)))
_main: Reporter | None = None
# Whether this worker takes messages, or beat sends them: before that nothing is said in Redis.
_at_work = threading.Event()
MAIN_LOOP, QUEUE = "main loop", "queue"


def report_main(role: str) -> Reporter:
    """Let the main process of a worker, or beat, report from now on, and say in Redis that it moves once it works."""
    global _main  # noqa: PLW0603 - one for a process
    reporter = _main = Reporter(file_of(role), role, excuse=server_that_is_away)
    reporter.start()
    threading.Thread(target=_tell_for_ever, args=(reporter, role), name="progress-told", daemon=True).start()
    return reporter


def report_forked(role: str) -> None:
    """The same for a process that a worker has forked; its parent looks after it."""
    Reporter(file_of(role, os.getpid()), role, excuse=server_that_is_away).start()


def _tell_for_ever(reporter: Reporter, role: str) -> None:
    """In a thread of its own: Redis may take its time, and the file must not wait for it."""
    _at_work.wait()
    while True:
        with contextlib.suppress(Exception):  # the next round says it
            report = reporter.last
            if report is not None and report.standing is None:
                alive.mark(role)
                alive.tell(report)
            take_notes()
        time.sleep(min(alive.LIFETIME_SECONDS / 3, HANG_SECONDS / 4))


def works() -> None:
    _at_work.set()


def server_that_is_away() -> str:
    """Which server does not answer, so that what waits for it does not hang; empty where both do."""
    try:
        with psycopg.connect(settings.DATABASE_URL, connect_timeout=max(2, _ASK_SECONDS), autocommit=True) as there:
            there.execute("SELECT 1")
    except (psycopg.Error, OSError) as error:
        return f"the database does not answer: {type(error).__name__}"
    try:
        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=_ASK_SECONDS, socket_connect_timeout=_ASK_SECONDS
        )
        with contextlib.closing(client):
            client.ping()
    except (redis.RedisError, OSError) as error:
        return f"Redis does not answer: {type(error).__name__}"
    return ""


# -- the main process --------------------------------------------------------------------------------------------------


def watch_worker(worker: Any, queues: list[str]) -> None:
    """The worker is ready: its loop, the messages of its queues and its pool processes are looked after from now on."""
    works()
    progress.moved(MAIN_LOOP)
    worker.timer.call_repeatedly(WRITE_SECONDS, progress.moved, (MAIN_LOOP,))
    threading.Thread(target=_watch_queues, args=(queues,), name="queues-taken", daemon=True).start()
    place, role = folder(), str(worker.hostname).partition("@")[0]
    if place is not None:
        threading.Thread(
            target=_watch_forked, args=(place, os.environ.get("TIDESCHED_ROLE", role)), name="pool-watch", daemon=True
        ).start()


def _watch_queues(queues: list[str]) -> None:
    """Messages that wait although nothing is under way are taken sooner or later, or the worker does not work."""
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=_ASK_SECONDS, socket_connect_timeout=_ASK_SECONDS)
    taken = -1
    while True:
        try:
            waiting = any(client.llen(f"celery:{queue}") for queue in queues)
        except (redis.RedisError, OSError):
            waiting = False
        now = sum(state.total_count.values())
        if not waiting or now != taken or state.reserved_requests:
            progress.moved(QUEUE)
        taken = now
        time.sleep(WRITE_SECONDS)


def _watch_forked(place: Path, role: str) -> None:
    while True:
        try:
            end_hung_children(place, role)
        except OSError as error:
            _log.warning("the pool processes were not looked after: %s", error)
        time.sleep(WRITE_SECONDS)


def end_hung_children(place: Path, role: str, *, parent: int | None = None) -> list[int]:
    """kill -9 each pool process of this worker that does not move; the pool starts another one. Returns their ids."""
    ended, parent = [], parent or os.getpid()
    for path in place.glob(f"{role}.*.json"):
        report = read(path)
        if report is None:
            continue
        if not _is_child(report.pid, report.parent):
            path.unlink(missing_ok=True)
        elif report.parent == parent and (standing := why_replaced(report, time.monotonic())):
            os.kill(report.pid, signal.SIGKILL)
            path.unlink(missing_ok=True)
            incidents.write(incidents.place() or place, report, standing, ended_by=f"{role} ({parent})")
            _log.error(
                "%s: process %s stood still for %.0f s at %s %s and was replaced",
                role, report.pid, standing.seconds, standing.activity, standing.at,
            )  # fmt: skip
            ended.append(report.pid)
    return ended


def _is_child(pid: int, parent: int) -> bool:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == parent
    except (OSError, ValueError):
        return False


def take_notes() -> int:
    """Make rows of the notes that lie in this process's folder."""
    place = incidents.place()
    if place is None or not incidents.waiting(place):
        return 0
    try:
        return incidents.take(place, import_string(settings.REPLACED_PROCESSES))
    finally:
        connection.close()


def leave_note(activity: str, seconds: float, *, ended_by: str) -> None:
    """Say why this process ends itself, right before it does."""
    place, report = incidents.place(), _main.last if _main is not None else None
    if place is not None and report is not None:
        with contextlib.suppress(OSError):
            incidents.write(
                place, report, Standing(activity, progress.at(activity), round(seconds, 1)), ended_by=ended_by
            )
