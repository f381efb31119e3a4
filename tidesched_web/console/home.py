"""The home of a tenant's people: what their tenants may use, use, wait for and lost, in each cluster."""

from __future__ import annotations

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
from tidesched_web.console import amounts, bars
from tidesched_web.console.chart import Chart
from tidesched_web.console.page import Page, page
from tidesched_web.console.tenant_use import use_chart
from tidesched_web.scheduling.home_selectors import CardUse, TenantFigures, own_figures, own_waiting

WAITING = 10
TENANTS = 50
DAY = dt.timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class UseRow:
    """One service type × card of a tenant in a cluster."""

    service_type: str
    card: str
    use: CardUse
    bar: bars.UsageBar

    @property
    def base(self) -> int | None:
        """The quota without tide plans in cards, where they make another of it now."""
        return max(0, self.use.quota - self.use.turned) // 1000 if self.use.turned else None


@dataclass(frozen=True, slots=True)
class Part:
    """One tenant in one cluster."""

    tenant: Tenant
    cluster: Cluster
    figures: TenantFigures
    rows: list[UseRow]

    @property
    def chart(self) -> Chart | None:
        """Its use over time; nothing before a session has looked at the cluster."""
        cards = dict.fromkeys(row.card for row in self.rows)
        return use_chart(self.tenant, self.cluster, cards) if self.ran and cards else None

    @property
    def ran(self) -> bool:
        """Whether a session has looked at the cluster: before that nothing is known of what waits."""
        return self.cluster.session_id is not None  # type: ignore[attr-defined]

    @property
    def since(self) -> str:
        """The beginning of the last day by the cluster's clock, as the filter of reclaims reads it."""
        return timezone.localtime(self.cluster.clock() - DAY).strftime("%Y-%m-%dT%H:%M")

    @property
    def line(self) -> str:
        """What waits in this cluster, in one sentence."""
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
        return _("%(gangs)s for %(cards)s.") % {"gangs": gangs, "cards": cards} if cards else f"{gangs}{_('.')}"


def _row(service: str, card: str, use: CardUse) -> UseRow:
    bar = bars.queue_bar(service, use.quota, use.allocated, use.inqueue, waiting=use.waiting)
    return UseRow(service, card, use, bar)


def _parts(
    tenants: Iterable[Tenant], clusters: Iterable[Cluster], figures: dict[tuple[int, int], TenantFigures]
) -> list[Part]:
    parts = []
    for tenant in tenants:
        for cluster in clusters:
            one = figures.get((tenant.pk, cluster.pk))
            if one is None:
                continue
            shown = [(key, use) for key, use in sorted(one.cards.items()) if any(_sizes(use))]
            parts.append(Part(tenant, cluster, one, [_row(*key, use) for key, use in shown]))
    return parts


def _sizes(use: CardUse) -> tuple[float, ...]:
    return use.quota, use.turned, use.allocated, use.inqueue, use.waiting, use.card_seconds


@page(section="home", topics="sessions reclaims")
def home(this: Page) -> HttpResponse:
    """The page after signing in: people of tenants see their own; who sees everything goes to the last cluster."""
    if this.access.everything or not this.access.tenant_ids:
        if this.current is not None:
            return redirect("console:cluster_overview", this.current.slug)
        return this.render("overview/nothing.html", {"section": "overview", "topics": ""})
    clusters = {cluster.pk: cluster for cluster in this.clusters}
    tenants = list(visible_tenants(this.access).order_by("name", "pk")[:TENANTS])
    parts = _parts(tenants, this.clusters, own_figures(this.access, this.clusters))
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
        },
    )


def _line(total: int, ran: bool) -> str:
    if not total:
        if not ran:
            return _("Not all clusters have been looked at yet: what waits is not known.")
        return _("No gang of your tenants waits.")
    n = {"n": amounts.number(total)}
    return ngettext("%(n)s gang of your tenants waits.", "%(n)s gangs of your tenants wait.", total) % n
