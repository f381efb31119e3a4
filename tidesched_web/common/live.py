"""Live events: a Redis Stream of what changed, never its figures; pages and platforms fetch the rest themselves."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import redis
from django.conf import settings

from tidesched_web.common.live_memory import memory

STREAM = "tidesched:events"
MAX_EVENTS = 1000
TOPICS = ("alerts", "changes", "clusters", "drift", "gangs", "jobs", "nodes", "queues", "reclaims", "sessions", "usage")

# Places in the stream are the milliseconds of Redis; the clock of a web process may be so far ahead of it.
_AHEAD_SECONDS = 2.0

_log = logging.getLogger(__name__)


EVERYTHING = "*"  # the id of an event that names no object: look again at all of the topic


@dataclass(frozen=True, slots=True)
class About:
    """``tenants``: whose members see it (empty: the platform's own; None: who see the cluster)."""

    kind: str
    name: str
    what: str
    tenants: frozenset[int] | None = None
    person: int | None = None


@dataclass(frozen=True, slots=True)
class Sight:
    named: frozenset[str] = frozenset(TOPICS)
    clusters: frozenset[int] = frozenset()
    tenants: frozenset[int] = frozenset()
    everything: bool = False
    administers: bool = False
    user_id: int | None = None

    def of(self, about: About) -> bool:
        if about.person is not None and about.person == self.user_id:
            return True
        if about.tenants is not None:
            return self.everything or (bool(about.tenants) and about.tenants <= self.tenants)
        return about.person is None or self.administers


@dataclass(frozen=True, slots=True)
class Event:
    position: str
    topic: str
    id: str
    version: str
    cluster: int | None
    about: About | None = None


@cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2)


def publish(
    topic: str,
    id: int | str,  # noqa: A002
    version: int | str = 0,
    *,
    cluster_id: int | None = None,
    about: About | None = None,
) -> bool:
    """After the commit; False when Redis does not answer. Without ``cluster_id`` every signed-in reader hears of it."""
    if topic not in TOPICS:
        raise ValueError(f"unknown topic {topic!r}; one of {', '.join(TOPICS)}")
    fields: dict[str, str] = {"t": topic, "i": str(id), "v": str(version)}
    if cluster_id is not None:
        fields["c"] = str(cluster_id)
    if about is not None:
        fields |= {"k": about.kind, "n": about.name, "w": about.what}
        if about.tenants is not None:
            fields["o"] = ",".join(str(tenant) for tenant in sorted(about.tenants))
        if about.person is not None:
            fields["p"] = str(about.person)
    memory.forget([topic])
    try:
        _client().xadd(STREAM, fields, maxlen=MAX_EVENTS, approximate=True)  # type: ignore[arg-type]  # dict
    except redis.RedisError as error:
        _log.warning("an event of topic %s was not announced: %s", topic, error)
        return False
    return True


def read(position: str, fields: dict[str, str]) -> Event:
    cluster, about = fields.get("c"), None
    if "k" in fields:
        owners = fields.get("o")
        about = About(
            fields["k"],
            fields["n"],
            fields["w"],
            None if owners is None else frozenset(int(one) for one in owners.split(",") if one),
            int(fields["p"]) if "p" in fields else None,
        )
    return Event(position, fields["t"], fields["i"], fields["v"], int(cluster) if cluster else None, about)


def seen(events: Iterable[Event], sight: Sight) -> list[Event]:
    """What a reader hears: events of clusters in sight, and without the object where it is out of their sight."""
    found: dict[object, Event] = {}
    for event in events:
        if event.cluster is not None and event.cluster not in sight.clusters:
            continue
        if event.about is None or (event.topic in sight.named and sight.of(event.about)):
            found[event.position] = event
        else:
            found[event.topic, event.cluster] = Event(event.position, event.topic, EVERYTHING, "0", event.cluster)
    return list(found.values())


def place_now() -> str:
    """A place in the stream after which all that happens from now on comes; asks no server."""
    return f"{int((time.time() - _AHEAD_SECONDS) * 1000)}-0"
