from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.console import amounts
from tidesched_web.console.alert_words import alert_sentence, ends_by_itself, of_all_tenants, place_of
from tidesched_web.console.methods import acts_by_post
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.scheduling import services as scheduling
from tidesched_web.scheduling.models import Alert
from tidesched_web.scheduling.selectors import visible_alerts

MOST = 100
# The button by which an alert that is looked after is open again.
HAND_BACK = "hand-back"


@page(section="alerts", topics="alerts sessions")
def alerts(this: Page) -> HttpResponse:
    return _shown(this, visible_alerts(this.access).filter(cluster=this.cluster), everywhere=False)


@page(section="all_alerts", topics="alerts")
def all_alerts(this: Page) -> HttpResponse:
    return _shown(this, visible_alerts(this.access), everywhere=True)


def _shown(this: Page, rows: Any, *, everywhere: bool) -> HttpResponse:
    waiting = rows.filter(resolved_at__isnull=True).order_by("acknowledged_at", "-raised_at")
    opened = sorted(waiting[:MOST], key=lambda alert: alert.acknowledged_at is not None)
    history = paged(rows.filter(resolved_at__isnull=False), ("-id",), this.request.GET.get("cursor", ""))
    return this.render(
        "alerts/alerts.html",
        {
            "opened": [
                {
                    "alert": alike[0],
                    "place": place_of(alike[0], everything=this.access.everything),
                    "by_itself": ends_by_itself(alike[0]),
                    "beyond_sight": not this.access.everything and of_all_tenants(alike[0]),
                    "n": len(alike),
                    "since": min(alert.raised_at for alert in alike),
                }
                for alike in _alike(this, opened, lambda alert: alert.acknowledged_by)
            ],
            "page": history,
            "past": [
                {"alert": alike[0], "n": len(alike)}
                for alike in _alike(this, history.rows, lambda alert: alert.resolved_by)
            ],
            "line": _line(opened),
            "everywhere": everywhere,
        },
    )


def _alike(this: Page, alerts: Sequence[Alert], who: Callable[[Alert], object]) -> list[list[Alert]]:
    """Names of other tenants are left out, so many may say one thing; in the order of the first of each."""
    found: dict[object, list[Alert]] = {}
    for alert in alerts:
        text = alert_sentence(alert.code, alert.numbers or {}, alert.message, everything=this.access.everything)
        alike = alert.pk if this.access.administers else (alert.cluster_id, alert.severity, text, who(alert))
        found.setdefault(alike, []).append(alert)
    return list(found.values())


def _line(opened: list[Alert]) -> str:
    waits = sum(1 for alert in opened if alert.acknowledged_at is None)
    if waits:
        return ngettext("%(n)s alert is open.", "%(n)s alerts are open.", waits) % {"n": amounts.number(waits)}
    if opened:
        return ngettext(
            "The %(n)s alert that has not ended is acknowledged.",
            "The %(n)s alerts that have not ended are acknowledged.",
            len(opened),
        ) % {"n": amounts.number(len(opened))}
    return _("Nothing needs a person now.")


def _chosen(this: Page, pk: int) -> Alert:
    named = "slug" in (this.request.resolver_match.kwargs if this.request.resolver_match else {})
    alert: Alert = get_object_or_404(visible_alerts(this.access), pk=pk, cluster=this.cluster if named else None)
    if not this.access.administers:
        raise PermissionDenied
    return alert


def _back(this: Page, alert: Alert) -> HttpResponse:
    everywhere = this.request.POST.get("back") == "all" or alert.cluster_id is None
    return redirect("console:all_alerts") if everywhere else redirect("console:alerts", this.cluster.slug)


@acts_by_post
@page(section="alerts")
def acknowledge(this: Page, pk: int) -> HttpResponse:
    alert = _chosen(this, pk)
    if this.request.POST.get("act") == HAND_BACK:
        if scheduling.hand_back_alert(alert=alert, actor=this.access.actor):
            messages.success(this.request, _("The alert is handed back: it is open again, and counts."))
        else:
            messages.info(this.request, _("It was open already, or it has ended."))
        return _back(this, alert)
    note = this.request.POST.get("note", "").strip()[:500]
    if scheduling.acknowledge_alert(alert=alert, actor=this.access.actor, note=note):
        messages.success(this.request, _("The alert is acknowledged: it counts no more and ends with its condition."))
    else:
        messages.info(this.request, _("It was acknowledged already, or it has ended."))
    return _back(this, alert)


@acts_by_post
@page(section="alerts")
def resolve(this: Page, pk: int) -> HttpResponse:
    alert = _chosen(this, pk)
    if scheduling.resolve_alert(alert=alert, actor=this.access.actor):
        messages.success(this.request, _("The alert is resolved."))
    else:
        messages.info(this.request, _("It was resolved already."))
    return _back(this, alert)
