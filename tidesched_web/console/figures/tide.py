"""Where in the tide are we? Stacked areas of inference, training and borrowed cards under the hardware line."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from django.utils.translation import gettext as _

from tidesched_web.console.figures import base
from tidesched_web.console.figures.palette import palette

FIGURES = ("total", "inference", "training", "borrowed", "foreign", "idle", "waiting")
MAX_POINTS = 320
# How far above the hardware the picture reaches.
HEADROOM = 1.75


@dataclass(frozen=True, slots=True)
class TideRow:
    """All cards that were asked for at one moment, in cards; training without what is borrowed."""

    at: dt.datetime
    total: float
    inference: float
    training: float
    borrowed: float
    foreign: float
    idle: float
    waiting: float


Point = tuple[dt.datetime, str, int, int, int, int, int, int, int]


def rows(points: Iterable[Point], start: dt.datetime, end: dt.datetime, *, steps: int = MAX_POINTS) -> list[TideRow]:
    """Sample the step functions of all card types at even times and add them up.

    `points` are (at, card, total, inference, training, borrowed, foreign, idle, waiting) in milli-cards by time; a card
    type counts from its first point on. Before the first point of all there is nothing, not zero.
    """
    ordered = list(points)
    if not ordered or end <= start:
        return []
    start = max(start, ordered[0][0])
    if end <= start:
        return []
    step = (end - start) / steps
    now: dict[str, tuple[int, ...]] = {}
    found, place = [], 0
    for number in range(steps + 1):
        at = start + step * number
        while place < len(ordered) and ordered[place][0] <= at:
            now[ordered[place][1]] = ordered[place][2:]
            place += 1
        if now:
            total, inference, training, borrowed, foreign, idle, waiting = (
                sum(values) / 1000 for values in zip(*now.values(), strict=True)
            )
            found.append(TideRow(at, total, inference, training - borrowed, borrowed, foreign, idle, waiting))
    return found


def figure(series: list[TideRow], theme: str) -> go.Figure:
    """Draw it: inference below (it rules), training on top, borrowed hatched, what is idle left free up to the line."""
    colours = palette(theme)
    if not series:
        return go.Figure()
    x = [base.local(row.at) for row in series]
    areas: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
        ("inference", _("Inference"), colours.inference, {}),
        ("training", _("Training"), colours.training, {}),
        (
            "borrowed",
            _("Borrowed"),
            colours.training,
            {"shape": "/", "size": 6, "solidity": 0.35, "bgcolor": colours.training, "fgcolor": colours.borrowed_ink},
        ),
        (
            "foreign",
            _("Foreign"),
            colours.foreign,
            {"shape": "\\", "size": 6, "solidity": 0.5, "fgcolor": colours.foreign, "fillmode": "overlay"},
        ),
    )
    traces: list[go.Scatter] = []
    labels, height = [], 0.0
    last = series[-1]
    for key, word, colour, pattern in areas:
        values = [getattr(row, key) for row in series]
        if key == "foreign" and not any(values):
            continue
        traces.append(
            go.Scatter(
                x=x,
                y=values,
                name=word,
                mode="lines",
                stackgroup="cards",
                line={"width": 0.5, "color": colour, "shape": "hv"},
                fillcolor=colour,
                fillpattern=pattern or None,
                hovertemplate="%{y:,~r}",
            )
        )
        size = getattr(last, key)
        if size:
            labels.append(base.label(height + size / 2, word, colours.text))
        height += size
    totals = [row.total for row in series]
    traces.append(
        go.Scatter(
            x=x,
            y=totals,
            name=_("Hardware"),
            mode="lines",
            line={"width": 2, "dash": "dash", "color": colours.tick, "shape": "hv"},
            hovertemplate="%{y:,~r}",
        )
    )
    labels.append(base.label(last.total, _("Hardware"), colours.text))
    demand = [row.total + row.waiting for row in series]
    traces.append(
        go.Scatter(
            x=x,
            y=demand,
            customdata=[row.waiting for row in series],
            name=_("Waiting"),
            mode="lines",
            line={"width": 2, "dash": "dot", "color": colours.waiting, "shape": "hv"},
            hovertemplate="%{customdata:,~r}",
        )
    )
    # Demand far beyond the hardware would press the tide flat: it leaves at the top, and its label says how much it is.
    full = max(totals)
    top = max(min(max(demand), full * HEADROOM) if full else max(demand), 1) * 1.06
    if last.waiting:
        # The line stands on the hardware, so the axis does not say how much it is.
        word = f"{_('Waiting')} {'+' if demand[-1] <= top else '↑'} {last.waiting:,.0f}"
        labels.append(base.label(min(demand[-1], top), word, colours.text))
    layout = base.layout(colours, unit=_("cards"), annotations=base.spread(labels, top))
    layout.yaxis.range = [0, top]
    return go.Figure(traces, layout)
