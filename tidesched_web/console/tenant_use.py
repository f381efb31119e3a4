import datetime as dt
from collections.abc import Iterable

import plotly.graph_objects as go
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import Tenant
from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import reader_zone
from tidesched_web.common.card_names import card_label
from tidesched_web.common.physical import is_part
from tidesched_web.console.chart import Chart, Twin, answer, drawn_until
from tidesched_web.console.export import csv_response
from tidesched_web.console.figures import base
from tidesched_web.console.figures import tenant_use as figure
from tidesched_web.console.page import Page, page
from tidesched_web.scheduling.card_hours_selectors import card_hours
from tidesched_web.scheduling.selectors import tide_moments
from tidesched_web.scheduling.tenant_use_selectors import TenantUse, services_of, tenant_use

SPAN = dt.timedelta(hours=48)
STEP = dt.timedelta(minutes=15)


def use_chart(tenant: Tenant, cluster: Cluster, cards: Iterable[str]) -> Chart:
    choices = [("", _("All card types")), *((card, card_label(card)) for card in cards)]
    words = {"tenant": tenant.name, "cluster": cluster.name}
    return Chart(
        key=f"use-{tenant.pk}-{cluster.pk}",
        question=_("What did %(tenant)s use of its quota in %(cluster)s? The last two days by its clock") % words,
        url=reverse("console:tenant_use", args=[cluster.slug, tenant.slug]),
        size="short",
        choices=choices if len(choices) > 2 else [],
        choice_label=_("Card type"),
        drawn_until=drawn_until(cluster, cluster.clock() - SPAN),
    )


@page()
def tenant_use_data(this: Page, tenant: str) -> HttpResponse:
    cluster = this.cluster
    services = services_of(this.access, cluster, tenant)
    if not services and not visible_tenants(this.access).filter(slug=tenant).exists():
        raise Http404
    card = this.request.GET.get("card", "").replace("\0", "")[:200]
    end = cluster.clock()
    start = end - SPAN
    unit = _("physical cards") if not card else _("slices") if is_part(card) else _("cards")

    def series() -> list[TenantUse | None]:
        measured = tenant_use(services, card, start, end, STEP)
        return figure.with_gaps(measured, tide_moments(cluster, start), timezone.now())

    def twin() -> Twin:
        quota = _("quota (%(unit)s)") % {"unit": unit}
        header = [reader_zone.head(_("time")), quota, _("in use"), _("inference"), _("training")]
        data = [
            (
                base.local(row.at)[:16],
                *(round(value, 2) for value in (row.quota, row.used, row.inference, row.training)),
            )
            for row in series()
            if row is not None
        ]
        return Twin(f"use-{tenant}-{cluster.slug}", header, data)

    def drawn(theme: str) -> go.Figure:
        return figure.figure(series(), theme, unit=unit)

    key = f"tenant-use:{tenant}:{cluster.pk}:{cluster.session_id}:{card}"  # type: ignore[attr-defined]
    return answer(this.request, key=key, figure=drawn, twin=twin)


@page()
def tenant_hours(this: Page, tenant: str) -> HttpResponse:
    found = get_object_or_404(visible_tenants(this.access), slug=tenant)
    cluster = this.cluster
    periods = card_hours([found.pk], [cluster])[found.pk, cluster.pk].values()
    header = [
        "tenant", "cluster", "period", "from", "to", "hours", "measured_hours", "service_type", "card", "card_hours",
    ]  # fmt: skip
    # A period in which nothing was measured has its row too, without a figure.
    unknown: list[tuple[tuple[str, str], float | None]] = [(("", ""), None)]
    rows = [
        (
            found.slug, cluster.slug, one.period, one.start.isoformat(), one.end.isoformat(), one.hours, one.measured,
            service, card, None if spent is None else round(spent, 3),
        )
        for one in periods
        for (service, card), spent in (sorted(one.cards.items()) or unknown)
    ]  # fmt: skip
    return csv_response(f"card-hours-{found.slug}-{cluster.slug}", header, rows)
