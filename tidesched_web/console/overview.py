import datetime as dt
from dataclasses import dataclass
from urllib.parse import urlencode

import plotly.graph_objects as go
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.clusters.models import Cluster
from tidesched_web.common import reader_zone
from tidesched_web.common.card_names import card_label
from tidesched_web.common.physical import is_part
from tidesched_web.console import bars, reason_words
from tidesched_web.console.chart import Chart, Twin, answer, drawn_until
from tidesched_web.console.cluster_banners import cluster_banners
from tidesched_web.console.figures import base
from tidesched_web.console.figures import tide as tide_figure
from tidesched_web.console.figures.tide_rows import TideRow, rows
from tidesched_web.console.first_steps import first_steps
from tidesched_web.console.page import Page, page
from tidesched_web.console.tide_figures import sentence, shown
from tidesched_web.scheduling.holds import sending_stop
from tidesched_web.scheduling.models import TidePoint
from tidesched_web.scheduling.selectors import newest_reclaims, tide_points
from tidesched_web.scheduling.tide_figures_selectors import DayRange, tide_figures
from tidesched_web.workloads.reason_figures import of_all
from tidesched_web.workloads.selectors import longest_waiting

LAPS = dt.timedelta(hours=48)
ROWS = 6


@dataclass(frozen=True, slots=True)
class CardRow:
    point: TidePoint
    bar: bars.UsageBar
    day: DayRange | None = None


@page(section="overview", topics="sessions alerts clusters")
def overview(this: Page) -> HttpResponse:
    cluster = this.cluster
    found = tide_figures(cluster)
    cards = [
        CardRow(
            point,
            bars.card_bar(
                total=point.total,
                inference=point.inference,
                training=point.training,
                borrowed=point.borrowed,
                foreign=point.foreign,
                idle=point.idle,
                waiting=point.waiting,
            ),
            found.day.get(point.card),
        )
        for point in found.points
    ]
    waiting = longest_waiting(this.access, cluster, ROWS)
    total = sum(entry["n"] for entry in waiting.by_reason)
    code, most = (waiting.by_reason[0]["code"], waiting.by_reason[0]["n"]) if waiting.by_reason else ("", 0)
    ran = cluster.session_id is not None  # type: ignore[attr-defined]
    line = (
        reason_words.waiting_line(total, code, most) if ran else _("No session has run yet: what waits is not known.")
    )
    if ran and not total and not this.access.everything:
        line = _("No gang of your tenants waits.")
    taken = newest_reclaims(this.access, cluster, ROWS)
    now = cluster.clock()
    # Of `clusters_now`.
    rows = cluster.alert_rows  # type: ignore[attr-defined]  # annotated, as is the count
    banners, more = cluster_banners(this), cluster.alert_banners - len(rows)  # type: ignore[attr-defined]
    return this.render(
        "overview/overview.html",
        {
            "rows": cards,
            "banners": banners,
            "more_alerts": more,
            "more_banners": len(banners) - 1 + more,
            "figures": shown(
                found,
                gangs=total,
                reclaims=taken,
                now=now,
                stopped=sending_stop(cluster) is not None,
                whole=this.access.everything,
            ),
            "tide_line": sentence(found, now),
            "steps": first_steps(this),
            "ran": ran,
            "waiting": waiting.gangs,
            "figures_of": of_all(waiting.gangs[0]) if waiting.gangs else None,
            "cards_wait": any(row.point.waiting for row in cards),
            "line": line,
            "reclaims": taken,
            "chart": tide_chart(cluster, [row.point.card for row in cards], this.request.GET.get("card", "")),
        },
    )


def tide_chart(cluster: Cluster, cards: list[str], chosen: str) -> Chart:
    chosen = chosen if chosen in cards else ""
    choices = [("", _("All card types")), *((card, card_label(card)) for card in cards)]
    return Chart(
        key="tide",
        question=_("Where in the tide are we? The last two days by the cluster's clock"),
        url=reverse("console:tide", args=[cluster.slug]),
        query=urlencode({"card": chosen}) if chosen else "",
        choice=chosen,
        param="card",
        choices=choices if len(cards) > 1 else [],
        choice_label=_("Card type"),
        drawn_until=drawn_until(cluster, cluster.clock() - LAPS),
    )


@page()
def tide(this: Page) -> HttpResponse:
    cluster = this.cluster
    card = this.request.GET.get("card", "").replace("\0", "")[:200]
    end = cluster.clock()
    start = end - LAPS

    whole_sight = this.access.everything
    physical = not card
    unit = _("physical cards") if physical else _("slices") if is_part(card) else _("cards")

    def series() -> list[TideRow | None]:
        return rows(tide_points(cluster, start, card), start, end, now=timezone.now(), physical=physical)

    def twin() -> Twin:
        hardware = _("hardware (%(unit)s)") % {"unit": unit}
        header = [reader_zone.head(_("time")), hardware, _("inference"), _("training"), _("borrowed, part of training")]
        header += [_("foreign"), _("idle"), _("waiting"), *([_("inference quota")] if whole_sight else [])]
        names = ["total", "inference", "training", "borrowed", "foreign", "idle", "waiting"]
        names += ["quota"] if whole_sight else []
        data = [
            (base.local(row.at)[:16], *(None if (n := getattr(row, name)) is None else round(n, 2) for name in names))
            for row in series()
            if row is not None
        ]
        return Twin(f"tide-{cluster.slug}", header, data)

    key = f"tide:{cluster.pk}:{cluster.session_id}:{card}:{whole_sight}"  # type: ignore[attr-defined]

    def drawn(theme: str) -> go.Figure:
        return tide_figure.figure(series(), theme, unit=unit, quota=whole_sight)

    return answer(this.request, key=key, figure=drawn, twin=twin)
