import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone, translation

from tidesched_web.clusters.models import Cluster
from tidesched_web.console.export import csv_response
from tidesched_web.scheduling.tide_figures_selectors import measured_since

CACHE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Chart:
    key: str
    question: str
    url: str
    query: str = ""
    size: str = ""
    choices: list[tuple[str, str]] = field(default_factory=list)
    choice: str = ""
    choice_label: str = ""
    # Under which name its choice stands in the address of the page, where the page has one chart with a choice.
    param: str = ""
    # What stands in place of an empty figure; without it, that nothing has been recorded.
    empty: str = ""
    # Up to when what it shows was drawn for the demo.
    drawn_until: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Twin:
    name: str
    header: list[str]
    rows: Sequence[Sequence[Any]]


def drawn_until(cluster: Cluster, start: dt.datetime) -> dt.datetime | None:
    """Up to when a picture from ``start`` on was drawn: what lies before the first moment of a simulated cluster."""
    first = measured_since(cluster)
    return first if cluster.simulated and first > start else None


def answer(
    request: HttpRequest, *, key: str, figure: Callable[[str], go.Figure], twin: Callable[[], Twin]
) -> HttpResponse:
    """``key`` names the session that the data is of: a figure is made once for all who look at that session."""
    wanted = request.GET.get("format", "json")
    if wanted == "csv":
        data = twin()
        return csv_response(data.name, data.header, data.rows)
    if wanted == "table":
        return render(request, "components/chart_table.html", {"twin": twin()})
    theme = "dark" if request.GET.get("theme") == "dark" else "light"
    place = f"figure:{key}:{theme}:{translation.get_language()}:{timezone.get_current_timezone_name()}"
    text = cache.get(place)
    if text is None:
        drawn = figure(theme)
        drawn.layout.template = None
        text = drawn.to_json()
        cache.set(place, text, CACHE_SECONDS)
    response = HttpResponse(text, content_type="application/json")
    response.headers["Cache-Control"] = "private, no-cache"
    return response
