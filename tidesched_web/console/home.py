import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.accounts.models import Tenant
from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.physical import is_part, share_of_board
from tidesched_web.console import amounts, bars
from tidesched_web.console.chart import Chart
from tidesched_web.console.page import Page, page
from tidesched_web.console.tenant_use import use_chart
from tidesched_web.quota.selectors import visible_queues
from tidesched_web.quota.tide_selectors import QueueTurn, turns_of
from tidesched_web.scheduling.card_hours_selectors import CardHours, card_hours
from tidesched_web.scheduling.home_selectors import HOURS, CardUse, TenantFigures, own_figures, own_waiting

WAITING = 10
TENANTS = 50
DAY = dt.timedelta(hours=24)
HOUR_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class UseRow:
    service_type: str
    card: str
    use: CardUse
    bar: bars.UsageBar
    # Card-seconds of the last day and week; None where nothing was measured.
    day: float | None = None
    week: float | None = None

    @property
    def base(self) -> int | None:
        return max(0, self.use.quota - self.use.turned) // 1000 if self.use.turned else None


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used in one period: card-seconds of physical cards, and of how much of the time they are known."""

    period: str
    work: float
    measured: str
    length: str
    is_whole: bool
    is_known: bool
    # Whether slices or shares are in it, so that the rows of card types do not add up to it.
    parts: bool


@dataclass(frozen=True, slots=True)
class Part:
    tenant: Tenant
    cluster: Cluster
    figures: TenantFigures
    rows: list[UseRow]
    hours: dict[str, CardHours]
    turns: list[QueueTurn]

    @property
    def spent(self) -> list[Spent]:
        return [
            Spent(
                one.period,
                sum(HOUR_SECONDS * spent * float(share_of_board(card)) for (_type, card), spent in one.cards.items()),
                _span(one.measured),
                _span(one.hours),
                is_whole=one.measured == one.hours,
                is_known=bool(one.measured),
                parts=any(spent and is_part(card) for (_type, card), spent in one.cards.items()),
            )
            for one in self.hours.values()
        ]

    @property
    def chart(self) -> Chart | None:
        cards = dict.fromkeys(row.card for row in self.rows)
        return use_chart(self.tenant, self.cluster, cards) if self.ran and cards else None

    @property
    def ran(self) -> bool:
        return self.cluster.session_id is not None  # type: ignore[attr-defined]

    @property
    def since(self) -> str:
        return timezone.localtime(self.cluster.clock() - DAY).strftime("%Y-%m-%dT%H:%M")

    @property
    def line(self) -> str:
        if not self.ran:
            return _("No session has run yet: what waits is not known.")
        n = self.figures.gangs_waiting
        if not n:
            return _("No gang of %(tenant)s waits here.") % {"tenant": self.tenant.name}
        gangs = ngettext("%(n)s gang waits", "%(n)s gangs wait", n) % {"n": amounts.number(n)}
        asked: dict[str, float] = {}
        for row in self.rows:
            asked[row.card] = asked.get(row.card, 0) + row.use.waiting / 1000
        cards = amounts.cards_text({card: number for card, number in asked.items() if number})
        return _("%(gangs)s for %(cards)s.") % {"gangs": gangs, "cards": cards} if cards else gangs


def _row(key: tuple[str, str], use: CardUse, hours: dict[str, CardHours]) -> UseRow:
    bar = bars.queue_bar(key[0], use.quota, use.allocated, use.inqueue, waiting=use.waiting)
    day, week = (
        HOUR_SECONDS * one.cards.get(key, 0.0) if one.measured else None for one in (hours["24h"], hours["7d"])
    )
    return UseRow(*key, use, bar, day, week)


def _parts(
    tenants: Iterable[Tenant],
    clusters: Iterable[Cluster],
    figures: dict[tuple[int, int], TenantFigures],
    hours: dict[tuple[int, int], dict[str, CardHours]],
    turns: Iterable[QueueTurn],
) -> list[Part]:
    parts = []
    turned: dict[tuple[int | None, int], list[QueueTurn]] = {}
    for turn in turns:
        turned.setdefault((turn.queue.tenant_id, turn.queue.cluster_id), []).append(turn)
    for tenant in tenants:
        for cluster in clusters:
            key = tenant.pk, cluster.pk
            one = figures.get(key)
            if one is None:
                continue
            used = {card: CardUse() for period in hours[key].values() for card, spent in period.cards.items() if spent}
            cards = {**used, **{card: use for card, use in one.cards.items() if card in used or use != CardUse()}}
            rows = [_row(card, use, hours[key]) for card, use in sorted(cards.items())]
            parts.append(Part(tenant, cluster, one, rows, hours[key], turned.get(key, [])))
    return parts


def _span(hours: int) -> str:
    return _("%(h)s h") % {"h": hours} if hours < 2 * HOURS else amounts.duration(HOUR_SECONDS * hours)


@page(section="home", topics="sessions reclaims")
def home(this: Page) -> HttpResponse:
    if this.access.everything or not this.access.tenant_ids:
        if this.current is not None:
            return redirect("console:cluster_overview", this.current.slug)
        return this.render("overview/nothing.html", {"section": "overview", "topics": ""})
    clusters = {cluster.pk: cluster for cluster in this.clusters}
    tenants = list(visible_tenants(this.access).order_by("name", "pk")[:TENANTS])
    figures = own_figures(this.access, this.clusters)
    hours = card_hours([tenant.pk for tenant in tenants], this.clusters)
    own = visible_queues(this.access).filter(tenant__in=tenants)
    parts = _parts(tenants, this.clusters, figures, hours, turns_of(own, this.clusters) if figures else ())
    waiting: list[dict[str, Any]] = []
    for gang in own_waiting(this.access, this.clusters, WAITING) if parts else []:
        where = clusters[gang.cluster_id]
        waiting.append({"gang": gang, "cluster": where, "now": where.clock()})
    total = sum(part.figures.gangs_waiting for part in parts)
    return this.render(
        "overview/home.html",
        {
            "tenants": tenants,
            "parts": parts,
            "waiting": waiting,
            "line": _line(total, all(part.ran for part in parts)),
            "ran": all(part.ran for part in parts),
            "more": total - len(waiting),
            # Where gangs wait, each cluster once, whichever of the reader's tenants they are of.
            "places": [
                cluster
                for cluster in this.clusters
                if any(part.cluster == cluster and part.figures.gangs_waiting for part in parts)
            ],
        },
    )


def _line(total: int, ran: bool) -> str:
    if not total:
        if not ran:
            return _("Not all clusters have been looked at yet: what waits is not known.")
        return _("No gang of your tenants waits.")
    n = {"n": amounts.number(total)}
    return ngettext("%(n)s gang of your tenants waits.", "%(n)s gangs of your tenants wait.", total) % n
