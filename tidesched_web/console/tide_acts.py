import datetime as dt
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from tidesched_web.changes import services as changes
from tidesched_web.changes.tree_document import key_of
from tidesched_web.common.errors import DomainError
from tidesched_web.console.methods import acts_by_post
from tidesched_web.console.page import Page, page
from tidesched_web.console.tide_reading import need_plan_writer, plan_named
from tidesched_web.quota import tide
from tidesched_web.quota.models import TidePlan
from tidesched_web.quota.tide_selectors import document_of


@acts_by_post
@page(section="tide_plans")
def switch(this: Page, name: str) -> HttpResponse:
    """The form says which state it means, so the second of two does not turn it back."""
    row, enabled = plan_named(this, name), "enabled" in this.request.POST
    need_plan_writer(this)
    if row.enabled == enabled:
        messages.info(this.request, _("Nothing was changed: it says so already."))
        return redirect("console:tide_plan", this.cluster.slug, name)
    return _reviewed(this, row, {"enabled": enabled})


@acts_by_post
@page(section="tide_plans")
def delete(this: Page, name: str) -> HttpResponse:
    return _reviewed(this, plan_named(this, name), None)


def _reviewed(this: Page, row: TidePlan, patch: dict[str, Any] | None) -> HttpResponse:
    need_plan_writer(this)
    edits = {key_of("tide-plan", row.name): patch}
    try:
        draft = changes.draft(cluster=this.cluster, edits=edits, access=this.access, once=True)
    except DomainError as error:
        messages.error(this.request, error.message)
        return redirect("console:tide_plan", this.cluster.slug, row.name)
    return redirect("console:change", this.cluster.slug, draft.pk)


@acts_by_post
@page(section="tide_plans")
def take_back(this: Page, name: str) -> HttpResponse:
    """The layers that are open are to end now, until they open the next time."""
    row = plan_named(this, name)
    need_plan_writer(this)
    own, now = tide.plan_of(row.name, document_of(row)), this.cluster.clock()
    numbers = {number for _place, number in tide.open_layers([own], now)} if row.enabled else set()
    if not numbers:
        messages.info(this.request, _("Nothing was changed: no layer of the plan is open now."))
        return redirect("console:tide_plan", this.cluster.slug, name)
    ended = {"ended_at": now.astimezone(dt.UTC).replace(microsecond=0).isoformat()}
    layers = [{**layer, **ended} if number in numbers else layer for number, layer in enumerate(row.layers)]
    return _reviewed(this, row, {"layers": layers})
