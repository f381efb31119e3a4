"""The web process's outermost layer: probes at once, everything else within limits and in turn.

A request is read whole, takes a turn, and runs in Django on the thread of its turn. The turn ends when the answer is
made, not when a slow client has read it: the database connection is given back then. An event stream keeps neither
turn, thread nor connection. Only a download that reads the database while it is sent keeps its turn. A request that has
to wait for a cluster or a worker gives its turn back and takes another one afterwards (`common/off_turn.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.db import connections

from tidesched_web.api import problem_json
from tidesched_web.common import off_turn, request_context
from tidesched_web.common.database_patience import forget_commits, watch
from tidesched_web.common.errors import DomainError
from tidesched_web.front import ACCOUNT, KIND, Receive, Scope, Send, answers, bodies, failures, health
from tidesched_web.front.dear_places import Places
from tidesched_web.front.persons import Person, Persons, without_quoted_cookies
from tidesched_web.front.turns import Full, TooManyOfOne, Turn, Turns
from tidesched_web.front.waits import Waits
from tidesched_web.front.warm import Warmth

BUSY_SECONDS = 5


class Front:
    def __init__(self, django: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._django = django
        self._persons = Persons()
        self._bodies = bodies.Held()
        self._places = Places()
        self._warmth = Warmth()
        self._probes = health.Probes()
        self._turns: Turns | None = None
        self._downloads: dict[str, int] = {}
        self._waits = Waits(
            at_once=settings.WEB_WAITS,
            by_person=settings.WEB_WAITS_OF_ONE,
            by_subject=settings.WEB_WAITS_OF_CLUSTER,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000, "reason": None})
        elif scope["type"] == "lifespan":
            await self._probes.live(receive, send)
        elif scope["type"] == "http":
            if scope["path"] in ("/healthz", "/readyz"):
                await self._probes.answer(scope, send)
            else:
                await self._request(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = without_quoted_cookies(request_context.without_foreign_claims(scope))
        if limit := _too_large_a_head(scope):
            text = f"{limit[0]} of a request may have {_size(limit[1])}."
            await answers.refuse(send, scope, DomainError("head_too_large", text, {"limit": limit[1]}))
            return
        person = self._persons.of(scope)
        with self._bodies.of(person) as held:
            try:
                body = await bodies.read(scope, receive, held)
                scope["headers"] = bodies.with_length(scope["headers"], body)
                large = len(body) > settings.WEB_DEAR_BODY_BYTES
                desk = off_turn.Desk(dear=large or self._places.are_dear(person.name, scope["path"]))
                while wait := await self._run(scope, bodies.replayed(body, receive), send, person, desk):
                    if isinstance(wait, off_turn.Wait):
                        desk.answers[wait.key] = await self._waits.answer(wait, person.name)
                    else:
                        desk.dear = True
                        self._places.learn(person.name, scope["path"])
            except _REFUSALS as reason:
                await _refuse(send, scope, reason)
            except bodies.Gone:
                return

    async def _run(
        self, scope: Scope, receive: Receive, send: Send, person: Person, desk: off_turn.Desk
    ) -> off_turn.Wait | off_turn.DearTurn | None:
        """Run the request in a turn; what it has to wait for before it can be answered, if anything."""
        _need_database(scope)
        turn = await self._all_turns().take(person, dear=desk.dear)
        try:
            with off_turn.at(desk):
                await self._answer(scope, receive, send, turn)
        except (off_turn.Wait, off_turn.DearTurn) as wait:
            return wait.with_traceback(None)
        finally:
            self._warmth.answered(busy=self._all_turns().busy)
            if ACCOUNT in scope:
                self._persons.learn(person.digest, scope[ACCOUNT])
        return None

    async def _answer(self, scope: Scope, receive: Receive, send: Send, turn: Turn) -> None:
        answer = _Answer(self, scope, send, self._all_turns(), turn)
        try:
            _need_database(scope)  # it may have waited for its turn behind some that found out
            async with ThreadSensitiveContext(executor=turn.executor):
                await self._django(scope, receive, answer.send)
        except _DatabaseSilent as reason:
            answer.end()
            await _refuse(send, scope, reason)
        finally:
            answer.end()

    def _all_turns(self) -> Turns:
        if self._turns is None:
            watch.look()  # its connection is made while all is well
            self._turns = Turns(
                at_once=settings.WEB_REQUESTS_AT_ONCE,
                by_person=settings.WEB_REQUESTS_OF_ONE,
                dear=settings.WEB_DEAR_REQUESTS,
                waiting_by_person=settings.WEB_WAITING_OF_ONE,
                waiting=settings.WEB_WAITING,
                patience=settings.WEB_WAITING_SECONDS,
            )
        return self._turns

    def begin_download(self, person: str) -> bool:
        """Count a download in; False where this person, or all together, have as many as there may be."""
        mine = self._downloads.get(person, 0)
        if mine >= settings.WEB_DOWNLOADS_OF_ONE or sum(self._downloads.values()) >= settings.WEB_DOWNLOADS:
            return False
        self._downloads[person] = mine + 1
        return True

    def end_download(self, person: str) -> None:
        self._downloads[person] -= 1
        if not self._downloads[person]:
            del self._downloads[person]


# Their parameters are read in time that grows with the square of their length.
_WITH_PARAMETERS = {b"content-type": 256, b"content-disposition": 256, b"accept": 1024}


def _too_large_a_head(scope: Scope) -> tuple[str, int] | None:
    """What of a request's head is over its limit: names and values take time to read, cookies most of all."""
    for name, value in scope["headers"]:
        if len(value) > _WITH_PARAMETERS.get(name, len(value)):
            return f"The header {name.decode()}", _WITH_PARAMETERS[name]
    cookies = sum(len(value) for name, value in scope["headers"] if name == b"cookie")
    if cookies > settings.WEB_COOKIE_BYTES:
        return "The cookies", settings.WEB_COOKIE_BYTES
    size = len(scope["raw_path"] or b"") + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in scope["headers"])
    return ("The head", settings.WEB_HEAD_BYTES) if size > settings.WEB_HEAD_BYTES else None


