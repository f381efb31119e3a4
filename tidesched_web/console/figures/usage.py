import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from django.utils.translation import gettext as _

from tidesched_web.console.figures import base
from tidesched_web.console.figures.palette import palette


@dataclass(frozen=True, slots=True)
class UsageRow:
    at: dt.datetime
    quota: float
    allocated: float
    inqueue: float
    elastic: float


def figure(series: Sequence[UsageRow], service_type: str, theme: str) -> go.Figure:
    colours = palette(theme)
    if not series:
        return go.Figure()
    colour = colours.inference if service_type == "inference" else colours.training
    x = [base.local(row.at) for row in series]
    last = series[-1]
    traces = [
        go.Scatter(
            x=x,
            y=[row.allocated for row in series],
            name=_("In use"),
            mode="lines",
            fill="tozeroy",
            line={"width": 2, "color": colour, "shape": "hv"},
            hovertemplate="%{y:,.2~f}",
        ),
        go.Scatter(
            x=x,
            y=[row.allocated + row.inqueue for row in series],
            customdata=[row.inqueue for row in series],
            name=_("Promised"),
            mode="lines",
            line={"width": 1.5, "color": colours.waiting, "shape": "hv", "dash": "dot"},
            hovertemplate="%{customdata:,.2~f}",
        ),
        go.Scatter(
            x=x,
            y=[row.quota for row in series],
            name=_("Quota"),
            mode="lines",
            line={"width": 2, "color": colours.tick, "shape": "hv", "dash": "dash"},
            hovertemplate="%{y:,.2~f}",
        ),
    ]
    labels = [base.label(last.allocated, _("In use"), colours.text), base.label(last.quota, _("Quota"), colours.text)]
    if last.inqueue:
        labels.append(base.label(last.allocated + last.inqueue, _("Promised"), colours.text))
    top = max(max(row.quota, row.allocated + row.inqueue) for row in series) * 1.08 or 1
    layout = base.layout(colours, unit=_("cards"), times=True, annotations=base.spread(labels, top, room=0.1))
    layout.yaxis.range = [0, top]
    return go.Figure(traces, layout)
