"""A replay's report for a person."""

from io import StringIO

from rich.console import Console
from rich.table import Table

from scheduler_core.simulator.metrics import Report

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
