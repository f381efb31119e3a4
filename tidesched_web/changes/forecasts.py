"""A change's forecast as rows, and what came of each: no database here.

``expects`` is what the impact said (``run``, ``promised``, ``admitted``, ``reclaimed``); ``outcome`` is ``open`` until
it is known: ``held``, ``missed`` (with the reason of then in ``why``), ``gone`` (the gang left before it could be seen)
or ``overtaken`` (another change was written meanwhile). Only held and missed rows are counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tidesched_web.workloads.sight import reason_within_sight

Row = dict[str, Any]

EXPECTED = {
    "gangs_run": "run",
    "gangs_promised": "promised",
    "gangs_admitted": "admitted",
    "reclaimed_next": "reclaimed",
}
KINDS = tuple(EXPECTED.values())
# Points of a gang's timeline that fulfil an expectation: more than what was expected fulfils it too.
FULFILLED_BY = {
    "run": frozenset({"bound", "running"}),
    "promised": frozenset({"promised", "bound", "running"}),
    "admitted": frozenset({"admitted", "promised", "bound", "running"}),
    "reclaimed": frozenset({"reclaimed"}),
}
OPEN, HELD, MISSED, GONE, OVERTAKEN = "open", "held", "missed", "gone", "overtaken"


def rows_of(impact: Mapping[str, Any]) -> list[Row]:
    """What an impact (of the present version) lets one expect of gangs; a running gang that grows is not followed."""
    start = {"outcome": OPEN, "session": None, "at": None, "why": None}
    return [
        {"gang": found["gang"], "queue": found["queue"], "expects": expects, **start}
        for name, expects in EXPECTED.items()
        for found in impact.get(name) or ()
        if found.get("becomes") != "larger"
    ]


def counts_of(rows: list[Row]) -> dict[str, list[int]]:
    """What was expected → how many of it are decided, and how many of these held."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row["outcome"] in (HELD, MISSED):
            known = counts.setdefault(row["expects"], [0, 0])
            known[0] += 1
            known[1] += row["outcome"] == HELD
    return counts


def within_sight(rows: list[Row], queues: Collection[str] | None) -> tuple[list[Row], int]:
    """The rows of the reader's queues (None = of all), and how many are somebody else's."""
    if queues is None:
        return rows, 0
    shown = []
    for row in rows:
        if row["queue"] not in queues:
            continue
        why = row["why"]
        if why:
            numbers, message = reason_within_sight(why["numbers"], why["message"], queues)
            row = {**row, "why": {**why, "numbers": numbers, "message": message}}  # noqa: PLW2901 - as it is shown
        shown.append(row)
    return shown, len(rows) - len(shown)
