"""A place is a thread, given in the order of coming; an event stream gives it back once it has begun."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.db import connections

from tidesched_web.api import problem_json
from tidesched_web.common import request_context
from tidesched_web.common.errors import DomainError
from tidesched_web.front import Application, Receive, Scope, Send, answers, health, request_size

WAITING_SECONDS: Final = 20.0
# Whatever a request waits for ends sooner, but for a database that has stopped.
ANSWER_SECONDS: Final = 60.0


class Limiter:
    def __init__(self, django: Application) -> None:
        self._django = django
        self._probes = health.Probes()
        threads = range(settings.WEB_REQUESTS_AT_ONCE)
        self._free = [ThreadPoolExecutor(1, thread_name_prefix=f"request-{number}") for number in threads]
        self._places = asyncio.Semaphore(len(self._free))
        self._waiting = 0
        self._bodies = request_size.Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._probes.live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000, "reason": None})
        elif scope["path"] in health.PATHS:
            await self._probes.answer(scope, send)
        else:
            with self._bodies.room() as take:
                await self._limited(request_context.without_foreign_claims(scope), receive, send, take)

    async def _limited(self, scope: Scope, receive: Receive, send: Send, take: Callable[[int], None]) -> None:
        try:
            request_size.check_head(scope)
            if self._probes.database_is_away and not scope["path"].startswith(settings.STATIC_URL):
                raise problem_json.database_away()
            self._check_waiting()
            body = await request_size.read_body(scope, receive, take)
            if body is None:
                return
            await self._take_place()
        except DomainError as error:
            await answers.refuse(send, scope, error)
            return
        await self._run(*request_size.with_body(scope, receive, body), send)

    def _check_waiting(self) -> None:
        if self._waiting >= settings.WEB_WAITING:
            text = f"TideSched is busy: {settings.WEB_WAITING} requests wait already."
            raise DomainError("unavailable", text, {"limit": settings.WEB_WAITING})

    async def _take_place(self) -> None:
        self._check_waiting()
        self._waiting += 1
        try:
            async with asyncio.timeout(WAITING_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            text = f"TideSched is busy: this request has waited for {WAITING_SECONDS:g} seconds."
            raise DomainError("unavailable", text, {"limit": WAITING_SECONDS}) from None
        finally:
            self._waiting -= 1

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.ExitStack() as place:
            thread = self._free.pop()
            place.callback(self._give_back, thread)

            async def answer(message: Mapping[str, Any]) -> None:
                if limit.expired():
                    return  # the thread has come too late
                if message["type"] == "http.response.start":
                    limit.reschedule(None)
                    if b"text/event-stream" in dict(message["headers"]).values():
                        place.close()
                await send(message)

            try:
                async with asyncio.timeout(ANSWER_SECONDS) as limit, ThreadSensitiveContext(executor=thread):
                    await self._django(scope, receive, answer)
            except TimeoutError:
                await answers.refuse(send, scope, problem_json.too_slow(scope["method"], ANSWER_SECONDS))

    def _give_back(self, thread: ThreadPoolExecutor) -> None:
        """The place is free again when its thread is, also where nobody waits for the answer any more."""

        def free(_closed: asyncio.Future[None]) -> None:
            self._free.append(thread)
            self._places.release()

        asyncio.get_running_loop().run_in_executor(thread, connections.close_all).add_done_callback(free)
