"""Processes that live but do not move: found by what they say of their progress, ended, and noted."""

import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path

from tidesched_web.common import incidents
from tidesched_web.common.progress import HANG_SECONDS, START_SECONDS, Report, Standing, read, why_replaced
from tidesched_web.embedded.asking import SILENT_SECONDS

FOLDER = "progress"
# A process that looked no more often than this was stopped itself, and so, perhaps, was all that it looks after.
_LOOK_SECONDS = 5.0


class HangWatch:
    """What is known of the processes of one installation. ``say`` gets a line for each that is to be replaced."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self._clock = clock
        self._looked_at = clock()
        self._fair_from = float("-inf")

    def begin(self) -> None:
        """Forget what the processes of an earlier start have said; notes of those that were replaced stay."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self.folder.glob("*.json"):
            if not path.name.startswith(incidents.PREFIX):
                path.unlink(missing_ok=True)

    def look(self) -> None:
        """To be called every second or so, before the processes are judged."""
        now = self._clock()
        if now - self._looked_at > _LOOK_SECONDS:
            self._fair_from = now + HANG_SECONDS / 2
        self._looked_at = now

    def hung(self, name: str, pid: int, born: float) -> Standing | None:
        """Why a process is to be replaced that was started at ``born``; None while it moves."""
        now = self._clock()
        if now < self._fair_from:
            return None
        report = read(self.folder / f"{name}.json")
        if report is None or report.pid != pid:
            return Standing("process", "starting", round(now - born, 1)) if now - born > START_SECONDS else None
        return why_replaced(report, now)

    def silent(self, seconds: float | None, born: float) -> Standing | None:
        """The same for a process that is asked, ``seconds`` after its last answer; None of them = none has come yet."""
        now = self._clock()
        if now < self._fair_from:
            return None
        if seconds is None:
            return Standing("process", "starting", round(now - born, 1)) if now - born > 2 * START_SECONDS else None
        return Standing("process", "silent", round(seconds, 1)) if seconds > SILENT_SECONDS else None

    def note(self, name: str, pid: int, born: float, standing: Standing) -> None:
        """Leave a note for the status page."""
        report = read(self.folder / f"{name}.json")
        if report is None or report.pid != pid:
            report = Report(
                role=name, host=socket.gethostname()[:60], pid=pid, parent=0, born=born, written=born, activities=0,
            )  # fmt: skip
        with contextlib.suppress(OSError):
            incidents.write(self.folder, report, standing, ended_by="supervisor")
