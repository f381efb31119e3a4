"""Processes that live but do not move: found by what they say of their progress, or by their silence when asked."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from tidesched_web.common.progress import HANG_SECONDS, START_SECONDS, Report, Standing, read
from tidesched_web.embedded import identity

FOLDER: Final = "progress"
# A process that has answered once and then not for so long is replaced; with its start it is back within a minute.
SILENT_SECONDS: Final = HANG_SECONDS
EVERY_SECONDS: Final = 3.0
# Who looked no more often than this was stopped itself, and so, perhaps, was all that it looks after.
_LOOK_SECONDS: Final = 5.0
# Valkey answers to a word. PostgreSQL answers to the question whether it speaks TLS by one byte, before any sign-in.
PING: Final = b"PING\r\n"
SPEAKS_TLS: Final = bytes([0, 0, 0, 8, 4, 210, 22, 47])


class Question(msgspec.Struct, frozen=True):
    """The smallest question of a protocol: a stopped process keeps its sockets, and nothing ever comes back."""

    address: str
    says: bytes


def web_question(path: str, page: str = "/healthz") -> Question:
    """Asks for a page; that of the default answers as long as the process lives."""
    return Question(path, f"GET {page} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())


async def ask(question: Question, most: int = 1, patience: float = 10.0) -> bytes:
    """The first bytes that come back in time, or all of them (-1); none from one that does not answer."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_unix_connection(question.address)
            try:
                writer.write(question.says)
                await writer.drain()
                return await reader.read(most)
            finally:
                writer.close()
    return b""


def hung(folder: Path, role: str, now: float) -> list[tuple[Report, Standing]]:
    """The processes of a role, and those that they have forked, that live and do not move."""
    standing = []
    for path in [folder / f"{role}.json", *folder.glob(f"{role}.*.json")]:
        if (report := read(path)) is None:
            continue
        if not identity.is_same(report.pid, report.started):
            path.unlink(missing_ok=True)
        elif now - report.written > HANG_SECONDS:
            standing.append((report, Standing("process", "stopped", round(now - report.written, 1))))
        elif report.standing:
            standing.append((report, report.standing))
    return standing


class HangWatch:
    """What is known of the processes of one installation."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self._clock = clock
        self._looked_at = clock()
        self._fair_from = float("-inf")
        self.answered: dict[int, float] = {}

    def begin(self) -> None:
        """Forget what the processes of an earlier start have said."""
        for path in self.folder.glob("*"):
            path.unlink(missing_ok=True)

    def look(self, *, room: bool = True) -> None:
        """To be called every second or so, before the processes are judged; without ``room`` none can say anything."""
        now = self._clock()
        if not room or now - self._looked_at > _LOOK_SECONDS:
            self._fair_from = now + HANG_SECONDS / 2
        self._looked_at = now

    def heard(self, pid: int) -> None:
        """A process that is asked has answered."""
        self.answered[pid] = self._clock()

    def forget(self, pid: int) -> None:
        """A process has ended: another one may get its number."""
        self.answered.pop(pid, None)

    def standing(self, role: str, pid: int, born: float, *, asked: bool) -> list[tuple[Report, Standing]]:
        """Which processes of a role are to be replaced, and why; the first was started at ``born``."""
        now = self._clock()
        if now < self._fair_from:
            return []
        report = read(self.folder / f"{role}.json")
        if asked and pid in self.answered:
            at, since, patience = "silent", self.answered[pid], SILENT_SECONDS
        elif asked:
            at, since, patience = "starting", born, 2 * START_SECONDS
        elif report is None or report.pid != pid:
            at, since, patience = "starting", born, START_SECONDS
        else:
            return hung(self.folder, role, now)
        if now - since <= patience:
            return []
        start = identity.started(pid)
        silent = Report(role=role, host=socket.gethostname()[:60], pid=pid, started=start, born=born, written=born)
        return [(silent, Standing("process", at, round(now - since, 1)))]
