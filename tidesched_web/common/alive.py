"""Signs of life of the background processes: a key of Redis for each role, gone soon after its process.

Where TIDESCHED_ALIVE_FILE names a file, it is touched as well: what looks after a single container looks at its time.

A worker that is busy does not answer a ping, so nobody is pinged: the worker's own timer and beat's own publishing
write the keys.
"""

import contextlib
from pathlib import Path

from django.core.cache import cache
from redis import RedisError

from tidesched_web import env

ROLES = ("sessions", "work", "what-if", "beat")
LIFETIME_SECONDS = 15


def mark(role: str) -> None:
    """Say that a process of this role lives now; while Redis is away the silence is the message."""
    file = env.text("TIDESCHED_ALIVE_FILE")
    if file:
        Path(file).touch()
    with contextlib.suppress(RedisError, OSError):
        cache.set(_key(role), 1, LIFETIME_SECONDS)


def silent_roles() -> list[str]:
    """Return the roles that no process has spoken for of late."""
    heard = cache.get_many([_key(role) for role in ROLES])
    return [role for role in ROLES if _key(role) not in heard]


def _key(role: str) -> str:
    return f"alive:{role}"
