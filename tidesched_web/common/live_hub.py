"""One reader of the live events for all streams of a process: Redis is read once, each stream gets what concerns it.

What comes within `WINDOW_SECONDS` goes out together, so a topic costs a stream at most two messages a second; where
more than `AT_HALF_A_SECOND` streams are open the window is longer, up to `WINDOW_MOST_SECONDS`. Of several events of
one object only the newest is kept; of more than `MOST_OF_ONE` objects of one topic and cluster a single event with the
id ``*`` is left: look again at all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from django.conf import settings

from tidesched_web.common.live import EVERYTHING, MAX_EVENTS, STREAM, Event, read
from tidesched_web.common.live_memory import memory

WINDOW_SECONDS = 0.5
WINDOW_MOST_SECONDS = 2.0
AT_HALF_A_SECOND = 100
IDLE_SECONDS = 15.0
MOST_OF_ONE = 20
# Batches that one stream may leave unread; a reader that is slower than this loses its stream.
MOST_UNREAD = 120

_log = logging.getLogger(__name__)
_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


class Unreachable(Exception):
    """Redis does not answer."""


class Listener:
    def __init__(self, topics: Iterable[str]) -> None:
        self.topics = frozenset(topics)
        self.ended = ""
        self._unread: deque[list[Event]] = deque()
        self._news = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None

    def put(self, batch: list[Event]) -> None:
        wanted = [event for event in batch if event.topic in self.topics]
        if not wanted:
            return
        if len(self._unread) >= MOST_UNREAD:
            self.end("too_slow")
            if self._task is not None:
                self._task.cancel()  # it waits for a reader that does not read
            return
        self._unread.append(wanted)
        self._news.set()

    def end(self, why: str) -> None:
        self.ended = self.ended or why
        self._news.set()

    async def batches(self) -> AsyncGenerator[list[Event]]:
        """What comes, in batches; an empty one when nothing came for `IDLE_SECONDS`. Ends with the listener."""
        self._task = asyncio.current_task()
        while True:
            while self._unread:
                yield self._unread.popleft()
            if self.ended:
                return
            self._news.clear()
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                yield []


class Hub:
    def __init__(self) -> None:
        self.listeners: set[Listener] = set()
        self._recent: deque[Event] = deque(maxlen=MAX_EVENTS)
        self._reading: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None

    async def ready(self) -> None:
        if self._reading is None or self._reading.done():
            self._started = asyncio.get_running_loop().create_future()
            self._reading = asyncio.create_task(self._read(self._started))
        assert self._started is not None
        try:
            await asyncio.shield(self._started)
        except (redis.RedisError, OSError) as error:
            raise Unreachable from error

    async def join(self, listener: Listener, *, after: str) -> None:
        """What happened between the place and now it gets at once."""
        await self.ready()
        if after and self._recent and _place(after) <= _place(self._recent[-1].position):
            since = _place(after)
            listener.put([event for event in self._recent if _place(event.position) > since])
        self.listeners.add(listener)

    def leave(self, listener: Listener) -> None:
        self.listeners.discard(listener)
        if not self.listeners and self._reading is not None:
            self._reading.cancel()
            self._reading = None

    async def _read(self, started: asyncio.Future[None]) -> None:
        client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_timeout=IDLE_SECONDS + 5)
        try:
            async with aclosing(client):
                newest: Any = await client.xrevrange(STREAM, count=MAX_EVENTS)
                self._recent = deque((_event(*entry) for entry in reversed(newest)), maxlen=MAX_EVENTS)
                position = self._recent[-1].position if self._recent else "0-0"
                memory.follow(events=True)
                started.set_result(None)
                while True:
                    answer: Any = await client.xread(
                        {STREAM: position}, count=MAX_EVENTS, block=int(IDLE_SECONDS * 1000)
                    )
                    if answer:
                        events = [_event(*entry) for entry in answer[0][1]]
                        memory.forget(event.topic for event in events)
                        position = events[-1].position
                        self._recent.extend(events)
                        batch = compact(events)
                        for listener in list(self.listeners):
                            listener.put(batch)
                        await asyncio.sleep(window_seconds(len(self.listeners)))
        except (redis.RedisError, OSError) as error:
            _log.warning("live events cannot be read: %s", error)
            if started.done():
                for listener in list(self.listeners):
                    listener.end("unreachable")
            else:
                started.set_exception(error)
        finally:
            memory.follow(events=False)
            if not started.done():
                started.cancel()


def window_seconds(listeners: int) -> float:
    return min(WINDOW_MOST_SECONDS, WINDOW_SECONDS * max(1.0, listeners / AT_HALF_A_SECOND))


def hub() -> Hub:
    loop = asyncio.get_running_loop()
    return _hubs.setdefault(loop, Hub())


def compact(events: list[Event]) -> list[Event]:
    """Without what a later event of the same object says again, and one event where there are very many objects."""
    newest = {(event.topic, event.cluster, event.id): event for event in events}
    of_one: dict[tuple[str, int | None], list[Event]] = {}
    for event in newest.values():
        of_one.setdefault((event.topic, event.cluster), []).append(event)
    kept: list[Event] = []
    for (topic, cluster), some in of_one.items():
        if len(some) > MOST_OF_ONE:
            last = max(some, key=lambda event: _place(event.position))
            kept.append(Event(last.position, topic, EVERYTHING, last.version, cluster))
        else:
            kept.extend(some)
    return sorted(kept, key=lambda event: _place(event.position))


def _place(position: str) -> tuple[int, int]:
    moment, _dash, number = position.partition("-")
    return int(moment), int(number or 0)


def _event(key: bytes, fields: dict[bytes, bytes]) -> Event:
    return read(key.decode(), {name.decode(): value.decode() for name, value in fields.items()})
