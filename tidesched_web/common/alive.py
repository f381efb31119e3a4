"""Signs of life of the background processes: a key of Redis for each role, gone soon after its process.

A worker that is busy does not answer a ping, so none is pinged: a thread of each process writes the keys, from when it
takes messages and as long as its work moves on (`common.progress`). A role whose processes end each time they are
started is silent too, whatever the last of them wrote.
"""

import contextlib
import time
from collections.abc import Callable
from functools import cache as once

import msgspec
import redis
from django.conf import settings
from django.core.cache import cache
from redis import RedisError

from tidesched_web.common import incidents
from tidesched_web.common.incidents import Ending, Replaced
from tidesched_web.common.progress import Report, folder

STARTED = time.monotonic()
# A role that was never heard of so short a time after the start of the site is starting.
STARTING_SECONDS = 30
ROLES = ("sessions", "push", "work", "what-if", "beat")
# The roles that take messages from a queue of their name; beat only sends.
QUEUES = ROLES[:-1]
LIFETIME_SECONDS = 15
_PROCESSES = "tidesched:processes"


class Heard(msgspec.Struct, frozen=True):
    """What a process said of itself, and when by the wall clock."""

    at: float
    born: float
    report: Report


def mark(role: str) -> None:
    with contextlib.suppress(RedisError, OSError):
        cache.set(_key(role), 1, LIFETIME_SECONDS)


def silent_roles() -> list[str]:
    """Return the roles that no process has spoken for of late, or only some that did not stay alive."""
    heard, ending = cache.get_many([_key(role) for role in ROLES]), endings()
    return [role for role in ROLES if _key(role) not in heard or role in ending]


def endings() -> dict[str, Ending]:
    """The roles whose processes end each time they are started, as the supervisor has noted them."""
    place = folder()
    return incidents.endings(place) if place else {}


def starting_roles(silent: list[str], heard: list[Heard]) -> list[str]:
    """Those of the silent roles that have neither spoken nor failed yet, while this site has just started."""
    if time.monotonic() - STARTED > STARTING_SECONDS:
        return []
    begun = {one.report.role for one in heard} | endings().keys()
    return [role for role in silent if role not in begun]


def tell(report: Report) -> None:
    """Keep the newest report of a process for the status page."""
    now = time.time()
    heard = Heard(now, now - (report.written - report.born), report)
    with contextlib.suppress(RedisError, OSError):
        _client().hset(_PROCESSES, f"{report.role} {report.host} {report.pid}", msgspec.json.encode(heard))


def processes() -> list[Heard]:
    """What was heard in the last minute, by role; what is older is forgotten."""
    found, old = [], []
    for field, value in _client().hgetall(_PROCESSES).items():
        try:
            heard = msgspec.json.decode(value, type=Heard)
        except msgspec.DecodeError:
            old.append(field)
            continue
        if time.time() - heard.at > 4 * LIFETIME_SECONDS:
            old.append(field)
        else:
            found.append(heard)
    if old:
        _client().hdel(_PROCESSES, *old)
    return sorted(found, key=lambda one: (one.report.role, one.report.host, one.report.pid))


# Of each watched cluster, by id: the age of what each of its watches has heard last.
watched: dict[int, Callable[[], dict[str, float]]] = {}


def tell_watches() -> None:
    """Keep when each watch of this process has heard something, by the wall clock."""
    now = time.time()
    heard = {pk: {kind: now - age for kind, age in ages().items()} for pk, ages in list(watched.items())}
    with contextlib.suppress(RedisError, OSError):
        cache.set_many({f"watches:{pk}": kinds for pk, kinds in heard.items()}, None)


def watches_heard(cluster_id: int) -> dict[str, float]:
    return cache.get(f"watches:{cluster_id}") or {}


def waiting_messages() -> int:
    asked = _client().pipeline(transaction=False)
    for queue in QUEUES:
        asked.llen(f"celery:{queue}")
    return sum(asked.execute())


def store() -> tuple[str, str]:
    """The name and the version of the store of short-lived things; no version while it does not answer."""
    try:
        found = _client().info("server")
    except (redis.RedisError, OSError):
        return "Redis", ""
    if version := found.get("valkey_version"):
        return "Valkey", str(version)
    return "Redis", str(found.get("redis_version", ""))


def replaced() -> list[Replaced]:
    """The processes that hung and were replaced last, the newest first."""
    return incidents.replaced(_client())


@once
def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=2)


def _key(role: str) -> str:
    return f"alive:{role}"
