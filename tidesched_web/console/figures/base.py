import datetime as dt
import unicodedata
from typing import Any

import plotly.graph_objects as go
from django.utils import timezone

from tidesched_web.common import reader_zone
from tidesched_web.console.figures.palette import Palette

FONT = (
    '"Inter Variable", Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", '
    '"PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif'
)


def layout(colours: Palette, *, unit: str, times: bool = False, **more: Any) -> go.Layout:
    # The labels at the right end stand in the margin, which is as wide as the longest of them.
    widest = max(
        (_width(str(entry["text"])) for entry in more.get("annotations") or () if _in_margin(entry)), default=0
    )
    base = {
        "font": {"family": FONT, "size": 13, "color": colours.text},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 56, "r": max(112, widest + 14), "t": 16, "b": 40},
        "showlegend": False,
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": colours.surface, "bordercolor": colours.grid, "font": {"color": colours.text}},
        "dragmode": False,
        "xaxis": {
            "gridcolor": colours.grid,
            "linecolor": colours.grid,
            "zeroline": False,
            "fixedrange": True,
            "showgrid": False,
            "tickangle": 0,
            "tickformatstops": [
                {"dtickrange": [None, 60_000], "value": "%H:%M:%S"},
                {"dtickrange": [60_000, 43_200_000], "value": "%H:%M\n%m-%d"},
                {"dtickrange": [43_200_000, None], "value": "%m-%d"},
            ],
            "hoverformat": "%Y-%m-%d %H:%M",
        },
        "yaxis": {
            "title": {"text": unit, "standoff": 8},
            "gridcolor": colours.grid,
            "zeroline": False,
            "rangemode": "tozero",
            "fixedrange": True,
            "tickformat": ",~r",
        },
    }
    drawn = go.Layout(base | more)
    if times:
        drawn.xaxis.title = {"text": reader_zone.zone_name(), "standoff": 4}
        drawn.margin.b = 56
    return drawn


def _in_margin(entry: Any) -> bool:
    return (entry.get("xref"), entry.get("x"), entry.get("xanchor")) == ("paper", 1, "left")


def _width(text: str) -> int:
    return round(sum(13 if unicodedata.east_asian_width(sign) in "WF" else 7.4 for sign in text))


def local(moment: dt.datetime) -> str:
    """A moment in the reader's zone, as plotly reads it (it knows no zones)."""
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def label(y: float, text: str, colour: str) -> dict[str, Any]:
    return {
        "x": 1,
        "xref": "paper",
        "xanchor": "left",
        "xshift": 6,
        "y": y,
        "yref": "y",
        "text": text,
        "showarrow": False,
        "font": {"color": colour, "size": 13},
    }


def spread(labels: list[dict[str, Any]], top: float, *, room: float = 0.075) -> list[dict[str, Any]]:
    """``room`` is the height of a label as a share of the axis."""
    step, previous, ceiling = top * room, None, top
    in_order = sorted(labels, key=lambda item: item["y"])
    for entry in in_order:
        if previous is not None and entry["y"] < previous + step:
            entry["y"] = previous + step
        previous = entry["y"]
    for entry in reversed(in_order):
        entry["y"] = min(entry["y"], ceiling)
        ceiling = entry["y"] - step
    return labels
