"""A body is read whole before the request takes a place, so one that comes slowly keeps no thread; how long
it may take, the proxy in front says (deploy/nginx)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from django.conf import settings

from tidesched_web.common.errors import DomainError
from tidesched_web.front import Receive, Scope

# Django and Python read these headers in time that grows with the square of their length.
MOST_OF_A_HEADER: Final = {b"cookie": 8192, b"content-type": 256, b"content-disposition": 256, b"accept": 1024}
# All bodies that the process holds at a time, those of requests that wait included.
MOST_HELD: Final = 64 * 2**20
_FORMS: Final = (b"multipart/form-data", b"application/x-www-form-urlencoded")


def check_head(scope: Scope) -> None:
    for name, most in MOST_OF_A_HEADER.items():
        if sum(len(value) for header, value in scope["headers"] if header == name) > most:
            text = f"The header {name.decode()} of a request may have {most} bytes."
            raise DomainError("head_too_large", text, {"limit": most})


class Bodies:
    def __init__(self) -> None:
        self.held = 0

    @contextmanager
    def room(self) -> Iterator[Callable[[int], None]]:
        """A request's room, which is free again behind this block: what is given takes so many bytes, or refuses."""
        taken = 0

        def take(size: int) -> None:
            nonlocal taken
            if self.held + size > MOST_HELD:
                text = f"TideSched is busy: bodies of {MOST_HELD} bytes are held at a time."
                raise DomainError("unavailable", text, {"limit": MOST_HELD})
            self.held, taken = self.held + size, taken + size

        try:
            yield take
        finally:
            self.held -= taken


async def read_body(scope: Scope, receive: Receive, take: Callable[[int], None]) -> bytes | None:
    headers = dict(scope["headers"])
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    most = 2 * settings.WEB_BODY_BYTES if kind in _FORMS else settings.WEB_BODY_BYTES
    announced = headers.get(b"content-length", b"")
    size = int(announced[:20]) if announced.isdigit() else 0
    pieces: list[bytes] = []
    came, more = 0, True
    while more and max(came, size) <= most:
        message = await receive()
        if message["type"] != "http.request":
            return None
        pieces.append(message.get("body", b""))
        take(len(pieces[-1]))
        came, more = came + len(pieces[-1]), message.get("more_body", False)
    coding = headers.get(b"content-encoding", b"identity").decode("latin-1")
    if coding.lower() != "identity":
        text = f"Content-Encoding: {coding[:40]} is not read here: send the body as it is."
        raise DomainError("unsupported_media_type", text)
    if max(came, size) <= most:
        return b"".join(pieces)
    text = f"The body of a request may have {most} bytes here; this one has more."
    raise DomainError("body_too_large", text, {"limit": most})


def with_body(scope: Scope, receive: Receive, body: bytes) -> tuple[Scope, Receive]:
    """The request with its body in one piece and with its length: without one Django takes it for none."""
    headers = [line for line in scope["headers"] if line[0] not in (b"content-length", b"transfer-encoding")]
    pieces = [body]

    async def receive_again() -> Mapping[str, Any]:
        return {"type": "http.request", "body": pieces.pop()} if pieces else await receive()

    return {**scope, "headers": [*headers, (b"content-length", b"%d" % len(body))]}, receive_again
