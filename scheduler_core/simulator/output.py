"""What a replay shows while it runs, and what it leaves behind."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import BinaryIO

import msgspec
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from scheduler_core.model.errors import BadInput
from scheduler_core.simulator.metrics import Report, report_to_json

_WIDTH = 100


def report_table(report: Report) -> str:
    """Two tables in plain text: the numbers, and the allocation of each card type."""
    numbers = Table("what", "value", title=f"Replay, seed {report.seed}, scale {report.scale:g}")
    hours = report.card_hours
    for what, value in (
        ("sessions", f"{report.sessions:,}"),
        ("binds", f"{report.binds:,}"),
        ("reclaims", f"{report.reclaims:,}"),
        ("evictions", ", ".join(f"{kind} {count:,}" for kind, count in sorted(report.evictions.items()))),
        ("gangs broken", f"{report.gangs_broken:,}"),
        ("steps of gangs partly running", f"{report.gangs_partial_steps:,}"),
        ("quota violations", f"{report.quota_violations:,}"),
        ("writes refused by the cluster", f"{report.refused_writes:,}"),
        ("card hours", ", ".join(f"{kind} {value:,.0f}" for kind, value in hours.items())),
        ("hours with three card types full", f"{report.saturated_hours:.2f}"),
        ("… longest stretch", f"{report.saturated_stretch_hours:.2f}"),
        ("… in means of five minutes", f"{report.saturated_5min_hours:.2f}"),
        ("… longest stretch of these", f"{report.saturated_5min_stretch_hours:.2f}"),
        *((f"promise, {kind}", _seconds(values)) for kind, values in report.promise_s.items()),
        *((f"wait to running, {kind}", _seconds(values)) for kind, values in report.wait_s.items()),
    ):
        numbers.add_row(what, value)
    cards = Table("card", "allocated (mean)", "allocated (max)", "hours at 95 % or more")
    for card, share in report.allocation.items():
        cards.add_row(card, f"{share['mean']:.1%}", f"{share['max']:.1%}", f"{share['saturated_hours']:.2f}")
    console = Console(file=StringIO(), width=_WIDTH, color_system=None)
    console.print(numbers)
    console.print(cards)
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def _seconds(values: dict[str, float | None]) -> str:
    return ", ".join(f"{name} {'–' if value is None else f'{value:,.1f} s'}" for name, value in values.items())


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
