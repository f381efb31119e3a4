import datetime as dt
from collections.abc import Iterable, Sequence

import plotly.graph_objects as go
from django.utils.translation import gettext as _

from tidesched_web.console.figures import base
from tidesched_web.console.figures.palette import Palette, palette
from tidesched_web.console.figures.tide_rows import runs, silences
from tidesched_web.scheduling.selectors import TideMoment
from tidesched_web.scheduling.tenant_use_selectors import TenantUse


def with_gaps(series: Iterable[TenantUse], moments: Sequence[TideMoment], now: dt.datetime) -> list[TenantUse | None]:
    """None where no session ran: the tide is written every few minutes then. ``now`` is the wall's clock."""
    holes = silences(moments, now)

    def measured(at: dt.datetime) -> bool:
        return not any(after < at and (until is None or at < until) for after, until in holes)

    return [row if measured(row.at) else None for row in series]


def figure(series: Sequence[TenantUse | None], theme: str, *, unit: str) -> go.Figure:
    colours = palette(theme)
    stretches = list(runs(series))
    if not stretches:
        return go.Figure()
    traces = [trace for number, run in enumerate(stretches) for trace in _stretch(run, number, colours)]
    known = [row for run in stretches for row in run]
    last = known[-1]
    top = max(*(max(row.quota, row.used) for row in known), 1) * 1.08
    labels = [base.label(last.quota, _("Quota"), colours.text)]
    if last.inference:
        labels.append(base.label(last.inference / 2, _("Inference"), colours.text))
    if last.training:
        labels.append(base.label(last.inference + last.training / 2, _("Training"), colours.text))
    layout = base.layout(colours, unit=unit, times=True, annotations=base.spread(labels, top, room=0.1))
    layout.yaxis.range = [0, top]
    return go.Figure(traces, layout)


def _stretch(run: list[TenantUse], number: int, colours: Palette) -> list[go.Scatter]:
    x = [base.local(row.at) for row in run]
    areas = (
        (_("Inference"), [row.inference for row in run], colours.inference),
        (_("Training"), [row.training for row in run], colours.training),
    )
    traces = [
        go.Scatter(
            x=x,
            y=heights,
            name=word,
            mode="lines",
            stackgroup=f"use{number}",
            line={"width": 0.5, "color": colour, "shape": "hv"},
            fillcolor=colour,
            hovertemplate="%{y:,.2~f}",
        )
        for word, heights, colour in areas
    ]
    quota = go.Scatter(
        x=x,
        y=[row.quota for row in run],
        name=_("Quota"),
        mode="lines",
        line={"width": 2, "color": colours.tick, "shape": "hv", "dash": "dash"},
        hovertemplate="%{y:,.2~f}",
    )
    return [*traces, quota]
