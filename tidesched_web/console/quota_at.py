"""Quota at a time: what each queue may use at a chosen moment, by its base and by the tide plans that are on."""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Final

from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.clusters.selectors import card_names
from tidesched_web.common import reader_zone
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts
from tidesched_web.console.export import csv_list
from tidesched_web.console.forms.quota import QuotaAtFilter
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import part_of
from tidesched_web.console.tide_reading import changed_figures, plans_in_sight, queues_in_sight
from tidesched_web.quota import tide
from tidesched_web.quota.models import Queue
from tidesched_web.quota.selectors import card_quota_of
from tidesched_web.quota.tide_selectors import document_of, effective_by_name

# So far ahead, and so many at most, are the next changes of all plans named.
AHEAD: Final = dt.timedelta(days=8)
MOST_CHANGES: Final = 8


@dataclass(frozen=True, slots=True)
class QuotaThen:
    queue: Queue
    card: str
    base: int
    quota: int
    layers: list[str]

    @property
    def by(self) -> dict[str, int]:
        """What the layers add to the base or take from it; nothing where the base holds."""
        return {"add": self.quota - self.base} if self.quota != self.base else {}


@dataclass(frozen=True, slots=True)
class NextChange:
    at: dt.datetime
    opens: list[str]
    closes: list[str]
    figures: list[dict[str, object]]

    @property
    def minute(self) -> str:
        """It as the field of a moment takes it, in the reader's zone."""
        return f"{timezone.localtime(self.at):%Y-%m-%dT%H:%M}"


def plans_on(this: Page) -> list[tide.Plan]:
    return tide.in_order(tide.plan_of(row.name, document_of(row)) for row in plans_in_sight(this) if row.enabled)


@page(section="tide_plans", topics="queues changes")
def quota_at(this: Page) -> HttpResponse:
    form = QuotaAtFilter(this.request.GET, card_names(this.cluster))
    asked, plans = form.moment("at"), plans_on(this)
    at = asked or this.cluster.clock()
    queues = [queue for queue in queues_in_sight(this) if form.matches(queue)]
    base = {queue.name: card_quota_of(queue) for queue in queues}
    # What inference uses is known of this moment alone.
    quota = tide.effective_quota(base, plans, asked) if asked else effective_by_name(this.cluster, plans, base)
    rows = [row for row in _rows(queues, base, quota, plans, at) if form.keeps(row.card, differs=bool(row.by))]
    if this.request.GET.get("format") == "csv":
        return _csv(this, rows, at)
    part = part_of(rows, this.request.GET.get("cursor", ""))
    return this.render(
        "tide/quota_at.html",
        {
            "page": part,
            "rows": part.rows,
            "form": form,
            "line": _line(rows, tide.names_of(plans, tide.open_layers(plans, at), _("layer %(n)s")), at),
            "later": asked is not None and asked > this.cluster.clock(),
        },
    )


def _rows(
    queues: Iterable[Queue], base: tide.Quota, quota: tide.Quota, plans: Sequence[tide.Plan], at: dt.datetime
) -> Iterator[QuotaThen]:
    layers = _layers_of(plans, tide.open_layers(plans, at))
    for queue in queues:
        was, then = base[queue.name], quota[queue.name]
        for card in sorted({*was, *then}):
            if was.get(card) or then.get(card):
                about = layers.get((queue.name, card), [])
                yield QuotaThen(queue, card, was.get(card, 0), then.get(card, 0), about)


def _layers_of(plans: Sequence[tide.Plan], open_then: tide.Open) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for place, number in open_then:
        (name,) = tide.names_of(plans, ((place, number),), _("layer %(n)s"))
        for queue, cards in plans[place].layers[number].quota.items():
            for card in cards:
                found.setdefault((queue, card), []).append(name)
    return found


def _line(rows: Sequence[QuotaThen], open_then: Sequence[str], at: dt.datetime) -> str:
    moment = reader_zone.named(at)
    if not open_then:
        return _("At %(time)s no layer of a plan is open: the base holds.") % {"time": moment}
    others = sum(bool(row.by) for row in rows)
    figures = ngettext("%(n)s figure here is", "%(n)s figures here are", others) % {"n": amounts.number(others)}
    return " ".join(
        [
            _("At %(time)s %(layers)s are open.") % {"time": moment, "layers": listed(open_then)}
            if len(open_then) > 1
            else _("At %(time)s %(layers)s is open.") % {"time": moment, "layers": open_then[0]},
            _("%(figures)s another than the base.") % {"figures": figures},
        ]
    )


def _csv(this: Page, rows: Iterable[QuotaThen], at: dt.datetime) -> HttpResponse:
    return csv_list(
        f"quota-{this.cluster.slug}-{at:%Y%m%dT%H%MZ}",
        {
            "at": lambda _row: at.isoformat(),
            "queue": attrgetter("queue.name"),
            "service_type": attrgetter("queue.service_type"),
            "card": attrgetter("card"),
            "base": attrgetter("base"),
            "quota": attrgetter("quota"),
            "layers": lambda row: "; ".join(row.layers),
        },
        rows,
    )


def next_changes(this: Page, queues: Iterable[Queue]) -> list[NextChange]:
    """The moments ahead at which plans that are on make other figures of queues in sight."""
    plans, now = plans_on(this), this.cluster.clock()
    named = tide.touched(plans)
    base = {queue.name: card_quota_of(queue) for queue in queues if queue.name in named}
    found: list[NextChange] = []
    steps = tide.steps(base, plans, now, now + AHEAD) if base else []
    for before, after in pairwise(steps):
        if figures := changed_figures(base, before.quota, after.quota):
            found.append(NextChange(after.start, *_turned(plans, before.open, after.open), figures))
        if len(found) == MOST_CHANGES:
            break
    return found


def _turned(plans: Sequence[tide.Plan], before: tide.Open, after: tide.Open) -> tuple[list[str], list[str]]:
    unnamed = _("layer %(n)s")
    opens = tide.names_of(plans, tuple(one for one in after if one not in before), unnamed)
    return opens, tide.names_of(plans, tuple(one for one in before if one not in after), unnamed)
