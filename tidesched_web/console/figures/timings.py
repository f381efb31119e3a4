from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from django.utils.translation import gettext as _

from tidesched_web.console.figures import base
from tidesched_web.console.figures.palette import palette

_SHAPES = ("", "/", "x", "\\", ".", "-", "+")


@dataclass(frozen=True, slots=True)
class TimingRow:
    number: int
    steps: dict[str, float]


def step_word(step: str) -> str:
    words = {
        "settle": _("settle"),
        "snapshot": _("snapshot"),
        "decide": _("decide"),
        "write": _("write"),
        "send": _("send"),
        "record": _("record"),
    }
    return words.get(step, step)


def figure(series: Sequence[TimingRow], theme: str) -> go.Figure:
    colours = palette(theme)
    if not series:
        return go.Figure()
    steps = dict.fromkeys(step for row in series for step in row.steps)
    x = [str(row.number) for row in series]
    traces = []
    for place, step in enumerate(steps):
        traces.append(
            go.Bar(
                x=x,
                y=[row.steps.get(step, 0) for row in series],
                name=step_word(step),
                marker={
                    "color": colours.steps[place % len(colours.steps)],
                    "pattern": {
                        "shape": _SHAPES[place % len(_SHAPES)],
                        "fillmode": "overlay",
                        "fgcolor": colours.surface,
                        "size": 6,
                        "solidity": 0.2,
                    },
                },
                hovertemplate="%{y:,.1f}",
            )
        )
    layout = base.layout(
        colours,
        unit=_("milliseconds"),
        barmode="stack",
        bargap=0.15,
        showlegend=True,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font": {"color": colours.text}},
        margin={"l": 64, "r": 16, "t": 16, "b": 48},
    )
    layout.xaxis.update(type="category", nticks=6, title={"text": _("session"), "standoff": 4}, tickangle=0)
    return go.Figure(traces, layout)
