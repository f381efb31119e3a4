"""Notes of processes: of each that was replaced because it hung, and of each that ends whenever it is started.

Of one that hung: written by who ended it, read in by who comes after.

Who ends a process may have no database, or the very process that has one is the one that hangs. So the note is a file
first, and becomes a row as soon as a process of the same folder can write one.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tidesched_web import env
from tidesched_web.common.progress import Report, Standing, folder

PREFIX, ENDING_PREFIX = "replaced-", "ending-"


def place() -> Path | None:
    """Where the notes lie: a folder that outlives the process, and in containers the container."""
    named = env.text("TIDESCHED_NOTES_DIR")
    return Path(named) if named else folder()


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """One process that was ended; ``key`` makes the row of it one row."""

    key: str
    role: str
    host: str
    pid: int
    at: float  # seconds of the wall clock
    activity: str
    step: str
    seconds: float
    ended_by: str


def write(where: Path, report: Report, standing: Standing, *, ended_by: str) -> Replaced:
    note = Replaced(
        # Of two that end the same process one note comes of it.
        key=hashlib.sha256(f"{report.host} {report.pid} {report.born}".encode()).hexdigest()[:32],
        role=report.role,
        host=report.host,
        pid=report.pid,
        at=time.time(),
        activity=standing.activity,
        step=standing.at,
        seconds=standing.seconds,
        ended_by=ended_by,
    )
    _write(where / f"{PREFIX}{note.key}.json", note)
    return note


def _write(path: Path, note: msgspec.Struct) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(note))
    new.rename(path)


def waiting(where: Path) -> bool:
    return any(where.glob(f"{PREFIX}*.json"))


def take(where: Path, keep: Callable[[Replaced], None]) -> int:
    """Give each note to ``keep`` and delete it; one that ``keep`` fails on stays. Two readers do no harm."""
    taken = 0
    for path in sorted(where.glob(f"{PREFIX}*.json")):
        try:
            note = msgspec.json.decode(path.read_bytes(), type=Replaced)
        except FileNotFoundError:
            continue
        except (OSError, msgspec.DecodeError):
            path.unlink(missing_ok=True)
            continue
        keep(note)
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        taken += 1
    return taken


class Ending(msgspec.Struct, frozen=True):
    """A process that ends each time it is started: how many times in a row, and its last error."""

    role: str
    times: int
    last: str

    def __str__(self) -> str:
        return f"it ends each time it is started, {self.times} times so far; its last error: {self.last}"


def write_ending(where: Path, ending: Ending) -> None:
    """Leave a note, instead of the one before."""
    with contextlib.suppress(OSError):
        _write(where / f"{ENDING_PREFIX}{ending.role}.json", ending)


def forget_ending(where: Path, role: str) -> None:
    with contextlib.suppress(OSError):
        (where / f"{ENDING_PREFIX}{role}.json").unlink(missing_ok=True)


def endings(where: Path) -> dict[str, Ending]:
    notes = {}
    for path in where.glob(f"{ENDING_PREFIX}*.json"):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            note = msgspec.json.decode(path.read_bytes(), type=Ending)
            notes[note.role] = note
    return notes
