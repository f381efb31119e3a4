import datetime as dt
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.common.sentences import listed
from tidesched_web.quota import tide
from tidesched_web.quota.tide import Plan, Quota
from tidesched_web.quota.tide_sums import Sums, queue_cards, queue_holders
from tidesched_web.quota.tree_rules import CPU, MEMORY, ROOT, Breach, Tree, breaches
from tidesched_web.quota.tree_words import number, resource_figure, service_word

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
    at: dt.datetime
    zone: str
    plan: str
    layers: list[str]
    breach: Breach
    holder: str
    sibling: str | None

    def sentence(self) -> str:
        return f"{self.sums()} {self.opened()}"

    def sums(self) -> str:
        local = self.at.astimezone(ZoneInfo(self.zone))
        figures = {
            "day": f"{WEEKDAY_NAMES[local.weekday()]} {local:%Y-%m-%d}",
            "time": f"{local:%H:%M}",
            "zone": self.zone,
            "service_type": service_word(self.breach.service_type),
            "requested": resource_figure(self.breach.resource, self.breach.requested),
            "limit": number(self.breach.resource, self.breach.limit),
            "holder": self.holder or _("the hardware of the cluster"),
        }
        return (
            _(
                "On %(day)s at %(time)s (%(zone)s) the %(service_type)s quotas below %(holder)s would add up to "
                "%(requested)s, but it has %(limit)s."
            )
            % figures
        )

    def opened(self) -> str:
        return _("Open then: %(layers)s.") % {"layers": listed(self.layers) or _("no layer")}


def base_of(tree: Tree, only: Collection[str] | None = None) -> dict[str, dict[str, int]]:
    return {
        name: dict(queue_cards(tree.holders[key]))
        for name, key in queue_holders(tree).items()
        if only is None or name in only
    }


def with_quota(tree: Tree, quota: Quota) -> Tree:
    keys = queue_holders(tree)
    holders = dict(tree.holders)
    for name, cards in quota.items():
        holder = holders[keys[name]]
        if dict(queue_cards(holder)) != dict(cards):
            service_type = next(iter(holder.cards), None) or next(iter(holder.compute), "")
            holders[keys[name]] = replace(holder, cards={service_type: dict(cards)})
    return replace(tree, holders=holders)


def first_breaches(
    before: Tree, after: Tree, plans_before: Documents, plans_after: Documents, *, now: dt.datetime
) -> list[MomentBreach]:
    """Monotone, as the rule for the base: what was in breach at a moment before may stay so, but not grow."""
    now_on, then_on = tide.enabled_plans(plans_after), tide.enabled_plans(plans_before)
    if not now_on:
        return []
    found = _breaches_at(tide.moments_ahead(plans_after, now), before, after, then_on, now_on)
    if any(breach.at < now for breach in found):
        # The moments of a whole day are remembered; one of them that is over has to name when it comes next.
        ahead = {**tide.moments(now_on, now), tide.open_layers(now_on, now): now}
        found = _breaches_at(ahead, before, after, then_on, now_on)
    return found


def _breaches_at(
    ahead: Mapping[tide.Open, dt.datetime], before: Tree, after: Tree, then_on: list[Plan], now_on: list[Plan]
) -> list[MomentBreach]:
    sums, known, same = Sums(after, now_on), breaches(before), then_on == now_on
    earlier: Sums | None = None
    found: list[MomentBreach] = []
    for open_now, moment in sorted(ahead.items(), key=lambda pair: pair[1]):
        sums.step(open_now)
        worse = [key for key in sums.over if key not in known or sums.excess(key) > known[key].excess]
        if not worse:
            continue
        earlier = earlier or Sums(before, then_on)
        earlier.step(open_now if same else tide.open_layers(then_on, moment))
        for key in sorted(worse):
            if sums.excess(key) > earlier.excess(key):
                found.append(_moment_breach(sums, now_on, open_now, moment, sums.breach(key)))
                sums.settle(key)
    return found


def _moment_breach(
    sums: Sums, plans: list[Plan], open_now: tide.Open, moment: dt.datetime, breach: Breach
) -> MomentBreach:
    tree, keys = sums.tree, sums.queues

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
        holder=holder.title if holder else "",
        sibling=sibling.name if sibling else None,
    )


def _below(tree: Tree, key: str | None, holder: str) -> bool:
    while key is not None and key != holder:
        if key == ROOT:
            return False
        key = tree.holders[key].parent if key in tree.holders else None
    return key is not None


def effective(
    base: Quota, plans: list[Plan], now: dt.datetime, floors: Quota, tree: Callable[[], Tree]
) -> dict[str, dict[str, int]]:
    """What is sent and what every page announces; raises wait until ``tree`` has room beside the floors."""
    quota = tide.effective_quota(base, plans, now, floors)
    return quota if quota == tide.effective_quota(base, plans, now) else within_tree(tree(), quota)


def within_tree(tree: Tree, wanted: Quota) -> dict[str, dict[str, int]]:
    """``tree`` holds the base. What the base itself exceeds is not of the plans and stays."""
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
