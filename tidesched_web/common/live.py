"""Live events: a Redis Stream of what changed, ids only. Pages and platforms fetch the rest themselves.

An event says *which* cluster and object changed, never how, so nothing leaks that its reader could not ask for.
The stream is short (`MAX_EVENTS`): a reader whose last id has fallen off simply fetches again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import redis
import redis.asyncio
from django.conf import settings

STREAM = "tidesched:events"
MAX_EVENTS = 1000
TOPICS = ("alerts", "changes", "clusters", "drift", "gangs", "jobs", "nodes", "queues", "reclaims", "sessions", "usage")

# Places in the stream are the milliseconds of Redis; the clock of a web process may be so far ahead of it.
_AHEAD_SECONDS = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """One change: `position` is the place in the stream (the SSE id)."""

    position: str
    topic: str
    id: str
    version: str
    cluster: int | None


@cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2)


def publish(topic: str, id: int | str, version: int | str = 0, *, cluster_id: int | None = None) -> bool:  # noqa: A002
    """Announce a change after its commit; False when Redis does not answer (pages then find it by polling).

    ``cluster_id`` bounds who hears of it to those who see that cluster; without one every signed-in reader does.
    """
    if topic not in TOPICS:
        raise ValueError(f"unknown topic {topic!r}; one of {', '.join(TOPICS)}")
    fields: dict[str, str] = {"t": topic, "i": str(id), "v": str(version)}
    if cluster_id is not None:
        fields["c"] = str(cluster_id)
    try:
        _client().xadd(STREAM, fields, maxlen=MAX_EVENTS, approximate=True)  # type: ignore[arg-type]  # dict is invariant
    except redis.RedisError as error:
        _log.warning("an event of topic %s was not announced: %s", topic, error)
        return False
    return True


def place_now() -> str:
    """A place in the stream after which all that happens from now on comes; asks nobody."""
    return f"{int((time.time() - _AHEAD_SECONDS) * 1000)}-0"


async def _ahead(client: redis.asyncio.Redis, position: str) -> bool:
    """Whether a place is later than Redis' clock: whoever named it has a clock that is fast, and would hear nothing."""
    seconds, micros = await client.time()
    return int(position.partition("-")[0]) > seconds * 1000 + micros // 1000


async def events(topics: Iterable[str], *, after: str = "$", idle_seconds: float = 15.0) -> AsyncIterator[Event | None]:
    """Yield the events of `topics` after stream position `after` ("$" = from now on), and None when idle."""
    wanted = frozenset(topics)
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL, socket_timeout=idle_seconds + 5)
    position = after
    try:
        if position != "$" and await _ahead(client, position):
            position = "$"
        if position == "$":
            # redis-py types its answers for both protocols and both decodings at once
            newest: Any = await client.xrevrange(STREAM, count=1)
            position = newest[0][0].decode() if newest else "0-0"
        while True:
            answer: Any = await client.xread({STREAM: position}, count=200, block=int(idle_seconds * 1000))
            if not answer:
                yield None
                continue
            for key, fields in answer[0][1]:
                position = key.decode()
                topic = fields[b"t"].decode()
                if topic in wanted:
                    cluster = fields.get(b"c")
                    yield Event(
                        position, topic, fields[b"i"].decode(), fields[b"v"].decode(), int(cluster) if cluster else None
                    )
    finally:
        await client.aclose()
