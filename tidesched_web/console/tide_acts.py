import datetime as dt
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from tidesched_web.changes import services as changes
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.tree_document import key_of
from tidesched_web.common.errors import DomainError
from tidesched_web.console.forms.meanwhile import Meanwhile
from tidesched_web.console.forms.tide_plan import version_sent
from tidesched_web.console.intent import tell_waits
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.tide_reading import (
    changed_figures,
    need_plan_writer,
    open_figures,
    others_on,
    overlaps_in_sight,
    plan_named,
    queues_in_sight,
)
from tidesched_web.quota import tide
from tidesched_web.quota.models import TidePlan
from tidesched_web.quota.selectors import card_quota_of
from tidesched_web.quota.tide_selectors import document_of, effective_by_name, visible_tide_plans


@takes_forms
@page(section="tide_plans")
def switch(this: Page, name: str) -> HttpResponse:
    row = plan_named(this, name)
    need_plan_writer(this)
    key = key_of("tide-plan", name)
    edits = {key: {"enabled": not row.enabled}}
    return _confirm(this, row, key, edits, "tide/switch.html")


@takes_forms
@page(section="tide_plans")
def take_back(this: Page, name: str) -> HttpResponse:
    row = plan_named(this, name)
    need_plan_writer(this)
    own, now = tide.plan_of(row.name, document_of(row)), this.cluster.clock()
    numbers = {number for _place, number in tide.open_layers([own], now)} if row.enabled else set()
    if this.request.method == "POST" and not numbers:
        messages.info(this.request, _("Nothing was changed: no layer of the plan is open now."))
        return redirect("console:tide_plan", this.cluster.slug, name)
    ended = {"ended_at": now.astimezone(dt.UTC).replace(microsecond=0).isoformat()}
    layers = [{**layer, **ended} if number in numbers else layer for number, layer in enumerate(row.layers)]
    key = key_of("tide-plan", name)
    open_now = [own.layers[number].name or _("layer %(n)s") % {"n": number + 1} for number in sorted(numbers)]
    then = tide.ended_layers(tide.plan_of(name, {**document_of(row), "layers": layers}), now)
    opens_next = min((one.opens_next for one in then if one.opens_next), default=None)
    more = {"open_now": open_now, "opens_next": opens_next}
    return _confirm(this, row, key, {key: {"layers": layers}}, "tide/take_back.html", more=more)


@takes_forms
@page(section="tide_plans")
def delete(this: Page, name: str) -> HttpResponse:
    row = plan_named(this, name)
    need_plan_writer(this)
    key = key_of("tide-plan", name)
    return _confirm(this, row, key, {key: None}, "tide/delete.html", back="console:tide_plans")


def _confirm(
    this: Page,
    row: TidePlan,
    key: str,
    edits: dict[str, Any],
    template: str,
    *,
    back: str = "console:tide_plan",
    more: dict[str, Any] | None = None,
) -> HttpResponse:
    """Ask once more; carry it out where the plan is still what the page that asked has shown."""
    error, reason, meanwhile = "", this.request.POST.get("reason", "").strip(), None
    if this.request.method == "POST":
        if this.request.POST.get("act") == "review":
            try:
                draft = changes.draft(cluster=this.cluster, edits=edits, access=this.access, reason=reason, once=True)
                return redirect("console:change", this.cluster.slug, draft.pk)
            except DomainError as refused:
                error = refused.message
        elif not reason:
            error = _("Say why: the reason goes into the audit log.")
        else:
            versions = {key: version_sent(this.request.POST)}
            try:
                change = changes.carry_out(
                    cluster=this.cluster, edits=edits, access=this.access, reason=reason, versions=versions
                )
                return say_and_lead_on(this, change, back, row.name, deleted=None in edits.values())
            except DomainError as refused:
                if refused.code == "stale":
                    meanwhile = Meanwhile(refused.message)
                else:
                    error = refused.message
    context = {"plan": row, "error": error, "reason": reason, "turned": _would_turn(this, row), "meanwhile": meanwhile}
    context["overlaps"] = [] if row.enabled else overlaps_in_sight(this, row.name)
    return this.render(template, context | (more or {}), status=412 if meanwhile else 400 if error else 200)


def _would_turn(this: Page, row: TidePlan) -> list[dict[str, Any]]:
    """The figures that its open layers are about also where they stay: inference or another plan may keep them."""
    own = tide.plan_of(row.name, document_of(row))
    queues = [queue for queue in queues_in_sight(this) if queue.name in tide.touched([own])]
    base = {queue.name: card_quota_of(queue) for queue in queues}
    others = others_on(this, row.name)
    with_it = effective_by_name(this.cluster, tide.in_order([*others, own]), base)
    without = effective_by_name(this.cluster, tide.in_order(others), base)
    about = open_figures(own, tide.open_layers([own], this.cluster.clock()))
    before, after = (with_it, without) if row.enabled else (without, with_it)
    return changed_figures(base, before, after, about)


def _is_on(this: Page, name: str) -> bool:
    """As it is now: the plans of the page were read before it was saved."""
    return visible_tide_plans(this.access).filter(cluster=this.cluster, name=name, enabled=True).exists()


def say_and_lead_on(this: Page, change: QuotaChange, back: str, name: str, *, deleted: bool = False) -> HttpResponse:
    if change.state == "waiting":
        tell_waits(this, change)
        return redirect("console:tide_plans", this.cluster.slug)
    if change.pk is None:
        messages.info(this.request, _("Nothing was changed: it says so already."))
    elif deleted:
        messages.success(this.request, _("The plan %(name)s is deleted.") % {"name": name})
    elif (change.plan or {}).get("objects"):
        messages.success(this.request, _("Saved. The cluster has it within seconds."))
    elif _is_on(this, name):
        messages.success(this.request, _("Saved. No quota changes at this moment, so nothing is sent to the cluster."))
    else:
        messages.success(this.request, _("Saved. The plan is off: nothing is sent to the cluster."))
    arguments = [this.cluster.slug] if back == "console:tide_plans" else [this.cluster.slug, name]
    return redirect(back, *arguments)
