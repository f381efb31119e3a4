"""Inference gives up in vain for a sum of training: a figure of training rises only as its owner and the hardware have
room, or another training queue gives up as many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from tidesched_web.changes.documents import RULES
from tidesched_web.common.models import ServiceType
from tidesched_web.quota import tide
from tidesched_web.quota.tide_rules import MomentBreach, base_of
from tidesched_web.quota.tree_rules import ROOT, Breach, Holder, Tree, room
from tidesched_web.quota.tree_words import plain, resource_figure

Uses = Mapping[str, Mapping[str, float]]
# Of a queue: how much of a card it leaves unused, its key, its quota and its use.
_Unused = tuple[int, str, int, float]


class Spare:
    """Made once for all breaches of an edit: each service type is summed up and each card's queues ranked once."""

    def __init__(self, tree: Tree, in_use: Uses) -> None:
        self.tree = tree
        self._in_use = in_use
        self._room: dict[str, dict[str, dict[str, int]]] = {}
        self._ranked: dict[tuple[str, str], list[_Unused]] = {}

    def left(self, holder: str, service_type: str, card: str) -> int | None:
        if service_type not in self._room:
            self._room[service_type] = room(self.tree, service_type)
        return self._room[service_type].get(holder, {}).get(card)

    def most_unused(
        self, service_type: str, card: str, *, below: str, without: Callable[[Holder], bool]
    ) -> tuple[str, int, float] | None:
        if (service_type, card) not in self._ranked:
            self._ranked[service_type, card] = self._rank(service_type, card)
        for _spare, key, quota, used in self._ranked[service_type, card]:
            queue = self.tree.holders[key]
            if self.is_below(key, below) and not without(queue):
                return queue.name, quota, used
        return None

    def is_below(self, key: str, holder: str) -> bool:
        while key not in (holder, ROOT):
            key = self.tree.holders[key].parent
        return key == holder

    def _rank(self, service_type: str, card: str) -> list[_Unused]:
        found: list[_Unused] = []
        for key, queue in self.tree.holders.items():
            quota = queue.limit(service_type, card) if queue.kind == "queue" else None
            if quota:
                used = self._in_use.get(queue.name, {}).get(card, 0.0)
                found.append((quota - math.ceil(used), key, quota, used))
        return sorted((one for one in found if one[0] > 0), key=lambda one: (-one[0], one[1]))


@dataclass(frozen=True)
class _Then:
    tree: Tree
    found: MomentBreach
    plans: list[tide.Plan]
    base: tide.Quota
    quota: tide.Quota

    @classmethod
    def of(cls, tree: Tree, found: MomentBreach, documents: Mapping[str, Mapping[str, Any]]) -> _Then:
        plans, base = tide.enabled_plans(documents), base_of(tree)
        return cls(tree, found, plans, base, tide.with_layers(base, plans, tide.open_layers(plans, found.at)))

    def is_turned(self, queue: Holder) -> bool:
        named = (layer.quota.get(queue.name, {}) for plan in self.plans for layer in plan.layers)
        return any(self.found.breach.resource in cards for cards in named)

    def raised(self, spare: Spare) -> list[tuple[int, str, str]]:
        breach, found = self.found.breach, []
        (place,) = (number for number, plan in enumerate(self.plans) if plan.name == self.found.plan)
        for number, layer in tide.open_layers(self.plans, self.found.at):
            for queue in self.plans[number].layers[layer].quota if number == place else ():
                key = f"queue:{queue}"
                if key not in self.tree.holders or breach.service_type not in self.tree.holders[key].cards:
                    continue
                more = self.quota[queue].get(breach.resource, 0) - self.base[queue].get(breach.resource, 0)
                if more > 0 and spare.is_below(key, breach.holder):
                    name = tide.names_of([self.plans[number]], ((0, layer),))[0]
                    found.append((more, queue, name))
        return sorted(found, key=lambda one: (-one[0], one[1]))


def lending(spare: Spare, found: MomentBreach, documents: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    breach, then = found.breach, _Then.of(spare.tree, found, documents)
    excess, said, names = resource_figure(breach.resource, breach.excess), [], []

    def no_giver(queue: Holder) -> bool:
        return then.is_turned(queue) or (queue.limit(breach.service_type, breach.resource) or 0) < breach.excess

    raised = then.raised(spare)
    enough = next((one for one in raised if one[0] >= breach.excess), None)
    if enough is not None:
        more, queue, layer = enough
        text = (
            _("Take the line of %(queue)s out of “%(layer)s”: it gets %(more)s more there.")
            if more == breach.excess
            else _("Let %(queue)s get %(excess)s less in “%(layer)s”: it gets %(more)s more there.")
        )
        figures = {"queue": queue, "layer": layer, "more": resource_figure(breach.resource, more), "excess": excess}
        said.append(text % figures)
        names.append(f"queue/{queue}")
    elif raised:
        text = _("What the layers that are open then give more has to be %(excess)s less in all.")
        said.append(text % {"excess": excess})
    giver = spare.most_unused(breach.service_type, breach.resource, below=breach.holder, without=no_giver)
    if giver is not None:
        name, quota, used = giver
        figures = {"excess": excess, "queue": name, "used": plain(used), "quota": plain(quota)}
        text = (
            _(
                "Or let %(queue)s give up %(excess)s in the same layer: of those below that owner it leaves most "
                "unused (%(used)s of %(quota)s are in use)."
            )
            if said
            else _(
                "Let another queue give up %(excess)s in the same layer: %(queue)s leaves most unused "
                "(%(used)s of %(quota)s are in use)."
            )
        )
        said.append(text % figures)
        names.append(f"queue/{name}")
    if breach.service_type == ServiceType.TRAINING:
        said.append(
            _(
                "Inference that gives up cards does not lift this: the quotas of training are added up apart. Its "
                "gangs use what inference leaves free within the quotas that they have."
            )
        )
    return {"remedy": " ".join(said), "remedy_names": tuple(names)}


def above_text(spare: Spare, own: Holder, breach: Breach) -> tuple[str, tuple[str, ...]]:
    """With the names of the objects that it speaks of; the cluster's own rest is for those who see all of it."""
    tree, kind, card = spare.tree, breach.service_type, breach.resource
    key = own.parent
    while key != ROOT and tree.holders[key].limit(kind, card) is None:
        key = tree.holders[key].parent
    above = tree.holders.get(key)
    whose = above.title if above else _("the cluster")
    names = (object_key(own.key), object_key(key) if above else RULES)
    left = spare.left(key, kind, card)
    if left is not None and left >= breach.excess:
        said = _("Raise %(holder)s to %(requested)s: %(whose)s has %(left)s left for that.")
        figures = {"requested": plain(breach.requested), "left": plain(left)}
        return said % {"holder": own.title, "whose": whose, **figures}, names
    giver = spare.most_unused(kind, card, below=key, without=lambda queue: spare.is_below(queue.key, own.key))
    whose = above.title if above else capfirst(whose)
    if giver is None:
        return _("%(whose)s has %(left)s left.") % {"whose": whose, "left": plain(left or 0)}, names
    said = _("%(whose)s has %(left)s left; %(queue)s leaves most unused there (%(used)s of %(quota)s are in use).")
    figures = {"left": plain(left or 0), "used": plain(giver[2]), "quota": plain(giver[1])}
    return said % {"whose": whose, "queue": giver[0], **figures}, (*names, f"queue/{giver[0]}")


def object_key(holder: str) -> str:
    return holder.replace(":", "/", 1)
