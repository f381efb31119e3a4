import datetime as dt
from collections.abc import Collection, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404

from tidesched_web.changes.tree_document import key_of, kind_of, parts_of
from tidesched_web.console.page import Page
from tidesched_web.quota import tide, tide_document
from tidesched_web.quota.models import Queue, TidePlan
from tidesched_web.quota.selectors import card_quota_of, visible_queues_of, with_card_quota
from tidesched_web.quota.tide_overlaps import Overlap, overlaps_of
from tidesched_web.quota.tide_selectors import (
    document_of,
    layers_in_sight,
    visible_queue_names,
    visible_tide_plans,
)

# So many steps ahead are looked at for one that makes another figure.
MOST_STEPS = 8


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


def changed_figures(
    base: tide.Quota, now: tide.Quota, then: tide.Quota, also: Collection[tuple[str, str]] = ()
) -> list[dict[str, Any]]:
    return [
        {"queue": queue, "card": card, "base": cards.get(card, 0), "now": before, "then": after}
        for queue, cards in base.items()
        for card in sorted({*now[queue], *then[queue]})
        if (before := now[queue].get(card, 0)) != (after := then[queue].get(card, 0)) or (queue, card) in also
    ]


def open_figures(own: tide.Plan, open_now: tide.Open) -> set[tuple[str, str]]:
    return {
        (queue, card)
        for _place, number in open_now
        for queue, cards in own.layers[number].quota.items()
        for card in cards
    }


def edited_plans(edits: Mapping[str, Any]) -> list[str]:
    names = [parts_of(key)[0] for key in edits if kind_of(key) == "tide-plan"]
    return names if len(names) == len(edits) else []


def openings(this: Page, edits: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not edited_plans(edits):
        return []
    found = []
    rows = {row.name: document_of(row) for row in plans_in_sight(this)}
    after = dict(rows)
    for name in edited_plans(edits):
        patch = edits[key_of("tide-plan", name)]
        after.pop(name, None)
        if patch is not None:
            exceptions = {**rows.get(name, {}).get("exceptions", {}), **patch.get("exceptions", {})}
            kept = {day: counts for day, counts in exceptions.items() if counts is not None}
            after[name] = tide_document.canonical({**rows.get(name, {}), **patch, "exceptions": kept})[0]
    without, with_it = tide.enabled_plans(rows), tide.enabled_plans(after)
    base = {queue.name: card_quota_of(queue) for queue in queues_in_sight(this)} if without != with_it else {}
    for name in edited_plans(edits) if base else ():
        own = [plan for plan in (*without, *with_it) if plan.name == name]
        at: dt.datetime | None = this.cluster.clock()
        for _step in range(MOST_STEPS):
            at = tide.next_change(own, at) if at else None
            if at is None:
                break
            figures = changed_figures(
                base,
                tide.with_layers(base, without, tide.open_layers(without, at)),
                tide.with_layers(base, with_it, tide.open_layers(with_it, at)),
            )
            if figures:
                found.append({"plan": name, "at": at, "figures": figures})
                break
    return found
