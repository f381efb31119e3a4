"""Alerts: what a person must look at, and the act that lets the sessions go on."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from tidesched_web.console import amounts
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.scheduling import services as scheduling
from tidesched_web.scheduling.selectors import visible_alerts


@page(section="alerts", topics="alerts sessions")
def alerts(this: Page) -> HttpResponse:
    """Open alerts first, then the history."""
    rows = visible_alerts(this.access).filter(cluster=this.cluster)
    opened = list(rows.filter(resolved_at__isnull=True).order_by("-raised_at")[:100])
    history = paged(rows.filter(resolved_at__isnull=False), ("-id",), this.request.GET.get("cursor", ""))
    line = (
        ngettext("%(n)s alert is open.", "%(n)s alerts are open.", len(opened)) % {"n": amounts.number(len(opened))}
        if opened
        else _("Nothing needs a person now.")
    )
    return this.render("alerts/alerts.html", {"opened": opened, "page": history, "line": line})


@require_POST
@page(section="alerts")
def resolve(this: Page, pk: int) -> HttpResponse:
    """Mark an alert as dealt with: a stopped session may go on then."""
    alert = visible_alerts(this.access).filter(cluster=this.cluster, pk=pk).first()
    if alert is None:
        raise Http404
    if not this.access.administers:
        raise PermissionDenied
    if scheduling.resolve_alert(alert=alert, actor=this.access.actor):
        messages.success(this.request, _("The alert is resolved."))
    else:
        messages.info(this.request, _("Somebody had resolved it already."))
    return redirect("console:alerts", this.cluster.slug)
