"""What edits do to tide plans: names that are not there, and sums that are exceeded at some moment. Pure functions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from tidesched_web.changes.documents import Fault
from tidesched_web.changes.tree_check import tree_of
from tidesched_web.changes.tree_document import Document, key_of, kind_of, parts_of
from tidesched_web.quota import tide_document, tide_rules

_SHAPES_QUOTA = frozenset({"queue", "project", "tenant", "tide-plan"})


def plans_in(documents: Mapping[str, Document]) -> dict[str, Document]:
    """The tide plans of a tree by name."""
    return {parts_of(key)[0]: document for key, document in documents.items() if kind_of(key) == "tide-plan"}


def tide_faults(
    before: Mapping[str, Document],
    after: Mapping[str, Document],
    edits: Mapping[str, Any],
    *,
    card_names: Iterable[str],
    hardware: Mapping[str, int],
    ratios: Mapping[str, float],
    now: dt.datetime,
) -> list[Fault]:
    """Edited plans name what is there, and no enabled plan exceeds the tree at any moment of the year ahead."""
    queues = {parts_of(key)[0] for key in after if kind_of(key) == "queue"}
    cards = {*card_names, *(parts_of(key)[0] for key in after if kind_of(key) == "card-type")}
    faults = [
        Fault(key, fault.field, fault.code, fault.detail)
        for key in sorted(edits)
        if kind_of(key) == "tide-plan" and key in after
        for fault in tide_document.unknown_names(after[key], queues, cards)
    ]
    plans = plans_in(after)
    if faults or not plans or not any(kind_of(key) in _SHAPES_QUOTA for key in edits):
        return faults
    found = tide_rules.first_breaches(
        tree_of(before, hardware, ratios), tree_of(after, hardware, ratios), plans_in(before), plans, now=now
    )
    return [
        Fault(
            key_of("tide-plan", breach.plan),
            "/layers",
            "exceeds_at_moment",
            breach.sentence(),
            requested=breach.breach.requested,
            limit=breach.breach.limit,
            sibling=breach.sibling,
        )
        for breach in found
    ]


def queues_named(document: Document) -> set[str]:
    """The queues that a plan is about."""
    return {queue for layer in document["layers"] for queue in layer["quota"]}
