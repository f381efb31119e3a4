"""The sum rules of the tree at every moment that tide plans make, as pure functions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.common.models import ServiceType
from tidesched_web.quota import tide
from tidesched_web.quota.tide import Plan, Quota
from tidesched_web.quota.tree_rules import (
    CPU,
    MEMORY,
    ROOT,
    Breach,
    BreachKey,
    Holder,
    Tree,
    breaches,
    ceiling,
    claims,
)

Documents = Mapping[str, Mapping[str, Any]]
WEEKDAY_NAMES = (
    gettext_lazy("Monday"),
    gettext_lazy("Tuesday"),
    gettext_lazy("Wednesday"),
    gettext_lazy("Thursday"),
    gettext_lazy("Friday"),
    gettext_lazy("Saturday"),
    gettext_lazy("Sunday"),
)


@dataclass(frozen=True)
class MomentBreach:
    """The first moment at which a sum would be exceeded, and under which plan and layers."""

    at: dt.datetime
    zone: str
    plan: str
    layers: list[str]
    breach: Breach
    holder: str
    sibling: str | None

    def sentence(self) -> str:
        """It in words, in the time zone of the plan."""
        local = self.at.astimezone(ZoneInfo(self.zone))
        figures = {
            "day": f"{WEEKDAY_NAMES[local.weekday()]} {local:%Y-%m-%d}",
            "time": f"{local:%H:%M}",
            "zone": self.zone,
            "card": self.breach.resource,
            "service_type": ServiceType(self.breach.service_type).label,
            "requested": self.breach.requested,
            "limit": self.breach.limit,
            "holder": self.holder or _("the hardware of the cluster"),
            "layers": ", ".join(self.layers) or _("no layer"),
        }
        return (
            _(
                "On %(day)s at %(time)s (%(zone)s) %(service_type)s would be promised %(requested)s × %(card)s, "
                "but %(holder)s has %(limit)s. Open then: %(layers)s."
            )
            % figures
        )


def queue_holders(tree: Tree) -> dict[str, str]:
    """Queue name → key of its holder."""
    return {holder.name: key for key, holder in tree.holders.items() if holder.kind == "queue"}


def base_of(tree: Tree, only: Collection[str] | None = None) -> dict[str, dict[str, int]]:
    """The base quota of the queues in a tree, by name."""
    return {
        name: dict(_cards(tree.holders[key]))
        for name, key in queue_holders(tree).items()
        if only is None or name in only
    }


def _cards(queue: Holder) -> Mapping[str, int]:
    return next(iter(queue.cards.values()), {})


def with_quota(tree: Tree, quota: Quota) -> Tree:
    """The tree with other card quotas of some queues."""
    keys = queue_holders(tree)
    holders = dict(tree.holders)
    for name, cards in quota.items():
        holder = holders[keys[name]]
        if dict(_cards(holder)) != dict(cards):
            service_type = next(iter(holder.cards), None) or next(iter(holder.compute), "")
            holders[keys[name]] = replace(holder, cards={service_type: dict(cards)})
    return replace(tree, holders=holders)


@dataclass
class _Sums:
    """What each holder's children ask of it under the base; a moment's layers are added along the chains they touch."""

    tree: Tree
    keys: dict[str, str] = field(init=False)
    asked: dict[str, Mapping[str, Mapping[str, Mapping[str, int]]]] = field(init=False)

    def __post_init__(self) -> None:
        self.keys = queue_holders(self.tree)
        self.asked = {kind: claims(self.tree, kind) for kind in self.tree.ratios}

    def breaches_under(self, plans: list[Plan], open_now: tide.Open) -> dict[BreachKey, Breach]:
        """Sums that layers touch and that are exceeded under them. O(queues that the layers touch × depth)."""
        base = base_of(self.tree, tide.touched(plans) & self.keys.keys())
        quota = tide.with_layers(base, plans, open_now)
        moved: dict[BreachKey, dict[str, int]] = {}
        for queue, cards in quota.items():
            for card, figure in cards.items():
                by = figure - base[queue].get(card, 0)
                if by:
                    self._move(self.keys[queue], card, by, moved)
        found = {}
        for (holder, kind, card), changes in moved.items():
            figures = dict(self.asked[kind].get(holder, {}).get(card, {}))
            for child, by in changes.items():
                figures[child] = figures.get(child, 0) + by
            limit = ceiling(self.tree, holder, kind, card)
            total = sum(figures.values())
            if limit is not None and total > limit:
                largest = max(sorted(figures), key=lambda child: figures[child])
                found[holder, kind, card] = Breach(holder, kind, card, total, limit, largest)
        return found

    def _move(self, key: str, card: str, by: int, moved: dict[BreachKey, dict[str, int]]) -> None:
        """Tell the holders above a queue: up to the first one with a limit of its own, which asks for that instead."""
        kind = next(iter(self.tree.holders[key].cards))
        while True:
            parent = self.tree.holders[key].parent
            changes = moved.setdefault((parent, kind, card), {})
            changes[key] = changes.get(key, 0) + by
            if parent == ROOT or self.tree.holders[parent].limit(kind, card) is not None:
                return
            key = parent


def first_breaches(
    before: Tree, after: Tree, plans_before: Documents, plans_after: Documents, *, now: dt.datetime
) -> list[MomentBreach]:
    """Breaches that an edit would create or enlarge at some moment of the year ahead, each with its first moment.

    ``plans_*`` are the (canonical) documents of the plans by name. Like the rule for the base it is monotone: what was
    in breach at a moment before may stay so, as long as it does not grow.
    """
    now_on, then_on = tide.enabled_plans(plans_after), tide.enabled_plans(plans_before)
    if not now_on:
        return []
    sums, known = _Sums(after), breaches(before)
    earlier_sums: _Sums | None = None
    found: dict[BreachKey, MomentBreach] = {}
    for open_now, moment in sorted(tide.moments_ahead(plans_after, now).items(), key=lambda pair: pair[1]):
        earlier: dict[BreachKey, Breach] | None = None
        for key, breach in sums.breaches_under(now_on, open_now).items():
            old = known.get(key)
            if key in found or (old is not None and breach.excess <= old.excess):
                continue
            if earlier is None:
                earlier_sums = earlier_sums or _Sums(before)
                earlier = earlier_sums.breaches_under(then_on, tide.open_layers(then_on, moment))
            old = earlier.get(key)
            if old is None or breach.excess > old.excess:
                found[key] = _moment_breach(after, now_on, open_now, moment, breach)
    return sorted(found.values(), key=lambda breach: breach.at)


def _moment_breach(
    tree: Tree, plans: list[Plan], open_now: tide.Open, moment: dt.datetime, breach: Breach
) -> MomentBreach:
    keys = queue_holders(tree)

    def raises(place: tuple[int, int]) -> bool:
        layer = plans[place[0]].layers[place[1]]
        return any(
            breach.resource in cards and _below(tree, keys.get(queue), breach.holder)
            for queue, cards in layer.quota.items()
        )

    guilty = tuple(place for place in open_now if raises(place)) or open_now
    plan = plans[guilty[-1][0]]
    holder = tree.holders.get(breach.holder)
    sibling = tree.holders.get(breach.largest_child)
    return MomentBreach(
        at=moment,
        zone=plan.zone.key,
        plan=plan.name,
        layers=tide.names_of(plans, guilty),
        breach=breach,
        holder=f"{holder.kind} {holder.name}" if holder else "",
        sibling=sibling.name if sibling else None,
    )


def _below(tree: Tree, key: str | None, holder: str) -> bool:
    while key is not None and key != holder:
        if key == ROOT:
            return False
        key = tree.holders[key].parent if key in tree.holders else None
    return key is not None


def within_tree(tree: Tree, wanted: Quota) -> dict[str, dict[str, int]]:
    """``wanted`` with the plans' raises held back where the tree would be exceeded now.

    ``tree`` holds the base. What the base itself exceeds is nobody's doing here and stays.
    """
    known = breaches(tree)
    keys = queue_holders(tree)
    base = base_of(tree, wanted)
    quota = {queue: dict(cards) for queue, cards in wanted.items()}
    for _round in range(len(quota) + 1):
        excess = []
        for key, breach in breaches(with_quota(tree, quota)).items():
            allowed = known[key].excess if key in known else 0
            if breach.resource not in (CPU, MEMORY) and breach.excess > allowed:
                below = [
                    queue
                    for queue in quota
                    if _below(tree, keys[queue], breach.holder)
                    and next(iter(tree.holders[keys[queue]].cards), breach.service_type) == breach.service_type
                ]
                excess.append((below, breach.resource, breach.excess - allowed))
        held = tide.held_within(quota, base, excess[:1])
        if held == quota:
            break
        quota = held
    return quota
