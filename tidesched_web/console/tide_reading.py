from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _

from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.tree_document import kind_of, parts_of
from tidesched_web.console.page import Page
from tidesched_web.quota import tide, tide_document
from tidesched_web.quota.models import Queue, TidePlan
from tidesched_web.quota.selectors import visible_queues_of, with_card_quota
from tidesched_web.quota.tide_overlaps import Overlap, overlaps_of
from tidesched_web.quota.tide_selectors import document_of, layers_in_sight, visible_queue_names, visible_tide_plans


def plans_in_sight(this: Page) -> list[TidePlan]:
    read: list[TidePlan] | None = getattr(this, "tide_plans", None)
    if read is not None:
        return read
    rows = list(visible_tide_plans(this.access).filter(cluster=this.cluster).order_by("position", "name"))
    names = visible_queue_names(this.access, [this.cluster.pk]) if rows else set()
    for row in rows:
        row.layers, row.hidden = layers_in_sight(row, this.access, names)  # type: ignore[attr-defined]  # for the page
    this.tide_plans = rows  # type: ignore[attr-defined]  # a page is one request
    return rows


def plan_named(this: Page, name: str) -> TidePlan:
    found = next((row for row in plans_in_sight(this) if row.name == name), None)
    if found is None:
        raise Http404
    return found


def others_on(this: Page, name: str) -> list[tide.Plan]:
    rows = (row for row in plans_in_sight(this) if row.enabled and row.name != name)
    return [tide.plan_of(row.name, document_of(row)) for row in rows]


def overlaps_in_sight(this: Page, about: str | None = None, draft: Mapping[str, Any] | None = None) -> list[Overlap]:
    documents = {row.name: document_of(row) for row in plans_in_sight(this)}
    if about is not None and draft is not None:
        documents[about] = dict(draft)
    return overlaps_of(documents, this.cluster.clock(), about=about)


def queues_in_sight(this: Page) -> list[Queue]:
    return list(with_card_quota(visible_queues_of(this.cluster, this.access)).order_by("name"))


def need_plan_writer(this: Page) -> None:
    """Plans are for platform admins: they turn quotas of several tenants."""
    if not this.access.administers:
        raise PermissionDenied


def changed_figures(base: tide.Quota, now: tide.Quota, then: tide.Quota) -> list[dict[str, Any]]:
    return [
        {"queue": queue, "card": card, "base": cards.get(card, 0), "now": before, "then": after}
        for queue, cards in base.items()
        for card in sorted({*now[queue], *then[queue]})
        if (before := now[queue].get(card, 0)) != (after := then[queue].get(card, 0))
    ]


def open_figures(own: tide.Plan, open_now: tide.Open) -> set[tuple[str, str]]:
    return {
        (queue, card)
        for _place, number in open_now
        for queue, cards in own.layers[number].quota.items()
        for card in cards
    }


def plan_editor(this: Page, change: QuotaChange) -> tuple[str, str] | None:
    """Where a change of one plan alone is edited further, and the word for it."""
    if len(change.edits) != 1 or kind_of(key := next(iter(change.edits))) != "tide-plan":
        return None
    (name,), slug = parts_of(key), this.cluster.slug
    if change.edits[key] is None:
        return reverse("console:tide_plan", args=[slug, name]), _("Go to the plan")
    there = any(row.name == name for row in plans_in_sight(this))
    view, more = ("console:tide_plan_edit", [name]) if there else ("console:tide_plan_new", [])
    return f"{reverse(view, args=[slug, *more])}?change={change.pk}", _("Go on editing")


def patched(document: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    exceptions = {**document.get("exceptions", {}), **patch.get("exceptions", {})}
    kept = {day: counts for day, counts in exceptions.items() if counts is not None}
    return tide_document.canonical({**document, **patch, "exceptions": kept})[0]
