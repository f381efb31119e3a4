"""What a process says of its own progress: not that it lives, but that its work moves on.

Each long-lived loop and each task is an *activity* and says each time that it has moved. A thread writes every few
seconds which of them has stood still for longer than `HANG_SECONDS`, to a file. Who looks after the process
(`embedded/hangs.py`) ends one that says so, or whose file has grown old: a stopped process, a loop that never lets
another thread run.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tidesched_web import env
from tidesched_web.embedded import identity

HANG_SECONDS = float(env.text("TIDESCHED_HANG_SECONDS", "40"))
WRITE_SECONDS = min(2.0, HANG_SECONDS / 10)
# A process that begins reads the whole program first.
START_SECONDS = float(env.text("TIDESCHED_START_SECONDS", "120"))


class Standing(msgspec.Struct, frozen=True):
    activity: str
    at: str
    seconds: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The file of one process. Times are the machine's monotonic seconds, the same for all its processes."""

    role: str
    host: str
    pid: int
    started: str  # with the number it is this process and no other (`embedded.identity`)
    born: float
    written: float
    private_bytes: int = 0
    standing: Standing | None = None


class _Activity(msgspec.Struct):
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
            self._activities[name] = _Activity(at, self._clock())
        self._mine.names = [*self._names(), name]

    def end(self, name: str) -> None:
        with self._lock:
            self._activities.pop(name, None)
        self._mine.names = [known for known in self._names() if known != name]

    @contextlib.contextmanager
    def activity(self, name: str, at: str = "") -> Iterator[None]:
        self.begin(name, at)
        try:
            yield
        finally:
            self.end(name)

    def touch(self, *names: str, at: str = "") -> None:
        """These have moved, whichever thread says so; nothing happens to one that has not begun."""
        with self._lock:
            for name in names:
                if activity := self._activities.get(name):
                    activity.moved, activity.at = self._clock(), at or activity.at

    def step(self, at: str = "") -> None:
        self.touch(*self._names(), at=at)

    def of(self, name: str) -> Standing:
        with self._lock:
            activity = self._activities.get(name)
        if activity is None:
            return Standing(name, "", 0.0)
        return Standing(name, activity.at, round(self._clock() - activity.moved, 1))

    def seconds(self, name: str) -> float:
        return self.of(name).seconds

    def standing(self, patience: float = HANG_SECONDS) -> Standing | None:
        longest = max((self.of(name) for name in list(self._activities)), key=lambda one: one.seconds, default=None)
        return longest if longest and longest.seconds > patience else None

    def _names(self) -> list[str]:
        return getattr(self._mine, "names", [])


progress = Progress()
os.register_at_fork(after_in_child=progress.forget)


class Reporter(threading.Thread):
    """``excuse``: the server that does not answer; what waits for it does not hang, nor soon after its return."""

    def __init__(
        self, path: Path | None, role: str, *, of: Progress = progress, excuse: Callable[[], str] = lambda: ""
    ) -> None:
        super().__init__(name="progress", daemon=True)
        self._path, self._role, self._of, self._excuse = path, role, of, excuse
        self._born, self._excused_until = time.monotonic(), 0.0
        self.last: Report | None = None

    def run(self) -> None:
        while True:
            self.write()
            time.sleep(WRITE_SECONDS)

    def write(self) -> Report:
        standing = self._of.standing()
        if standing and self._excuse():
            self._excused_until = time.monotonic() + HANG_SECONDS / 2
        now = time.monotonic()
        self.last = Report(
            role=self._role, host=socket.gethostname()[:60], pid=os.getpid(), started=identity.started(os.getpid()),
            born=self._born, written=now, private_bytes=private_bytes(),
            standing=None if now < self._excused_until else standing,
        )  # fmt: skip
        if self._path is not None:
            with contextlib.suppress(OSError):  # a full disk stops nothing
                replace(self._path, msgspec.json.encode(self.last))
        return self.last


def private_bytes() -> int:
    """Memory of this process that it shares with no other; 0 where that is not known."""
    try:
        _size, resident, shared = Path("/proc/self/statm").read_text().split()[:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def folder() -> Path | None:
    place = env.text("TIDESCHED_PROGRESS_DIR")
    return Path(place) if place else None


def read(path: Path) -> Report | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError):
        return None


def replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)
