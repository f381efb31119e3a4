"""What a replay shows while it runs, and what it leaves behind."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from scheduler_core.model.errors import BadInput
from scheduler_core.simulator.metrics import Report, report_to_json
from scheduler_core.simulator.report_table import report_table

_HOUR = 3600.0
_BUFFER = 1 << 20


class Progress(msgspec.Struct, frozen=True):
    """How far a replay is: sessions done and in all, seconds of virtual time, reclaims so far."""

    session: int
    sessions: int
    seconds: float
    reclaims: int


@contextlib.contextmanager
def show_progress() -> Iterator[Callable[[Progress], None]]:
    """A progress bar on stderr; a line at each tenth where stderr is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _tenths()
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("replay", total=None)
        yield lambda at: bar.update(task, total=at.sessions, completed=at.session, description=_sentence(at))


def _tenths() -> Callable[[Progress], None]:
    def show(at: Progress) -> None:
        if at.session * 10 // at.sessions > (at.session - 1) * 10 // at.sessions:
            sys.stderr.write(f"{at.session / at.sessions:4.0%}  {_sentence(at)}\n")
            sys.stderr.flush()

    return show


def _sentence(at: Progress) -> str:
    return f"{at.seconds / _HOUR:5.1f} h, {at.session:,} sessions, {at.reclaims:,} reclaims"


@contextlib.contextmanager
def open_trace(name: str) -> Iterator[BinaryIO]:
    """The file of ``--trace``. Raises BadInput: ``unwritable_file``."""
    try:
        file = Path(name).open("wb", buffering=_BUFFER)  # noqa: SIM115 - closed below, errors of opening are separate
    except OSError as error:
        raise _unwritable(name, error) from None
    with file:
        yield file


def write_report(report: Report, *, as_json: bool, out: str | None) -> None:
    """Write the report to the file ``out``, or to stdout. Raises BadInput: ``unwritable_file``."""
    text = json.dumps(report_to_json(report), sort_keys=True, indent=1) + "\n" if as_json else report_table(report)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        Path(out).write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(out, error) from None


def _unwritable(name: str, error: OSError) -> BadInput:
    return BadInput("unwritable_file", f"cannot be written: {error.strerror}", file=name)
