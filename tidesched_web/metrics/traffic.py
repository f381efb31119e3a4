"""Requests and streams of all web processes. Each counts in memory and adds it to Redis once a second."""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from functools import cache

import orjson
import redis
from django.conf import settings

from tidesched_web.metrics.families import Key, observe

_REQUESTS, _STREAMS = "tidesched:metrics:requests", "tidesched:metrics:streams"
# What is older was said by a process that is gone.
HEARD_SECONDS = 10.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_pending: dict[Key, float] = {}


def count(method: str | None, route: str, status: int, seconds: float | None = None) -> None:
    method = method if method in _METHODS else "other"
    with _lock:
        observe(_pending, ("tidesched_http_requests_total", method, route, str(status)), 1)
        if seconds is not None:
            observe(_pending, ("tidesched_http_request_seconds", method, route), seconds)


def flush(streams: int) -> None:
    with _lock:
        taken = dict(_pending)
        _pending.clear()
    asked = _client().pipeline()
    for key, more in taken.items():
        asked.hincrbyfloat(_REQUESTS, orjson.dumps(key), more)
    asked.hset(_STREAMS, f"{socket.gethostname()} {os.getpid()}", orjson.dumps((streams, time.time())))
    try:
        asked.execute()
    except (redis.RedisError, OSError) as error:
        _log.warning("requests are not counted yet: %s", error)
        with _lock:
            for key, more in taken.items():
                _pending[key] = _pending.get(key, 0) + more


def read() -> Iterator[tuple[Key, float]]:
    for key, figure in _client().hgetall(_REQUESTS).items():
        yield tuple(orjson.loads(key)), float(figure)
    said = {process: orjson.loads(value) for process, value in _client().hgetall(_STREAMS).items()}
    old = [process for process, (_streams, at) in said.items() if time.time() - at > HEARD_SECONDS]
    if old:
        _client().hdel(_STREAMS, *old)
    yield ("tidesched_streams",), sum(streams for process, (streams, _at) in said.items() if process not in old)


@cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2)
