"""Lines on the terminal and in the log file: a coloured prefix for each process, and never a wait for a slow reader."""

import contextlib
import logging
import os
import select
import sys
import time
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


class Output:
    """Where all processes' lines meet.

    A terminal or pipe whose reader has stopped must not stop the product: lines that it does not take at once are
    left out there and counted; the file has them all. The file is bounded.
    """

    def __init__(self, log_file: Path) -> None:
        log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = logging.getLogger("tidesched.processes")
        self._file.setLevel(logging.INFO)
        self._file.propagate = False
        handler = RotatingFileHandler(log_file, maxBytes=_FILE_BYTES, backupCount=1, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        self._file.addHandler(handler)
        self._coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._left_out = 0

    def line(self, process: str, text: str) -> None:
        prefix = f"{process:<{_WIDTH}} |"
        self._file.info("%s %s", prefix, text)
        if self._coloured:
            prefix = f"\x1b[{_COLOURS.get(process.partition('-')[0], 37)}m{prefix}\x1b[0m"
        self._show(f"{prefix} {text}")

    def say(self, text: str) -> None:
        """Write one line of the supervisor's own."""
        self._file.info("%s", text)
        self._show(text, patience=1.0)

    def plainly(self, text: str) -> None:
        """Write one line to the terminal alone: a password has no place in a log file."""
        self._show(text, patience=1.0)

    def step(self, title: str) -> "Step":
        """Return a context that says what is being done and how long it took."""
        return Step(self, title)

    def _show(self, text: str, patience: float = 0.0) -> None:
        if not self._writable(patience):
            self._left_out += 1
            return
        if self._left_out:
            text = f"({self._left_out} lines left out here, see the log file)\n{text}"
            self._left_out = 0
        # A pipe that is writable takes 4096 bytes at once, and a character has at most four.
        self._write(text[:1000] + "\n")

    @staticmethod
    def _writable(patience: float) -> bool:
        try:
            return bool(select.select([], [1], [], patience)[1])
        except (OSError, ValueError):
            return False

    @staticmethod
    def _write(text: str) -> None:
        with contextlib.suppress(OSError):  # the reader has gone: the file still has the line
            os.write(1, text.encode("utf-8", "replace"))


class Step:
    def __init__(self, output: Output, title: str) -> None:
        self._output = output
        self._title = title

    def __enter__(self) -> None:
        self._start = time.monotonic()
        self._output.say(f"  ...  {self._title}")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._output.say(f"  done {self._title} ({time.monotonic() - self._start:.1f} s)")
