import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from django.utils.translation import gettext as _

from tidesched_web.console.chart import Twin
from tidesched_web.console.figures import base
from tidesched_web.console.figures.palette import palette
from tidesched_web.console.tide_week import Row
from tidesched_web.quota.tide_rules import WEEKDAY_NAMES
from tidesched_web.scheduling.usage_selectors import HourOfWeek

HOURS = 7 * 24


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour of the week; what was never recorded is None."""

    at: dt.datetime
    quota: int
    own: int
    p50: float | None
    p90: float | None
    most: float | None


def hours(row: Row, start: dt.datetime, demand: Mapping[int, HourOfWeek]) -> list[Hour]:
    found = []
    for number in range(HOURS):
        # On the dial, as plotly and the quantiles have it; a band that begins later in the hour shows at the next.
        dial = start.replace(tzinfo=None) + dt.timedelta(hours=number)
        bands = [band for band in row.bands if band.start.replace(tzinfo=None) <= dial]
        past = demand.get(number)
        found.append(
            Hour(
                dial,
                bands[-1].cards if bands else row.base,
                row.base,
                past.p50 if past else None,
                past.p90 if past else None,
                past.most if past else None,
            )
        )
    return found


def figure(rows: Sequence[Hour], service_type: str, theme: str) -> go.Figure:
    colours = palette(theme)
    colour = colours.inference if service_type == "inference" else colours.training
    x = [row.at.strftime("%Y-%m-%d %H:%M") for row in rows]

    def line(name: str, values: list[float | None], **style: object) -> go.Scatter:
        return go.Scatter(
            x=x, y=values, name=name, mode="lines", line={"shape": "hv", **style}, hovertemplate="%{y:,.2~f}"
        )

    used = line(_("In use, half of the time at most"), [row.p50 for row in rows], width=0, color=colour)
    used.fill = "tozeroy"
    traces = [
        used,
        line(_("In use, nine times in ten at most"), [row.p90 for row in rows], width=1.5, color=colour),
        line(_("In use at most"), [row.most for row in rows], width=1, color=colour, dash="dot"),
        line(_("Base"), [row.own for row in rows], width=1, color=colours.text, dash="dash"),
        line(_("Quota under the plan"), [row.quota for row in rows], width=2.5, color=colours.tick),
    ]
    top = max([*(row.quota for row in rows), *(row.own for row in rows), *(row.most or 0 for row in rows)]) * 1.1 or 1
    labels = [base.label(rows[-1].own, _("Base"), colours.text), base.label(rows[-1].quota, _("Plan"), colours.text)]
    last = next((row for row in reversed(rows) if row.p90 is not None), None)
    if last is not None:
        labels.append(base.label(last.p90 or 0, _("In use (9 in 10)"), colours.text))
    layout = base.layout(colours, unit=_("cards"), annotations=base.spread(labels, top, room=0.1))
    layout.yaxis.range = [0, top]
    names = [str(WEEKDAY_NAMES[day])[:3] for day in range(7)]  # Mon, 星期一
    layout.xaxis.update(tickvals=x[::24], ticktext=names, range=[x[0], x[-1]])
    return go.Figure(traces, layout)


def twin(name: str, rows: Sequence[Hour]) -> Twin:
    header = [_("Hour"), _("Base"), _("Plan"), _("In use, p50"), _("In use, p90"), _("In use, most")]
    return Twin(
        name,
        header,
        [
            [f"{WEEKDAY_NAMES[row.at.weekday()]} {row.at:%H:%M}", row.own, row.quota, row.p50, row.p90, row.most]
            for row in rows
        ],
    )
