"""Two plans that turn the same figure in the same hours: which one decides it then, and why.

The order is that of `tide.in_order`; what a layer does to a figure is `tide.Amount`. Nothing here decides anything: the
quota at a moment is worked out by `tide.with_layers` alone.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from tidesched_web.common.card_names import card_label
from tidesched_web.quota import tide
from tidesched_web.quota.tide import Amount, Plan
from tidesched_web.quota.tide_rules import WEEKDAY_NAMES

_DAY = dt.timedelta(days=1)
Stretch = tuple[dt.datetime, dt.datetime]
# Queue and card type.
Figure = tuple[str, str]


@dataclass(frozen=True)
class Overlap:
    """``last`` applies after ``first``. ``start`` and ``end``: the next hours in which both are open."""

    queue: str
    card: str
    first: Plan
    first_amount: Amount
    last: Plan
    last_amount: Amount
    start: dt.datetime
    end: dt.datetime
    open_now: bool = False

    @property
    def undecided(self) -> bool:
        """Both have the same position, so that nothing but their names decides."""
        return self.first.position == self.last.position

    @property
    def replaces(self) -> bool:
        """What the first one does is without effect in these hours."""
        return self.last_amount.act == "set"

    @property
    def adds_up(self) -> bool:
        """Both change what is there, so that the order makes no difference."""
        return self.first_amount.act == self.last_amount.act == "add"

    def other(self, plan: str) -> Plan:
        """The one that is not named ``plan``."""
        return self.last if self.first.name == plan else self.first

    def sentence(self) -> str:
        """It in words, in the time zone of the plan that applies last."""
        figures = {
            "first": self.first.name,
            "last": self.last.name,
            "queue": self.queue,
            "card": card_label(self.card),
            "hours": _hours(self.start, self.end, self.last.zone, open_now=self.open_now),
            "does": amount_text(self.last_amount),
            "did": amount_text(self.first_amount),
        }
        said = _(
            "The plans %(first)s and %(last)s both turn the %(card)s quota of queue %(queue)s in the same hours, "
            "%(hours)s."
        )
        if self.adds_up:
            what = _("Both count: %(did)s and %(does)s add up.")
        elif self.replaces:
            what = _("%(last)s decides it then (%(does)s); what %(first)s does to it (%(did)s) has no effect.")
        else:
            what = _("%(first)s makes it %(did)s, then %(last)s changes that (%(does)s).")
        return " ".join(filter(None, (said % figures, what % figures, self._why())))

    def _why(self) -> str:
        if self.adds_up:
            return ""
        if self.undecided:
            text = _(
                "Both plans have position %(position)s, so the later name applies last. "
                "Give one of them a higher position to decide it yourself."
            )
            return text % {"position": self.last.position}
        text = _("Position %(higher)s applies after position %(lower)s.")
        return text % {"higher": self.last.position, "lower": self.first.position}

    def as_json(self) -> dict[str, Any]:
        return {
            "code": "plans_overlap",
            "detail": self.sentence(),
            "first": self.first.name,
            "last": self.last.name,
            "decides": None if self.adds_up else self.last.name,
            "by": "position" if not self.undecided else "name",
            "queue": self.queue,
            "card": self.card,
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
        }


def amount_text(amount: Amount) -> str:
    if amount.act == "set":
        return f"= {amount.cards}"
    return f"+{amount.cards}" if amount.cards >= 0 else f"−{-amount.cards}"


def _hours(start: dt.datetime, end: dt.datetime, zone: ZoneInfo, *, open_now: bool) -> str:
    """A stretch in words; the second day is said only where it is another one."""
    opens, closes = start.astimezone(zone), end.astimezone(zone)
    until = f"{closes:%H:%M}"
    if opens.date() != closes.date():
        until = f"{WEEKDAY_NAMES[closes.weekday()]} {until}"
    if open_now:
        end_day = WEEKDAY_NAMES[closes.weekday()]
        return _("now until %(end)s (%(zone)s)") % {"end": f"{end_day} {closes:%H:%M}", "zone": zone.key}
    return _("next on %(day)s from %(start)s to %(end)s (%(zone)s)") % {
        "day": f"{WEEKDAY_NAMES[opens.weekday()]} {opens:%Y-%m-%d}",
        "start": f"{opens:%H:%M}",
        "end": until,
        "zone": zone.key,
    }


def overlaps(plans: Sequence[Plan], now: dt.datetime, *, about: str | None = None) -> list[Overlap]:
    """Each figure that two of these plans turn in the same hours of the year from ``now`` on, with its next hours.

    ``about``: only with the plan of this name. Several layers of one plan are in the order in which it lists them, so
    they are no question. Those that only the names decide come first.
    """
    windows = {plan.name: [_Windows(plan, layer, now) for layer in plan.layers] for plan in plans}
    figures = {name: frozenset[Figure]().union(*(one.figures for one in of_it)) for name, of_it in windows.items()}
    found: dict[tuple[str, str, str, str], Overlap] = {}
    for first, last in combinations(tide.in_order(plans), 2):
        if (about is not None and about not in (first.name, last.name)) or figures[first.name].isdisjoint(
            figures[last.name]
        ):
            continue
        for one in _between(first, last, windows, now):
            key = (first.name, last.name, one.queue, one.card)
            known = found.get(key)
            if known is None or one.start < known.start:
                found[key] = one
    return sorted(found.values(), key=lambda one: (not one.undecided, one.start, one.queue, one.card, one.first.name))


class _Windows:
    """When a layer is open in the year from a moment on, in order; worked out as far as it is asked for."""

    def __init__(self, plan: Plan, layer: tide.Layer, now: dt.datetime) -> None:
        self.figures = frozenset((queue, card) for queue, cards in layer.quota.items() for card in cards)
        first = now.astimezone(plan.zone).date() - 2 * _DAY
        days = (first + step * _DAY for step in range(tide.HORIZON_DAYS + 2))
        found = (tide.window(plan, layer, day) for day in days)
        self._ahead = (stretch for stretch in found if stretch is not None and stretch[1] > now)
        self._known: list[Stretch] = []

    def at(self, place: int) -> Stretch | None:
        """The stretch of this number; None where there are not so many."""
        while len(self._known) <= place:
            stretch = next(self._ahead, None)
            if stretch is None:
                return None
            self._known.append(stretch)
        return self._known[place]


def _between(first: Plan, last: Plan, windows: Mapping[str, Sequence[_Windows]], now: dt.datetime) -> Iterator[Overlap]:
    for layer, opens in zip(first.layers, windows[first.name], strict=True):
        for other, others in zip(last.layers, windows[last.name], strict=True):
            shared = opens.figures & others.figures
            stretch = _together(opens, others) if shared else None
            if stretch is not None:
                for queue, card in sorted(shared):
                    does = layer.quota[queue][card], last, other.quota[queue][card]
                    yield Overlap(queue, card, first, *does, *stretch, open_now=stretch[0] <= now)


def _together(one: _Windows, two: _Windows) -> Stretch | None:
    """The first stretch in which both are open. O(days until they meet)."""
    left = right = 0
    while (mine := one.at(left)) is not None and (theirs := two.at(right)) is not None:
        start, end = max(mine[0], theirs[0]), min(mine[1], theirs[1])
        if start < end:
            return start, end
        if mine[1] <= theirs[1]:
            left += 1
        else:
            right += 1
    return None


def overlaps_of(
    documents: Mapping[str, Mapping[str, Any]], now: dt.datetime, *, about: str | None = None
) -> list[Overlap]:
    """`overlaps` of the plans that are on, from their documents by name; ``about`` counts as on."""
    counted = {name: dict(document) for name, document in documents.items()}
    if about in counted:
        counted[about]["enabled"] = True
    return overlaps(tide.enabled_plans(counted), now, about=about)


def overlaps_of_each(
    documents: Mapping[str, Mapping[str, Any]], names: Iterable[str], now: dt.datetime
) -> dict[str, list[Overlap]]:
    """`overlaps_of` about each of ``names``; those among the plans that are on are worked out once for all of them."""
    among: dict[str, list[Overlap]] = defaultdict(list)
    for one in overlaps_of(documents, now):
        among[one.first.name].append(one)
        among[one.last.name].append(one)
    return {
        name: among[name] if documents[name].get("enabled") else overlaps_of(documents, now, about=name)
        for name in names
    }
