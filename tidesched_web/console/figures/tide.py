from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from django.utils.translation import gettext as _

from tidesched_web.console.figures import base
from tidesched_web.console.figures.palette import Palette, palette
from tidesched_web.console.figures.tide_rows import TideRow, runs

# The panel of what waits takes this share of the height; between the panels there is some air.
WAITING_SHARE, AIR = 0.22, 0.09


def figure(series: Sequence[TideRow | None], theme: str, *, unit: str, quota: bool) -> go.Figure:
    colours = palette(theme)
    stretches = list(runs(series))
    if not stretches:
        return go.Figure()
    traces = [trace for number, run in enumerate(stretches) for trace in _stretch(run, number, colours, quota=quota)]
    known = [row for run in stretches for row in run]
    last = known[-1]
    top = max(*(max(row.total, row.quota or 0) for row in known), 1) * 1.06
    most_waiting = max(*(row.waiting for row in known), 1) * 1.15
    labels = base.spread(_labels(last, colours, quota=quota), top)
    waiting = base.label(last.waiting, f"{_('Waiting')} {last.waiting:,.0f}", colours.text) | {"yref": "y2"}
    layout = base.layout(colours, unit=unit, times=True, annotations=[*labels, waiting])
    layout.yaxis.range, layout.yaxis.domain = [0, top], [WAITING_SHARE + AIR, 1]
    layout.yaxis2 = layout.yaxis.to_plotly_json() | {
        "range": [0, most_waiting],
        "domain": [0, WAITING_SHARE],
        "nticks": 3,
        "title": {"text": _("waiting"), "standoff": 8},
    }
    layout.xaxis.anchor = "y2"
    if series[-1] is None:  # up to now nothing is known: the present stays on the right all the same
        layout.xaxis.range = [base.local(known[0].at), base.local(known[0].at + (last.at - known[0].at) * 1.02)]
    return go.Figure(traces, layout)


def _labels(last: TideRow, colours: Palette, *, quota: bool) -> list[dict[str, Any]]:
    labels, height = [], 0.0
    for word, size in (
        (_("Inference"), last.inference),
        (_("Training"), last.training - last.borrowed),
        (_("Borrowed"), last.borrowed),
        (_("Foreign"), last.foreign),
    ):
        if size:
            labels.append(base.label(height + size / 2, word, colours.text))
        height += size
    labels.append(base.label(last.total, _("Hardware"), colours.text))
    if quota and last.quota is not None:
        labels.append(base.label(last.quota, _("Inference quota"), colours.text))
    return labels


def _stretch(run: list[TideRow], number: int, colours: Palette, *, quota: bool) -> list[go.Scatter]:
    x = [base.local(row.at) for row in run]
    hatched = {"shape": "/", "size": 6, "solidity": 0.35, "bgcolor": colours.training, "fgcolor": colours.borrowed_ink}
    striped = {"shape": "\\", "size": 6, "solidity": 0.5, "fgcolor": colours.foreign, "fillmode": "overlay"}
    inference, borrowed = [row.inference for row in run], [row.borrowed for row in run]
    training, foreign = [row.training for row in run], [row.foreign for row in run]
    own = [row.training - row.borrowed for row in run]
    areas: list[tuple[str, list[float], list[float], str, dict[str, Any] | None]] = [
        (_("Inference"), inference, inference, colours.inference, None),
        (_("Training"), own, training, colours.training, None),
        (_("Borrowed, part of training"), borrowed, borrowed, colours.training, hatched),
    ]
    if any(foreign):
        areas.append((_("Foreign"), foreign, foreign, colours.foreign, striped))
    traces = [
        go.Scatter(
            x=x,
            y=heights,
            customdata=said,
            name=word,
            mode="lines",
            stackgroup=f"cards{number}",
            line={"width": 0.5, "color": colour, "shape": "hv"},
            fillcolor=colour,
            fillpattern=pattern,
            hovertemplate="%{customdata:,.2~f}",
        )
        for word, heights, said, colour, pattern in areas
    ]
    traces.append(_line(x, [row.total for row in run], _("Hardware"), {"dash": "dash", "color": colours.tick}))
    if quota and any(row.quota is not None for row in run):
        line = {"width": 2.5, "color": colours.tick}
        traces.append(_line(x, [row.quota for row in run], _("Inference quota"), line))
    waiting = _line(x, [row.waiting for row in run], _("Waiting"), {"color": colours.waiting})
    waiting.update(yaxis="y2", fill="tozeroy")
    return [*traces, waiting]


def _line(x: list[str], y: Sequence[float | None], word: str, line: dict[str, Any]) -> go.Scatter:
    style = {"width": 2, "shape": "hv"} | line
    return go.Scatter(x=x, y=list(y), name=word, mode="lines", line=style, hovertemplate="%{y:,.2~f}")
