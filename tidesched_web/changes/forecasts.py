"""A change's forecast as rows, and what came of each: no database here.

``expects`` is what the impact said (``run``, ``grow``: a running gang has ``pods`` of its pods on nodes, ``promised``,
``admitted``, ``reclaimed``, ``lose``: it does not get the place that it had else, ``was``); ``cards`` are those of the
gang. ``outcome`` is ``open`` until it is known:

- ``held``: it came in the time that was promised; ``session`` and ``at`` say when;
- ``missed``: it did not, with the reason of then in ``why``; with ``at`` it came later; who was to lose a place got it
  then;
- ``gone``: the gang left before it could be seen;
- ``overtaken``: it cannot be judged, whatever came of it, since another change that reaches the gang was written in
  that time (``why``), no session ran, or it had come already when the change was written.

Only held and missed rows are counted.
"""

from collections.abc import Collection, Mapping
from typing import Any

from tidesched_web.workloads.sight import reason_within_sight

Row = dict[str, Any]

EXPECTED = {
    "gangs_run": "run",
    "gangs_promised": "promised",
    "gangs_admitted": "admitted",
    "gangs_lose": "lose",
    "reclaimed_next": "reclaimed",
}
GROW, LOSE = "grow", "lose"
KINDS = ("run", GROW, "promised", "admitted", LOSE, "reclaimed")
# Points of a gang's timeline that fulfil an expectation: more than what was expected fulfils it too.
FULFILLED_BY = {
    "run": frozenset({"bound", "running"}),
    GROW: frozenset(),  # its timeline has no point for one more pod
    "promised": frozenset({"promised", "bound", "running"}),
    "admitted": frozenset({"admitted", "promised", "bound", "running"}),
    "reclaimed": frozenset({"reclaimed"}),
}
OPEN, HELD, MISSED, GONE, OVERTAKEN = "open", "held", "missed", "gone", "overtaken"


def rows_of(impact: Mapping[str, Any]) -> list[Row]:
    start = {"outcome": OPEN, "session": None, "at": None, "why": None}
    rows = []
    for name, expects in EXPECTED.items():
        for found in impact.get(name) or ():
            cards = sorted(found.get("cards") or ())
            row = {"gang": found["gang"], "queue": found["queue"], "expects": expects, "cards": cards, **start}
            if found.get("becomes") == "larger":
                row |= {"expects": GROW, "pods": found.get("pods", 0)}
            if expects == LOSE:
                row["was"] = "run" if found["was"] == "running" else found["was"]
            if row.get("was") != "larger":  # no timeline has a point for one pod less
                rows.append(row)
    return rows


def counts_of(rows: list[Row]) -> dict[str, list[int]]:
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row["outcome"] in (HELD, MISSED):
            known = counts.setdefault(row["expects"], [0, 0])
            known[0] += 1
            known[1] += row["outcome"] == HELD
    return counts


def within_sight(rows: list[Row], queues: Collection[str] | None) -> tuple[list[Row], int]:
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
