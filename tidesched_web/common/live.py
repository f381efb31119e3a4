"""Live events: a Redis Stream of what changed, ids only. Pages and platforms fetch the rest themselves.

An event says *which* cluster and object changed, never how, so nothing leaks that its reader could not ask for.
The stream is short (`MAX_EVENTS`): a reader whose last id has fallen off simply fetches again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import cache

import redis
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
