"""Processes that hung and were replaced, for the status page; and those that end each time they are started.

The former are kept in Redis, since who ends a process need not have a database: the supervisor, a container's probe,
the process itself. The latter are a file of the supervisor's.
"""

import contextlib
import time
from pathlib import Path

import msgspec
import redis

from tidesched_web.common.progress import Report, Standing, replace

MOST = 50
_REPLACED, _ENDINGS = "tidesched:replaced", "endings"


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """One process that was ended, at seconds of the wall clock."""

    role: str
    host: str
    pid: int
    started: str
    at: float
    activity: str
    step: str
    seconds: float
    ended_by: str


def note_of(report: Report, standing: Standing, *, ended_by: str) -> Replaced:
    return Replaced(
        role=report.role, host=report.host, pid=report.pid, started=report.started, at=time.time(),
        activity=standing.activity, step=standing.at, seconds=standing.seconds, ended_by=ended_by,
    )  # fmt: skip


def write(redis_url: str, note: Replaced) -> bool:
    """Keep a note; of two who end the same process one stays. Tell whether Redis took it."""
    try:
        with redis.Redis.from_url(redis_url, socket_timeout=1, socket_connect_timeout=1) as client:
            client.hset(_REPLACED, f"{note.host} {note.pid} {note.started}", msgspec.json.encode(note))
            if client.hlen(_REPLACED) > 2 * MOST:
                replaced(client)
    except (redis.RedisError, OSError):
        return False
    return True


def replaced(client: redis.Redis) -> list[Replaced]:
    """The newest first; what is beyond the bound is forgotten."""
    notes = {}
    for field, value in client.hgetall(_REPLACED).items():
        with contextlib.suppress(msgspec.DecodeError):
            notes[field] = msgspec.json.decode(value, type=Replaced)
    fields = sorted(notes, key=lambda field: notes[field].at, reverse=True)
    if fields[MOST:]:
        client.hdel(_REPLACED, *fields[MOST:])
    return [notes[field] for field in fields[:MOST]]


class Ending(msgspec.Struct, frozen=True):
    """A process that ends each time it is started: how many times in a row, and its last error."""

    role: str
    times: int
    last: str

    def __str__(self) -> str:
        return f"it ends each time it is started, {self.times} times so far; its last error: {self.last}"


def write_endings(folder: Path, endings: dict[str, Ending]) -> None:
    with contextlib.suppress(OSError):
        replace(folder / _ENDINGS, msgspec.json.encode(endings))


def endings(folder: Path) -> dict[str, Ending]:
    try:
        return msgspec.json.decode((folder / _ENDINGS).read_bytes(), type=dict[str, Ending])
    except (OSError, msgspec.DecodeError):
        return {}
