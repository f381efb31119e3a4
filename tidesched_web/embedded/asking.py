"""Does a server answer? Asked of those that say nothing of their progress themselves: the web process and the servers.

A stopped process keeps its sockets: the kernel accepts connections for it, and nothing ever comes back. So each is
asked for one byte of an answer, by the smallest question of its protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Final

import msgspec

from tidesched_web.common.progress import HANG_SECONDS

# A process that has answered once and then not for so long is replaced; with its start it is back within a minute.
SILENT_SECONDS: Final = HANG_SECONDS
EVERY_SECONDS: Final = 3.0
PATIENCE_SECONDS: Final = 10.0

# Valkey answers to a word. PostgreSQL answers to the question whether it speaks TLS by one byte, before any sign-in.
PING: Final = b"PING\r\n"
SPEAKS_TLS: Final = bytes([0, 0, 0, 8, 4, 210, 22, 47])


class Question(msgspec.Struct, frozen=True):
    address: str
    says: bytes


def web_question(path: str) -> Question:
    """Asks for the address that answers as long as the process lives."""
    return Question(path, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")


async def answers(question: Question, seconds: float = PATIENCE_SECONDS) -> bool:
    """Whether anything comes back in time."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_unix_connection(question.address)
            try:
                writer.write(question.says)
                await writer.drain()
                return bool(await reader.read(1))
            finally:
                writer.close()
    return False


class Answers:
    """When each process answered last."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, float]] = {}

    def heard(self, name: str, pid: int) -> None:
        self._last[name] = pid, time.monotonic()

    def silent_for(self, name: str, pid: int) -> float | None:
        """Seconds since the last answer of this very process; None where it has not answered yet."""
        last = self._last.get(name)
        return None if last is None or last[0] != pid else time.monotonic() - last[1]
