"""How passwords are hashed: Argon2id, few at a time, and never while a pooled database connection is held.

Older PBKDF2 hashes are still read; the next sign-in replaces them. One hash takes tens of milliseconds of a processor
and 19 MiB. The thread that waits for its place, or hashes, has given its connection back to the pool first, so that
many sign-ins at once cost the other pages nothing but processor time. Code that hashes inside of a transaction keeps
the connection; the services of accounts hash before they open one.
"""

from __future__ import annotations

import threading

from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher, PBKDF2PasswordHasher
from django.db import connection

_places = threading.BoundedSemaphore(max(1, settings.PASSWORD_HASHES_AT_ONCE))


def _without_connection() -> threading.BoundedSemaphore:
    """Give the connection back to its pool; the next query takes one again. Returns the places to hash at."""
    if getattr(connection, "pool", None) and not connection.in_atomic_block:
        connection.close()
    return _places


class Argon2(Argon2PasswordHasher):
    """Argon2id with 19 MiB and two passes, the first of the settings that OWASP's password cheat sheet recommends."""

    time_cost = 2
    memory_cost = 19_456
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with _without_connection():
            return super().encode(password, salt)

    def verify(self, password: str, encoded: str) -> bool:
        with _without_connection():
            return super().verify(password, encoded)


class Pbkdf2(PBKDF2PasswordHasher):
    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        with _without_connection():  # verifying encodes too
            return super().encode(password, salt, iterations)
