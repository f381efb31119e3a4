"""`/healthz` and `/readyz`: is the process alive, and can the installation do its work.

Neither waits for a turn, a thread of pages or a pooled connection. The checks of `/readyz` run on a thread and a
database connection of their own, again and again while there are questions: so there is an answer when the next
question comes. One that is not there in time counts as "not ready".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from django.conf import settings
from django.core.cache import cache
from django.db import connections
from redis import RedisError

from tidesched_web.common import alive
from tidesched_web.front import Scope, Send, answers

PATIENCE_SECONDS = 0.15
# How old a finding may be, how often it is made anew, and for how long after the last question.
USABLE_SECONDS, EVERY_SECONDS, ASKED_SECONDS = 3.0, 1.0, 60.0
Missing = dict[str, str]


class Probes:
    """Answers the two addresses."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="readiness")
        self._checks = Checks()
        self._running: asyncio.Future[Missing] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._asked = 0.0
        self._found: tuple[float, Missing] = (0.0, {})

    async def answer(self, scope: Scope, send: Send) -> None:
        """Answer one request."""
        bare = scope["method"] == "HEAD"
        if scope["method"] not in ("GET", "HEAD"):
            await answers.send_json(send, 405, {"status": "only GET and HEAD"}, {"Allow": "GET, HEAD"})
        elif scope["path"] == "/healthz":
            await answers.send_json(send, 200, {"status": "alive", "version": settings.VERSION}, bare=bare)
        else:
            missing = await self._missing()
            body = {"status": "not ready" if missing else "ready", "missing": missing}
            await answers.send_json(
                send, 503 if missing else 200, body, {"Retry-After": "2"} if missing else {}, bare=bare
            )

    async def _missing(self) -> Missing:
        self._asked = time.monotonic()
        at, found = self._found
        if at and self._asked - at < USABLE_SECONDS:
            self._look()
            return found
        running = self._check()
        self._look()
        done, _late = await asyncio.wait({running}, timeout=PATIENCE_SECONDS)
        if done:
            return running.result()
        return {"checks": f"database and Redis have not answered within {int(PATIENCE_SECONDS * 1000)} ms"}

    def _look(self) -> None:
        """Let findings be made anew as long as there are questions."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_again(), name="readiness")

    async def _look_again(self) -> None:
        while time.monotonic() - self._asked < ASKED_SECONDS:
            await asyncio.wait({self._check()})
            await asyncio.sleep(EVERY_SECONDS)

    def _check(self) -> asyncio.Future[Missing]:
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().run_in_executor(self._executor, self._checks.missing)
            self._running.add_done_callback(self._keep)
        return self._running

    def _keep(self, ended: asyncio.Future[Missing]) -> None:
        if not ended.cancelled() and ended.exception() is None:
            self._found = (time.monotonic(), ended.result())


class Checks:
    """What has to answer; on a connection that no page uses."""

    def __init__(self) -> None:
        self._connection: psycopg.Connection[Any] | None = None

    def missing(self) -> Missing:
        """What does not answer, each with the reason; empty when all is well."""
        checks: dict[str, Callable[[], str]] = {
            "database": self._database,
            "redis": _redis,
            "processes": _processes,
            "demo": self._demo_session,
        }
        return {name: reason for name, check in checks.items() if (reason := check())}

    def _ask(self, query: str) -> Any:
        if self._connection is None or self._connection.closed:
            asked = connections["default"].get_connection_params()
            asked.pop("cursor_factory", None)
            self._connection = psycopg.connect(**(asked | {"autocommit": True, "connect_timeout": 3}))
        try:
            row = self._connection.execute(query.encode()).fetchone()
        except psycopg.Error:
            self._connection.close()
            raise
        return row[0] if row else None

    def _database(self) -> str:
        try:
            self._ask("SELECT 1")
        except psycopg.Error as error:
            return f"the database does not answer: {type(error).__name__}"
        return ""

    def _demo_session(self) -> str:
        if not settings.DEMO:
            return ""
        try:
            found = self._ask("SELECT EXISTS (SELECT 1 FROM scheduling_session)")
        except psycopg.Error:
            return "unknown while the database does not answer"
        return "" if found else "the demo cluster has not had a session yet"


def _redis() -> str:
    try:
        cache.get("readyz")
    except (RedisError, OSError) as error:
        return f"Redis does not answer: {type(error).__name__}"
    return ""


def _processes() -> str:
    try:
        silent = alive.silent_roles()
    except (RedisError, OSError):
        return "unknown while Redis does not answer"
    return f"no sign of life from: {', '.join(silent)}" if silent else ""
