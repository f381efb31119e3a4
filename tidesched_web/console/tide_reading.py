"""What the pages of tide plans read in the same way: the plans and queues in sight, and figures that differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404

from tidesched_web.console.page import Page
from tidesched_web.quota import tide
from tidesched_web.quota.models import Queue, TidePlan
from tidesched_web.quota.selectors import visible_queues_of, with_card_quota
from tidesched_web.quota.tide_overlaps import Overlap, overlaps_of
from tidesched_web.quota.tide_selectors import (
    document_of,
    layers_in_sight,
    visible_queue_names,
    visible_tide_plans,
)


def plans_in_sight(this: Page) -> list[TidePlan]:
    """The plans that the reader sees, with the layers that they may see; read once for each request."""
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
    """The plan of this name, or 404."""
    found = next((row for row in plans_in_sight(this) if row.name == name), None)
    if found is None:
        raise Http404
    return found


def others_on(this: Page, name: str) -> list[tide.Plan]:
    """The plans in sight that are on, but for the one of this name."""
    rows = (row for row in plans_in_sight(this) if row.enabled and row.name != name)
    return [tide.plan_of(row.name, document_of(row)) for row in rows]


def overlaps_in_sight(this: Page, about: str | None = None, draft: Mapping[str, Any] | None = None) -> list[Overlap]:
    """Figures in sight that two plans turn in the same hours; ``draft`` stands for the plan ``about``."""
    documents = {row.name: document_of(row) for row in plans_in_sight(this)}
    if about is not None and draft is not None:
        documents[about] = dict(draft)
    return overlaps_of(documents, this.cluster.clock(), about=about)


def queues_in_sight(this: Page) -> list[Queue]:
    """The queues that the reader sees, with their base."""
    return list(with_card_quota(visible_queues_of(this.cluster, this.access)).order_by("name"))


def need_plan_writer(this: Page) -> None:
    """Plans are for platform admins: they turn quotas of several tenants."""
    if not this.access.administers:
        raise PermissionDenied


def changed_figures(base: tide.Quota, now: tide.Quota, then: tide.Quota) -> list[dict[str, Any]]:
    """The figures that are others then."""
    return [
        {"queue": queue, "card": card, "base": cards.get(card, 0), "now": before, "then": after}
        for queue, cards in base.items()
        for card in sorted({*now[queue], *then[queue]})
        if (before := now[queue].get(card, 0)) != (after := then[queue].get(card, 0))
    ]
