"""Request bodies: read whole before a request takes a turn, within a limit of bytes and of time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from tidesched_web.front import Receive, Scope

_FORMS = (b"multipart/form-data", b"application/x-www-form-urlencoded")


class TooLarge(Exception):
    """The body is over its limit, in bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class TooSlow(Exception):
    """The body did not come in time."""


class Gone(Exception):
    """The client left before its request was whole."""


def limit_of(headers: dict[bytes, bytes]) -> int:
    """How many bytes a body of this kind may have: a form, which may hold a file, more than JSON."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return settings.WEB_FORM_BYTES if kind in _FORMS else settings.WEB_BODY_BYTES


async def read(scope: Scope, receive: Receive) -> bytes:
    """The whole body.

    Raises
    ------
    TooLarge, TooSlow, Gone
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
                pieces.append(piece)
                if not message.get("more_body", False):
                    return b"".join(pieces)
    except TimeoutError:
        raise TooSlow from None


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
