"""Request bodies: read whole before a request takes a turn, within a limit of bytes and of time.

All bodies that are held at one time, those that still come and those whose request waits or runs, are bounded in sum:
of one person half, and of all strangers half, so that there is room left for the people who are signed in.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from django.conf import settings

from tidesched_web.front import Receive, Scope
from tidesched_web.front.persons import Person

_FORMS = (b"multipart/form-data", b"application/x-www-form-urlencoded")


class TooLarge(Exception):
    """The body is over its limit, in bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class TooSlow(Exception):
    """The body did not come in time."""


class TooMany(Exception):
    """The bodies that are held already leave no room for this one; ``limit`` of them in bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class Gone(Exception):
    """The client left before its request was whole."""


class Held:
    """The bytes of the bodies that this process holds."""

    def __init__(self) -> None:
        self._all = self._strangers = 0
        self._by_person: Counter[str] = Counter()

    @contextlib.contextmanager
    def of(self, person: Person) -> Iterator[Callable[[int], None]]:
        """Count the body of one request, from its first piece to the end of the request.

        What is given is called with the size of each piece, and raises ``TooMany`` where there is no room for it.
        """
        mine = 0

        def add(size: int) -> None:
            nonlocal mine
            half = settings.WEB_BODIES_BYTES // 2
            if self._by_person[person.name] + size > half or (person.stranger and self._strangers + size > half):
                raise TooMany(half)
            if self._all + size > settings.WEB_BODIES_BYTES:
                raise TooMany(settings.WEB_BODIES_BYTES)
            mine += size
            self._count(person, size)

        try:
            yield add
        finally:
            self._count(person, -mine)

    def _count(self, person: Person, size: int) -> None:
        self._all += size
        self._strangers += size * person.stranger
        self._by_person[person.name] += size
        if not self._by_person[person.name]:
            del self._by_person[person.name]


def limit_of(headers: dict[bytes, bytes]) -> int:
    """How many bytes a body of this kind may have: a form, which may hold a file, more than JSON."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return settings.WEB_FORM_BYTES if kind in _FORMS else settings.WEB_BODY_BYTES


async def read(scope: Scope, receive: Receive, held: Callable[[int], None]) -> bytes:
    """The whole body; ``held`` is called with the size of each piece.

    Raises
    ------
    TooLarge, TooSlow, TooMany, Gone
        when it does not come as it may; nothing beyond the limit is kept.
    """
    headers = dict(scope["headers"])
    limit = limit_of(headers)
    announced = headers.get(b"content-length", b"")
    if announced.isdigit() and int(announced[:20]) > limit:
        raise TooLarge(limit)
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.WEB_BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Gone
                piece = message.get("body", b"")
                size += len(piece)
                if size > limit:
                    raise TooLarge(limit)
                held(len(piece))
                pieces.append(piece)
                if not message.get("more_body", False):
                    return b"".join(pieces)
    except TimeoutError:
        raise TooSlow from None


def with_length(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> list[tuple[bytes, bytes]]:
    """The headers with the length of the body, however it came: without one Django takes it for none."""
    kept = [header for header in headers if header[0] not in (b"content-length", b"transfer-encoding")]
    return [*kept, (b"content-length", b"%d" % len(body))]


def replayed(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives the body that was read, and then what else the client says."""
    given = False

    async def again() -> Mapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
