"""A thread looks each second; both addresses answer from the event loop. A check that takes long has failed."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from django.conf import settings
from django.core.cache import cache
from django.db import connections
from redis import RedisError

from tidesched_web.api.stream_rights import open_now
from tidesched_web.common import alive, problems
from tidesched_web.front import Receive, Scope, Send, answers
from tidesched_web.metrics import traffic

PATHS = ("/healthz", "/readyz")
EVERY_SECONDS, FAILED_ROUNDS, ANSWER_SECONDS = 1.0, 3, 5.0
_DATABASE, _UNSEEN = "database", "not looked at yet"
_log = logging.getLogger(__name__)


class Readiness:
    def __init__(self, checks: Mapping[str, Callable[[], str]]) -> None:
        self._checks = checks
        # Nothing is ready that has never succeeded.
        self._failures = dict.fromkeys(checks, FAILED_ROUNDS)
        self._reasons = dict.fromkeys(checks, _UNSEEN)
        # What is asked at the moment, and since when.
        self._asked = ("", 0.0)

    def look(self) -> None:
        for name, check in self._checks.items():
            self._asked = (name, time.monotonic())
            try:
                reason = check()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next round is made
                _log.exception("the check of %s failed", name)
                reason = f"the check failed: {type(error).__name__}"
            self._reasons[name] = reason
            self._failures[name] = self._failures[name] + 1 if reason else 0
        self._asked = ("", 0.0)

    @property
    def missing(self) -> dict[str, str]:
        """The checks that have failed for some rounds in a row, or have not succeeded yet, each with its reason."""
        missing = {name: self._reasons[name] for name, count in self._failures.items() if count >= FAILED_ROUNDS}
        name, since = self._asked
        if name and time.monotonic() - since > ANSWER_SECONDS:
            missing[name] = f"no answer for {ANSWER_SECONDS:g} seconds"
        return missing

    def is_away(self, name: str) -> bool:
        return self.missing.get(name, _UNSEEN) != _UNSEEN


class Probes:
    def __init__(self) -> None:
        self._readiness = Readiness(checks())
        self._ended = threading.Event()

    @property
    def database_is_away(self) -> bool:
        return self._readiness.is_away(_DATABASE)

    async def live(self, receive: Receive, send: Send) -> None:
        await receive()
        threading.Thread(target=self._look_again, name="readiness", daemon=True).start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self._ended.set()
        await send({"type": "lifespan.shutdown.complete"})

    def _look_again(self) -> None:
        self._readiness.look()
        while not self._ended.wait(EVERY_SECONDS):
            self._readiness.look()
            traffic.flush(open_now())

    async def answer(self, scope: Scope, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await answers.send_json(send, scope, 405, {"status": "only GET and HEAD"}, {"Allow": "GET, HEAD"})
        elif scope["path"] == "/healthz":
            await answers.send_json(send, scope, 200, {"status": "alive", "version": settings.VERSION})
        elif missing := self._readiness.missing | problems.current():
            body = {"status": "not ready", "missing": missing}
            await answers.send_json(send, scope, 503, body, {"Retry-After": "2"})
        else:
            await answers.send_json(send, scope, 200, {"status": "ready", "missing": {}})


def checks() -> dict[str, Callable[[], str]]:
    database = _Database()
    demo = {"demo": database.demo_session} if settings.DEMO else {}
    return {_DATABASE: database.answers, "redis": _redis, "processes": _processes} | demo


def connect() -> psycopg.Connection[Any]:
    parameters: dict[str, Any] = connections["default"].get_connection_params()
    parameters.pop("cursor_factory", None)
    limits = {"connect_timeout": int(ANSWER_SECONDS), "options": f"-c statement_timeout={int(ANSWER_SECONDS)}s"}
    return psycopg.connect(**parameters | limits, autocommit=True)


class _Database:
    def __init__(self) -> None:
        self._connection: psycopg.Connection[Any] | None = None

    def _ask(self, query: str) -> Any:
        if self._connection is None or self._connection.closed:
            self._connection = connect()
        try:
            row = self._connection.execute(query.encode()).fetchone()
        except psycopg.Error:
            self._connection.close()
            raise
        return row[0] if row else None

    def answers(self) -> str:
        try:
            self._ask("SELECT 1")
        except psycopg.Error as error:
            return f"the database does not answer: {type(error).__name__}"
        return ""

    def demo_session(self) -> str:
        try:
            exists = self._ask("SELECT EXISTS (SELECT 1 FROM scheduling_session)")
        except psycopg.Error:
            return "unknown while the database does not answer"
        return "" if exists else "the demo cluster has not had a session yet"


def _redis() -> str:
    try:
        cache.get("readyz")
    except (RedisError, OSError) as error:
        return f"Redis does not answer: {type(error).__name__} at {problems.address(settings.REDIS_URL)}"
    return ""


def _processes() -> str:
    try:
        silent = alive.silent_roles()
    except (RedisError, OSError):
        return "unknown while Redis does not answer"
    endings = alive.endings()
    # Anybody may ask: the last error stands on Status and in the terminal.
    named = [f"{role} (ended at each of {endings[role].times} starts)" if role in endings else role for role in silent]
    return f"no sign of life from: {', '.join(named)}" if silent else ""