def _size(limit: int) -> str:
    """A limit as people write it, and its bytes."""
    mebibytes, rest = divmod(limit, 2**20)
    return f"{limit} bytes" if rest or not mebibytes else f"{mebibytes} MiB ({limit} bytes)"


class _DatabaseSilent(Exception):
    """The database does not answer at the moment."""


def _need_database(scope: Scope) -> None:
    """Static files alone are served without one."""
    if watch.silent and not scope["path"].startswith(settings.STATIC_URL):
        raise _DatabaseSilent


def _end_of_turn() -> None:
    forget_commits()
    connections.close_all()


_REFUSALS = (bodies.TooLarge, bodies.TooSlow, bodies.TooMany, TooManyOfOne, Full, _DatabaseSilent)


async def _refuse(send: Send, scope: Scope, reason: Exception) -> None:
    again = {"Retry-After": str(BUSY_SECONDS)}
    if isinstance(reason, _DatabaseSilent):
        page = failures.away_page(request_context.context_of_scope(scope).request_id)
        await answers.refuse(send, scope, problem_json.database_silent(), again, page=page)
        return
    if isinstance(reason, bodies.TooLarge):
        text = f"The body of a request may have {_size(reason.limit)} here; this one has more."
        error, again = DomainError("body_too_large", text, {"limit": reason.limit}), {"Connection": "close"}
    elif isinstance(reason, bodies.TooSlow):
        seconds = settings.WEB_BODY_SECONDS
        text = f"The body of a request has to come within {seconds} seconds."
        error, again = DomainError("body_too_slow", text, {"limit": seconds}), {"Connection": "close"}
    elif isinstance(reason, TooManyOfOne):
        text = f"{reason.limit} of your requests wait already, the most that may; wait as long as Retry-After says."
        error = DomainError("throttled", text, {"limit": reason.limit})
    elif isinstance(reason, bodies.TooMany):
        text = f"TideSched is busy: bodies of {_size(reason.limit)} are held at a time, and this one is beyond them."
        error = DomainError("unavailable", text, {"limit": reason.limit})
    elif isinstance(reason, Full):
        said = (
            f"this request waited {reason.limit:g} seconds, the longest that one may"
            if reason.waited
            else f"{reason.limit:g} requests wait already, the most that may"
        )
        error = DomainError("unavailable", f"TideSched is busy: {said}.", {"limit": reason.limit})
    else:
        raise reason
    await answers.refuse(send, scope, error, again)


class _Answer:
    """Sends one answer, and ends its turn as early as may be."""

    def __init__(self, front: Front, scope: Scope, send: Send, turns: Turns, turn: Turn) -> None:
        self._front, self._scope, self._send, self._turns, self._turn = front, scope, send, turns, turn
        self._download = False

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            if self._scope.get(KIND) != "download":
                self._turns.finish(self._turn, _end_of_turn)
            elif self._front.begin_download(self._turn.person.name):
                self._download = True
            else:
                limit = settings.WEB_DOWNLOADS_OF_ONE
                text = (
                    f"At most {limit} downloads of one person and {settings.WEB_DOWNLOADS} in all run at a time; wait "
                    "until one has ended."
                )
                refusal = DomainError("throttled", text, {"limit": limit})
                await answers.refuse(self._send, self._scope, refusal, {"Retry-After": str(BUSY_SECONDS)})
                raise asyncio.CancelledError  # to Django it is a client that left
        if not self._download:
            await self._send(message)
            return
        try:
            async with asyncio.timeout(settings.WEB_SLOW_READER_SECONDS):
                await self._send(message)
        except TimeoutError:
            raise asyncio.CancelledError from None

    def end(self) -> None:
        """The request is over, whichever way."""
        if self._download:
            self._download = False
            self._front.end_download(self._turn.person.name)
        self._turns.finish(self._turn, _end_of_turn)
