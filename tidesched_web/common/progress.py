"""What a process says of its own progress: not that it lives, but that its work moves on.

Each long-lived loop and each task is an *activity*. It says each time that it has moved; one that has not for longer
than `HANG_SECONDS` stands still. A thread writes all of it to a file every few seconds. What looks after the process
reads the file: one that says that something stands still, or that has grown old itself (a stopped process, a loop that
never lets another thread run), is of a process to be replaced. Needs neither Django nor a server.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tidesched_web import env

HANG_SECONDS = float(env.text("TIDESCHED_HANG_SECONDS", "40"))
WRITE_SECONDS = min(2.0, HANG_SECONDS / 10)
# A process that begins reads the whole program first.
START_SECONDS = float(env.text("TIDESCHED_START_SECONDS", "120"))


class Standing(msgspec.Struct, frozen=True):
    """An activity that does not move: which one, what it was at, and for how long."""

    activity: str
    at: str
    seconds: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The file of one process. Times are the machine's monotonic seconds, the same for all its processes."""

    role: str
    host: str
    pid: int
    parent: int
    born: float
    written: float
    activities: int
    private_bytes: int = 0
    standing: Standing | None = None
    # While a server does not answer, what waits for it does not hang.
    excuse: str = ""


class _Activity(msgspec.Struct):
    name: str
    at: str
    moved: float


class Progress:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        """Begin anew: what is forked begins without the threads, and so without the activities, of its parent."""
        self._lock = threading.Lock()
        self._activities: dict[str, _Activity] = {}
        self._mine = threading.local()

    def begin(self, name: str, at: str = "") -> None:
        """An activity of this thread begins; what the thread says from now on is said of it."""
        with self._lock:
            self._activities[name] = _Activity(name, at, self._clock())
        self._mine.names = [*self._names(), name]

    def end(self, name: str) -> None:
        """It is over: nothing is expected of it any more."""
        with self._lock:
            self._activities.pop(name, None)
        self._mine.names = [one for one in self._names() if one != name]

    @contextlib.contextmanager
    def activity(self, name: str, at: str = "") -> Iterator[None]:
        self.begin(name, at)
        try:
            yield
        finally:
            self.end(name)

    def moved(self, name: str, at: str = "") -> None:
        """An activity has moved, whichever thread says so; one that is not known begins."""
        with self._lock:
            before = self._activities.get(name)
            self._activities[name] = _Activity(name, at or (before.at if before else ""), self._clock())

    def touch(self, name: str) -> None:
        """The same of one that is known; of others nothing."""
        with self._lock:
            if (found := self._activities.get(name)) is not None:
                found.moved = self._clock()

    def step(self, at: str = "") -> None:
        """All activities of this thread have moved; ``at`` is what comes now. Of a thread without one: nothing."""
        now = self._clock()
        with self._lock:
            for name in self._names():
                if (found := self._activities.get(name)) is not None:
                    found.moved, found.at = now, at or found.at

    def seconds(self, name: str) -> float:
        """How long an activity has not moved; 0 for one that is not known."""
        with self._lock:
            found = self._activities.get(name)
        return self._clock() - found.moved if found else 0.0

    def at(self, name: str) -> str:
        """What an activity said last that it was at."""
        with self._lock:
            found = self._activities.get(name)
        return found.at if found else ""

    def standing(self, patience: float = HANG_SECONDS) -> Standing | None:
        """The activity that has stood still longest, if that is longer than ``patience``."""
        now = self._clock()
        with self._lock:
            found = min(self._activities.values(), key=lambda one: (one.moved, one.name), default=None)
            if found is None or now - found.moved <= patience:
                return None
            return Standing(found.name, found.at, round(now - found.moved, 1))

    def __len__(self) -> int:
        return len(self._activities)

    def _names(self) -> list[str]:
        return getattr(self._mine, "names", [])


progress = Progress()
os.register_at_fork(after_in_child=progress.forget)


class Reporter(threading.Thread):
    """Writes the file of this process for as long as the process lives.

    ``excuse`` says which server does not answer, where something stands still. After that server is back there is half
    the patience more, for connections that have to be made anew. ``last`` is the newest report.
    """

    def __init__(
        self,
        path: Path | None,
        role: str,
        *,
        of: Progress = progress,
        excuse: Callable[[], str] = lambda: "",
    ) -> None:
        super().__init__(name="progress", daemon=True)
        self._path, self._role, self._of, self._ask = path, role, of, excuse
        self._born, self._excused_at = time.monotonic(), float("-inf")
        self.last: Report | None = None

    def run(self) -> None:
        while True:
            self.write()
            time.sleep(WRITE_SECONDS)

    def write(self) -> Report:
        """Look once, and write what there is to say."""
        standing = self._of.standing()
        report = Report(
            role=self._role,
            host=socket.gethostname()[:60],
            pid=os.getpid(),
            parent=os.getppid(),
            born=self._born,
            written=time.monotonic(),
            activities=len(self._of),
            private_bytes=private_bytes(),
            standing=standing,
            excuse=self._excuse() if standing else "",
        )
        self.last = report
        if self._path is not None:
            with contextlib.suppress(OSError):  # a full disk stops nothing; the file grows old, and that is said
                _replace(self._path, msgspec.json.encode(report))
        return report

    def _excuse(self) -> str:
        if excuse := self._ask():
            self._excused_at = time.monotonic()
            return excuse
        return "a server was away" if time.monotonic() - self._excused_at < HANG_SECONDS / 2 else ""


def private_bytes() -> int:
    """Memory of this process that it shares with no other; 0 where that is not known."""
    try:
        _size, resident, shared = Path("/proc/self/statm").read_text().split()[:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def folder() -> Path | None:
    """Where the processes of this installation, or of this container, write their files; None = nowhere."""
    place = env.text("TIDESCHED_PROGRESS_DIR")
    return Path(place) if place else None


def file_of(role: str, pid: int | None = None) -> Path | None:
    """The file of a role's process, or of one of the processes that it has forked."""
    place = folder()
    if place is None:
        return None
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place / (f"{role}.json" if pid is None else f"{role}.{pid}.json")


def read(path: Path) -> Report | None:
    """What a process said last; None where it has said nothing that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError):
        return None


def why_replaced(report: Report, now: float, patience: float = HANG_SECONDS) -> Standing | None:
    """What speaks for the replacement of the process that said this; None = it moves, or waits for a server."""
    silent = now - report.written
    if silent > patience:
        return Standing("process", "stopped", round(silent, 1))
    return None if report.excuse else report.standing


def _replace(path: Path, content: bytes) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)
