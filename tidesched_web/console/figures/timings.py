from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from django.utils.translation import gettext as _

from tidesched_web.console.figures import base
from tidesched_web.console.figures.palette import palette

MAX_STEPS = 6
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


def top_steps(series: Sequence[TimingRow]) -> list[str]:
    sums: dict[str, float] = {}
    for row in series:
        for step, value in row.steps.items():
            sums[step] = sums.get(step, 0) + value
    largest = sorted(sums, key=lambda step: (-sums[step], step))
    kept = set(largest[: MAX_STEPS - 1] if len(largest) > MAX_STEPS else largest)
    return [step for step in sums if step in kept]


def figure(series: Sequence[TimingRow], theme: str) -> go.Figure:
    colours = palette(theme)
    if not series:
        return go.Figure()
    steps = top_steps(series)
    x = [str(row.number) for row in series]
    traces = []
    for place, step in enumerate(steps):
        traces.append(
            go.Bar(
                x=x,
                y=[row.steps.get(step, 0) for row in series],
                name=step_word(step),
                marker={
                    "color": colours.steps[place],
                    "pattern": {
                        "shape": _SHAPES[place],
                        "fillmode": "overlay",
                        "fgcolor": colours.surface,
                        "size": 6,
                        "solidity": 0.2,
                    },
                },
                hovertemplate="%{y:,.1f}",
            )
        )
    others = [sum(value for step, value in row.steps.items() if step not in steps) for row in series]
    if any(others):
        traces.append(go.Bar(x=x, y=others, name=_("other"), marker={"color": colours.text}, hovertemplate="%{y:,.1f}"))
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
