"""How long the web process waits for a database that does not answer: a few seconds, and then a clear refusal.

The server's own limits end a statement that takes long, but not the wait for a server that does not move (SIGSTOP, a
frozen disk, a broken network). So a statement that has waited for a second lets the database be asked on a connection
of its own. While that one answers, a statement may take as long as it needs (a lock, a large export). Once it does not,
every waiting statement is given up and its connection closed, and the front refuses new requests until there is an
answer again. A server that answers a new connection with a refusal (all places are taken, this account may not) does
answer: the connections that the pool has go on.

A transaction that is given up ends without COMMIT: the server rolls it back when it goes on. What is not known is
whether a COMMIT that was sent took effect, so commits are counted for each request.
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

from tidesched_web.common.database_refusal import NOBODY, refusal_code

ASK_AFTER_SECONDS, ANSWER_SECONDS, EVERY_SECONDS = 1.0, 3.0, 0.5
MOST_LATER = 1000
_log = logging.getLogger(__name__)
_of_thread = threading.local()


class DatabaseSilent(psycopg.OperationalError):
    """The database has not answered in time; the connection that waited for it is closed."""


class Watch:
    """Finds whether the database answers, on a thread and a connection of its own, when there is a reason to ask."""

    def __init__(self) -> None:
        self.silent = False
        self._lock = threading.Lock()
        self._asking = False
        self._answered = 0.0
        self._connection: psycopg.Connection[Any] | None = None
        self._later: list[Callable[[], object]] = []

    def later(self, act: Callable[[], object]) -> None:
        """Do something that could not be written, once the database answers; ``act`` may come too late to matter."""
        with self._lock:
            if len(self._later) < MOST_LATER:
                self._later.append(act)

    def look(self) -> None:
        """Ask, unless that is under way or has just been done; while there is no answer it is asked again."""
        with self._lock:
            if self._asking or time.monotonic() - self._answered < EVERY_SECONDS:
                return
            self._asking = True
        threading.Thread(target=self._ask_until_answered, name="database-watch", daemon=True).start()

    def _ask_until_answered(self) -> None:
        was_silent = False
        try:
            while (error := self._ask()) is not None:
                if not self.silent:
                    _log.warning("the database does not answer, requests are refused until it does: %s", error)
                self.silent = True
                time.sleep(EVERY_SECONDS)
            was_silent = self.silent
        finally:
            with self._lock:
                self._answered, self._asking, self.silent = time.monotonic(), False, False
        if was_silent:
            # Only now: it may fall silent again meanwhile, and then it is asked again.
            _log.warning("the database answers again")
            _renew_pool()
            self._catch_up()

    def _catch_up(self) -> None:
        from django.db import DatabaseError, connections  # as below

        with self._lock:
            acts, self._later = self._later, []
        try:
            for act in acts:
                act()
        except DatabaseError:
            _log.exception("what was put off while the database did not answer was not done")
        finally:
            connections.close_all()

    def close(self) -> None:
        """Give the connection up; the next look makes another."""
        kept, self._connection = self._connection, None
        if kept is not None:
            kept.close()

    def _ask(self) -> psycopg.Error | None:
        try:
            if self._connection is None:
                self._connection = BoundedConnection.to_default()
            self._connection.execute("SELECT 1")
        except psycopg.Error as error:
            kept, self._connection = self._connection, None
            if kept is None:
                return None if _answers(error) else error
            # It may have been cut by a restart that is over: then a new one is answered.
            kept.close()
            return error if isinstance(error, DatabaseSilent) else self._ask()
        return None


def _answers(error: psycopg.Error) -> bool:
    """Whether the server itself refuses this connection: libpq puts a severity and two blanks before its words.

    One that begins or ends refuses everybody, which its code says in every language.
    """
    asked = error.pgconn
    if asked is None or ":  " not in str(error):
        return False
    try:
        return refusal_code(asked.host.decode(), asked.port.decode(), ANSWER_SECONDS) != NOBODY
    except (OSError, ValueError, struct.error):
        return False


watch = Watch()


class BoundedConnection(psycopg.Connection[Any]):
    """One whose statements have a few seconds."""

    @classmethod
    def to_default(cls) -> psycopg.Connection[Any]:
        """One to the database of the settings, outside of Django's."""
        return cls.connect(**_parameters(), autocommit=True)

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        return _wait(self, super().wait, gen, lambda waited: waited > ANSWER_SECONDS, args, kwargs)


class PatientConnection(psycopg.Connection[Any]):
    """One of the web process's pool: it waits as long as the database answers others."""

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return _wait(self, super().wait, gen, _given_up, args, kwargs)
        except psycopg.OperationalError:
            if self.closed:
                watch.look()
            raise

    def commit(self) -> None:
        _of_thread.commits = commits_sent() + 1
        super().commit()


def _given_up(waited: float) -> bool:
    if waited > ASK_AFTER_SECONDS:
        watch.look()
    return watch.silent


def _wait(
    connection: psycopg.Connection[Any],
    wait: Callable[..., Any],
    gen: Any,
    given_up: Callable[[float], bool],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    try:
        return wait(_bounded(gen, given_up), *args, **kwargs)
    except DatabaseSilent:
        connection.close()
        raise


def _bounded(gen: Any, given_up: Callable[[float], bool]) -> Any:
    """A generator of psycopg's, which is resumed with 0 where nothing came for a moment."""
    began = time.monotonic()
    try:
        wanted = next(gen)
        while True:
            came = yield wanted
            if not came and given_up(time.monotonic() - began):
                raise DatabaseSilent("the database does not answer")
            wanted = gen.send(came)
    except StopIteration as end:
        return end.value


def _renew_pool() -> None:
    """Connections from before may be cut; the pool would find that out one by one, with a pause after each."""
    from django.db import connections  # as below

    pool = connections["default"].pool  # type: ignore[attr-defined]  # of PostgreSQL's wrapper
    if pool is not None and not pool.closed:
        pool.drain()


def _parameters() -> dict[str, Any]:
    from django.db import connections  # the settings name a class of this module

    asked: dict[str, Any] = connections["default"].get_connection_params()
    asked.pop("cursor_factory", None)
    return asked | {"connect_timeout": int(ANSWER_SECONDS)}


def commits_sent() -> int:
    """How many transactions this thread has asked the database to commit since its request began."""
    return getattr(_of_thread, "commits", 0)


def forget_commits() -> None:
    """The request of this thread is over."""
    _of_thread.commits = 0
