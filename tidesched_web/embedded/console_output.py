"""Lines on the terminal and in the log file: a coloured prefix for each process, and never a wait for a slow reader."""

import contextlib
import logging
import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

_COLOURS = {
    "postgres": 34,
    "valkey": 35,
    "simcluster": 33,
    "web": 32,
    "sessions": 36,
    "push": 95,
    "work": 94,
    "beat": 91,
    "prepare": 90,
}
_WIDTH = max(map(len, _COLOURS))
_FILE_BYTES = 5_000_000
_MOST_WAITING = 65_536


class _LogFile(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - its name there
        """Nothing: the supervisor says that the disk is full, and standard error may have no reader."""


class Output:
    """Where all processes' lines meet.

    A terminal or pipe whose reader has stopped must not stop the product: what it does not take waits within bounds,
    and lines beyond them are left out there and counted; the file has them all. The file is bounded.
    """

    def __init__(self, log_file: Path) -> None:
        log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = logging.getLogger("tidesched.processes")
        self._file.setLevel(logging.INFO)
        self._file.propagate = False
        handler = _LogFile(log_file, maxBytes=_FILE_BYTES, backupCount=1, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._file.addHandler(handler)
        self._coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._terminal = _own_terminal()
        self._waiting = bytearray()
        self._left_out = 0

    def line(self, process: str, text: str) -> None:
        prefix = f"{process:<{_WIDTH}} |"
        self._file.info("%s %s", prefix, text)
        if self._coloured:
            prefix = f"\x1b[{_COLOURS.get(process.partition('-')[0], 37)}m{prefix}\x1b[0m"
        self._show(f"{prefix} {text}", _MOST_WAITING)

    def say(self, text: str) -> None:
        """Write one line of the supervisor's own."""
        self._file.info("%s", text)
        self.plainly(text)

    def plainly(self, text: str) -> None:
        """Write one line to the terminal alone: a password has no place in a log file."""
        self._show(text, 2 * _MOST_WAITING)

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Say what is being done, then how long it took."""
        begun = time.monotonic()
        self.say(f"  ...  {title}")
        yield
        self.say(f"  done {title} ({time.monotonic() - begun:.1f} s)")

    def _show(self, text: str, most_waiting: int) -> None:
        if len(self._waiting) > most_waiting:
            self._left_out += 1
        else:
            if self._left_out:
                text = f"({self._left_out} lines left out here, see the log file)\n{text}"
                self._left_out = 0
            self._waiting += f"{text[:1000]}\n".encode("utf-8", "replace")
        self.flush()

    def flush(self, patience: float = 0.0) -> None:
        """Show what waits, as far as the terminal takes it."""
        try:
            while self._waiting and select.select([], [self._terminal], [], patience)[1]:
                # A pipe that is writable takes so much at once.
                del self._waiting[: os.write(self._terminal, self._waiting[: select.PIPE_BUF])]
        except BlockingIOError:
            pass
        except (OSError, ValueError):  # the reader has gone: the file still has the lines
            self._waiting.clear()


def _own_terminal() -> int:
    """Open standard output once more, so that no write waits; the flag on the given one would bind its other users."""
    if not stat.S_ISREG(os.fstat(1).st_mode):
        with contextlib.suppress(OSError):
            return os.open("/proc/self/fd/1", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    return 1
