"""The web process's outermost layer: probes at once, everything else within limits and in turn.

A request is read whole, takes a turn, and runs in Django on the thread of its turn. The turn ends when the answer is
made, not when a slow client has read it: the database connection is given back then. An event stream keeps neither
turn, thread nor connection. Only a download that reads the database while it is sent keeps its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.db import connections

from tidesched_web.common import request_context
from tidesched_web.common.errors import DomainError
from tidesched_web.front import ACCOUNT, KIND, Receive, Scope, Send, answers, bodies, health
from tidesched_web.front.persons import Persons
from tidesched_web.front.turns import Full, TooManyOfOne, Turn, Turns

BUSY_SECONDS = 5


class Front:
    """The ASGI application."""

    def __init__(self, django: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._django = django
        self._persons = Persons()
        self._probes = health.Probes()
        self._turns: Turns | None = None
        self._downloads: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000, "reason": None})
        elif scope["type"] == "http":
            if scope["path"] in ("/healthz", "/readyz"):
                await self._probes.answer(scope, send)
            else:
                await self._request(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = request_context.without_foreign_claims(scope)
        person, digest = self._persons.of(scope)
        turns = self._all_turns()
        try:
            body = await bodies.read(scope, receive)
            turn = await turns.take(person)
        except (bodies.TooLarge, bodies.TooSlow, TooManyOfOne, Full) as reason:
            await _refuse(send, scope, reason)
            return
        except bodies.Gone:
            return
        answer = _Answer(self, scope, send, turns, turn)
        try:
            async with ThreadSensitiveContext(executor=turn.executor):
                await self._django(scope, bodies.replayed(body, receive), answer.send)
        finally:
            answer.end()
            if ACCOUNT in scope:
                self._persons.learn(digest, scope[ACCOUNT])

    def _all_turns(self) -> Turns:
        if self._turns is None:
            self._turns = Turns(
                at_once=settings.WEB_REQUESTS_AT_ONCE,
                by_person=settings.WEB_REQUESTS_OF_ONE,
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
        """Count a download out."""
        self._downloads[person] -= 1
        if not self._downloads[person]:
            del self._downloads[person]


async def _refuse(send: Send, scope: Scope, reason: Exception) -> None:
    again = {"Retry-After": str(BUSY_SECONDS)}
    if isinstance(reason, bodies.TooLarge):
        text = f"The body of a request may have {reason.limit} bytes here; this one has more."
        error, again = DomainError("body_too_large", text, {"limit": reason.limit}), {"Connection": "close"}
    elif isinstance(reason, bodies.TooSlow):
        seconds = settings.WEB_BODY_SECONDS
        text = f"The body of a request has to come within {seconds} seconds."
        error, again = DomainError("body_too_slow", text, {"limit": seconds}), {"Connection": "close"}
    elif isinstance(reason, TooManyOfOne):
        error = DomainError("throttled", "Too many of your requests wait already; wait as long as Retry-After says.")
    else:
        error = DomainError("unavailable", "TideSched is busy; try again after the seconds of Retry-After.")
    await answers.refuse(send, scope, error, again)


class _Answer:
    """Sends one answer, and ends its turn as early as may be."""

    def __init__(self, front: Front, scope: Scope, send: Send, turns: Turns, turn: Turn) -> None:
        self._front, self._scope, self._send, self._turns, self._turn = front, scope, send, turns, turn
        self._download = False

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            if self._scope.get(KIND) != "download":
                self._turns.finish(self._turn, connections.close_all)
            elif self._front.begin_download(self._turn.person):
                self._download = True
            else:
                text = "So many downloads are under way already; wait until one has ended."
                refusal = DomainError("throttled", text)
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
            self._front.end_download(self._turn.person)
        self._turns.finish(self._turn, connections.close_all)
