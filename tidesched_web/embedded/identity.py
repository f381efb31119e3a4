"""Which process a number means. Numbers wrap, so a number alone proves nothing: its start time must agree."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path


def started(pid: int) -> str:
    """Return when the process started, as an opaque word; nothing when there is no such process or it is a zombie."""
    if sys.platform == "linux":
        try:
            # The name stands in brackets and may hold blanks; after it, field 3 is the state and field 22 the start.
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] == "Z" else fields[19]
    asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def is_same(pid: int, start: str) -> bool:
    """Tell whether that very process still runs."""
    return pid > 0 and bool(start) and started(pid) == start


def kill_if_same(pid: int, start: str, number: int = signal.SIGKILL) -> None:
    """Send a signal to that very process, if it still runs."""
    if is_same(pid, start):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def descendants(pid: int) -> dict[int, str]:
    """The processes that one has started, and theirs, each with its start; Linux alone tells.

    PostgreSQL puts each of its processes into a group of its own, so a signal to its group reaches none of them.
    """
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text(encoding="latin-1").rpartition(")")[2].split()
            below.setdefault(int(fields[1]), []).append(int(entry.name))
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child in below.get(waiting.pop(), []):
            found[child] = started(child)
            waiting.append(child)
    return found
