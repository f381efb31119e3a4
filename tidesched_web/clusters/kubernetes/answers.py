"""Bounds far above what a server sends: pages of 500 objects, none above 1.5 MiB, most of 10 to 60 KiB."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import urllib3

from tidesched_web.clusters.kubernetes.deadlines import Deadline

MIB: Final = 2**20
_PIECE: Final = 256 * 1024


@dataclass(frozen=True)
class Bound:
    most: int
    seconds: float


# One object, one page of a list, an error.
READ: Final = Bound(64 * MIB, 30.0)
# What comes of a write: a lease has to outlast it.
WRITE: Final = Bound(16 * MIB, 10.0)
# A list in one piece, which is asked for only where its pages grew too old twice.
WHOLE_LIST: Final = Bound(1024 * MIB, 300.0)
# One event of a watch.
MOST_OF_LINE: Final = 16 * MIB
# What a server says of an error is kept, and shown on pages: so many characters of it.
MOST_OF_MESSAGE: Final = 2_000


class BeyondBound(Exception):
    """An answer is longer than is read of it, or takes longer. ``code``: ``too_large`` or ``too_slow``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _too_large(what: str, most: int) -> BeyondBound:
    return BeyondBound("too_large", f"{what} is longer than {most // MIB} MiB, the most that is read")


def body_of(response: urllib3.BaseHTTPResponse, bound: Bound) -> bytes:
    body = bytearray()
    with Deadline(bound.seconds, response.shutdown) as deadline:
        try:
            while piece := response.read1(_PIECE):
                body += piece
                if len(body) > bound.most:
                    response.close()
                    raise _too_large("the answer", bound.most)
        except urllib3.exceptions.HTTPError:
            if not deadline.passed:
                raise
    if deadline.passed:
        # What came until then may look whole.
        response.close()
        raise BeyondBound("too_slow", f"the answer has not ended after {bound.seconds:g} s, the longest that is waited")
    return bytes(body)


def lines_of(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The empty ones are left out; O(bytes), in pieces of whatever size."""
    line = bytearray()
    for piece in response.stream(_PIECE):
        first, *others = piece.split(b"\n")
        line += first
        for begun in others:
            if len(line) > MOST_OF_LINE:
                break
            if line:
                yield bytes(line)
            line[:] = begun
        if len(line) > MOST_OF_LINE:
            raise _too_large("a line of the watch", MOST_OF_LINE)


def message_of(body: dict[str, Any], name: str = "message") -> str:
    said = body.get(name)
    text = said if isinstance(said, str) else "" if said is None else str(said)[: MOST_OF_MESSAGE + 1]
    return text if len(text) <= MOST_OF_MESSAGE else f"{text[: MOST_OF_MESSAGE - 1]}…"
