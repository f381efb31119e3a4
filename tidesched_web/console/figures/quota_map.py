import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from django.utils.translation import gettext as _

from tidesched_web.console import amounts
from tidesched_web.console.figures import base
from tidesched_web.console.figures.palette import blended, contrast, palette
from tidesched_web.console.quota_tree_rows import Row


@dataclass(frozen=True, slots=True)
class Area:
    key: str
    parent: str
    title: str
    path: str
    service_type: str
    quota: float
    used: float
    promised: float
    leaf: bool

    @property
    def fill(self) -> float:
        return min(1.0, math.ceil(4 * self.used / self.quota) / 4) if self.leaf else 0.0


def areas(rows: Sequence[Row]) -> list[Area]:
    paths: dict[str, str] = {}
    quota: dict[str, float] = {}
    parents = {row.key: row.parent for row in rows}
    for row in rows:
        paths[row.key] = f"{paths[row.parent]} › {row.title}" if row.parent in paths else row.title
        if row.kind == "queue":
            key, own = row.key, sum(line.limit or 0 for line in row.lines)
            while key:
                quota[key] = quota.get(key, 0) + own
                key = parents.get(key, "")
    found = []
    for row in rows:
        if not quota.get(row.key):
            continue
        used = sum(line.allocated for line in row.lines) / 1000
        promised = sum(line.inqueue for line in row.lines) / 1000
        found.append(
            Area(row.key, row.parent, row.title, paths[row.key], row.service_type, quota[row.key], used, promised,
                 row.kind == "queue")
        )  # fmt: skip
    return found


def figure(found: Sequence[Area], theme: str) -> go.Figure:
    if not found:
        return go.Figure()
    colours = palette(theme)
    strong = {"inference": colours.inference, "training": colours.training}
    soft = {"inference": colours.inference_soft, "training": colours.training_soft}
    tones = [blended(soft[area.service_type], strong[area.service_type], area.fill) for area in found]
    # Text keeps its contrast on each ground.
    inks = [max((contrast(ink, tone), ink) for ink in ("#000000", "#ffffff"))[1] for tone in tones]
    texts = [
        _("%(used)s of %(quota)s in use") % {"used": amounts.number(area.used), "quota": amounts.number(area.quota)}
        for area in found
    ]
    trace = go.Treemap(
        ids=[area.key for area in found],
        parents=[area.parent for area in found],
        labels=[area.title for area in found],
        values=[area.quota for area in found],
        text=texts,
        branchvalues="total",
        maxdepth=4,
        tiling={"pad": 3, "packing": "squarify"},
        textinfo="label+text",
        hovertemplate="<b>%{label}</b><br>%{text}<extra></extra>",
        marker={
            "colors": tones,
            "line": {"color": colours.surface, "width": 2},
            "pad": {"t": 24, "l": 4, "r": 4, "b": 4},
        },
        pathbar={"visible": True, "thickness": 26, "textfont": {"color": colours.text}},
        textfont={"family": base.FONT, "size": 13, "color": inks},
    )
    layout = base.layout(colours, unit="", margin={"l": 0, "r": 0, "t": 0, "b": 0})
    layout.hovermode, layout.height = "closest", 600
    return go.Figure([trace], layout)
