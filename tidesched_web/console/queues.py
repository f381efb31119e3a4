from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.common import reader_zone
from tidesched_web.common.card_names import card_label
from tidesched_web.common.physical import share_of_board
from tidesched_web.console import amounts, bars, manifests
from tidesched_web.console.chart import Chart, Twin, answer, drawn_until
from tidesched_web.console.export import csv_list
from tidesched_web.console.figures import base
from tidesched_web.console.figures import usage as usage_figure
from tidesched_web.console.forms.filters import BORROWS, LENDS, STARVED, QueueFilter
from tidesched_web.console.gang_why import held_back
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import part_of
from tidesched_web.console.queue_edit import acts_on
from tidesched_web.quota.models import Queue
from tidesched_web.quota.selectors import (
    card_quota_of,
    effective_quota_of,
    hardware_rows_of,
    queue_grants,
    with_hardware,
)
from tidesched_web.quota.tide_selectors import turns_of_queue
from tidesched_web.scheduling.gang_selectors import unused_promises
from tidesched_web.scheduling.holds import sending_stop
from tidesched_web.scheduling.selectors import queues_with_usage, usage_points, waiting_cards_of
from tidesched_web.scheduling.usage_selectors import CardTotals, borrowed_and_lent, card_totals
from tidesched_web.workloads.reason_figures import of_all
from tidesched_web.workloads.selectors import gangs_of_queue

SPAN = dt.timedelta(hours=48)


@dataclass(frozen=True, slots=True)
class CardUse:
    card: str
    quota: int
    allocated: int
    inqueue: int
    waiting: int
    bar: bars.UsageBar
    # What it uses beyond its deserved share, and what training uses of what it leaves.
    borrowed: int = 0
    lent: int = 0
    # The base, where tide plans make another quota of it.
    base: int | None = None


@dataclass(frozen=True, slots=True)
class QuotaFigures:
    card: str
    base: int
    in_force: float
    allocated: float
    inqueue: float
    # What the nodes have for all queues; None: no node has shown the type yet.
    hardware: int | None


@dataclass(frozen=True, slots=True)
class QueueRow:
    queue: Queue
    uses: list[CardUse]
    waiting: int
    running: int
    # Gangs that run in part and wait for more: among those that wait and among those that run.
    both: int
    starved: bool
    # Where tide plans make it another quota than the base: card, base, quota that was written to the cluster.
    turned: list[tuple[str, int, int]]

    @property
    def used_share(self) -> float | None:
        shares = [(use, share_of_board(use.card)) for use in self.uses]
        quota = sum(use.quota * share for use, share in shares)
        return float(sum(use.allocated * share for use, share in shares) / quota) if quota else None

    @property
    def borrowed(self) -> float:
        return float(sum(use.borrowed * share_of_board(use.card) for use in self.uses) / 1000)

    @property
    def lent(self) -> float:
        return float(sum(use.lent * share_of_board(use.card) for use in self.uses) / 1000)

    def of_card(self, card: str) -> QueueRow:
        uses = [use for use in self.uses if use.card == card]
        starved = any(use.waiting > 0 and use.allocated < use.quota for use in uses)
        return replace(self, uses=uses, starved=starved)


def in_order(rows: list[QueueRow], order: str) -> list[QueueRow]:
    if not order:
        return rows
    if order in ("borrowed", "lent"):
        return sorted(rows, key=lambda row: -(row.borrowed if order == "borrowed" else row.lent))
    sign = -1 if order == "used" else 1

    def key(row: QueueRow) -> tuple[bool, float]:
        share = row.used_share
        return share is None, sign * (share or 0.0)

    return sorted(rows, key=key)


def queue_row(queue: Queue, totals: Mapping[tuple[int, str], CardTotals]) -> QueueRow:
    usage = {row["card"]: row for row in queue.usage_rows}  # type: ignore[attr-defined]
    own = card_quota_of(queue)
    quota = effective_quota_of(queue)
    waits = waiting_cards_of(queue)
    uses = []
    starved = False
    for card in sorted({*usage, *quota}):
        row = usage.get(card, {"allocated": 0, "inqueue": 0})
        limit = quota.get(card, 0) * 1000
        if not limit and not row["allocated"] and not row["inqueue"] and card not in waits:
            continue  # it had use here once
        waiting = round(1000 * waits.get(card, 0))
        starved = starved or (waiting > 0 and row["allocated"] < limit)
        total = totals.get((queue.cluster_id, card))
        takes, gives = borrowed_and_lent(queue.service_type, row.get("quota", 0), row["allocated"], total)
        bar = bars.queue_bar(
            queue.service_type, limit, row["allocated"], row["inqueue"], waiting=waiting, borrowed=takes
        )
        uses.append(
            CardUse(
                card,
                limit,
                row["allocated"],
                row["inqueue"],
                waiting,
                bar,
                takes,
                gives,
                own.get(card, 0) if card in queue.tide else None,
            )
        )
    turned = [(card, own.get(card, 0), cards) for card, cards in sorted(queue.tide.items())]
    counts = queue.waiting_gangs, queue.running_gangs, queue.partly_running  # type: ignore[attr-defined]
    return QueueRow(queue, uses, *counts, starved, turned)


def quota_figures(row: QueueRow) -> list[QuotaFigures]:
    base, hardware = card_quota_of(row.queue), hardware_rows_of(row.queue)
    return [
        QuotaFigures(
            use.card, base.get(use.card, 0), use.quota / 1000, use.allocated / 1000, use.inqueue / 1000,
            hardware.get(use.card),
        )
        for use in row.uses
    ]  # fmt: skip


# What a queue is besides its state, by the value of the filter.
_IS: Mapping[str, Callable[[QueueRow], bool]] = {
    STARVED: lambda row: row.starved,
    BORROWS: lambda row: row.borrowed > 0,
    LENDS: lambda row: row.lent > 0,
}


@page(section="queues", topics="sessions queues usage")
def queues(this: Page) -> HttpResponse:
    cluster = this.cluster
    totals = card_totals([cluster.pk])
    form = QueueFilter(this.request.GET, [card for _cluster, card in totals])
    rows = [queue_row(queue, totals) for queue in form.apply(queues_with_usage(this.access, cluster))]
    if card := form.value("card"):
        rows = [row for row in (row.of_card(card) for row in rows) if row.uses]
    state = form.value("state")
    if state in _IS:
        rows = [row for row in rows if _IS[state](row)]
    rows = in_order(rows, form.value("order"))
    if this.request.GET.get("format") == "csv":
        return csv_list(
            f"queues-{cluster.slug}",
            {
                "queue": lambda pair: pair[0].queue.name,
                "service_type": lambda pair: pair[0].queue.service_type,
                "tenant": lambda pair: pair[0].queue.tenant.slug if pair[0].queue.tenant else "",
                "state": lambda pair: pair[0].queue.state,
                "card": lambda pair: pair[1].card,
                "quota": lambda pair: pair[1].quota / 1000,
                "base_quota": lambda pair: card_quota_of(pair[0].queue).get(pair[1].card, 0),
                "allocated": lambda pair: pair[1].allocated / 1000,
                "inqueue": lambda pair: pair[1].inqueue / 1000,
                "waiting": lambda pair: pair[1].waiting / 1000,
                "borrowed": lambda pair: pair[1].borrowed / 1000,
                "lent": lambda pair: pair[1].lent / 1000,
            },
            ((row, use) for row in rows for use in row.uses),
        )
    starved = sum(row.starved for row in rows)
    line = ngettext("%(n)s queue", "%(n)s queues", len(rows)) % {"n": amounts.number(len(rows))}
    if starved:
        line += " · " + ngettext(
            "%(n)s waits although it is below its quota", "%(n)s wait although they are below their quota", starved
        ) % {"n": amounts.number(starved)}
    if state == BORROWS:
        cards = amounts.number(sum(row.borrowed for row in rows))
        line += " · " + _("physical cards that they use beyond their deserved share: %(n)s") % {"n": cards}
    elif state == LENDS:
        cards = amounts.number(sum(row.lent for row in rows))
        line += " · " + _("physical cards that training uses of what they leave: %(n)s") % {"n": cards}
    makes = this.access.administers or bool(this.access.admin_of)
    part = part_of(rows, this.request.GET.get("cursor", ""))
    given = {"rows": part.rows, "page": part, "form": form, "line": line, "makes": makes}
    # Figures of what is lent have room in compact rows where they are asked for.
    given["lending"] = state in (BORROWS, LENDS) or form.value("order") in ("borrowed", "lent")
    return this.render("queues/queues.html", given)


@page(section="queues", topics="sessions queues usage")
def queue(this: Page, name: str) -> HttpResponse:
    found = _queue(this, name)
    row = queue_row(found, card_totals([this.cluster.pk]))
    gangs, stop = gangs_of_queue(found), sending_stop(this.cluster)
    waiting = [gang for gang in gangs if gang.needs or held_back(gang, stop)]
    cards = [use.card for use in row.uses]
    return this.render(
        "queues/queue.html",
        {
            "row": row,
            "queue": found,
            "quota_figures": quota_figures(row),
            "waiting": waiting,
            "figures_of": of_all(waiting[0]) if waiting else None,
            "running": [gang for gang in gangs if gang.bound or not (gang.needs or held_back(gang, stop))],
            "unused": [
                (promise, next((use for use in row.uses if use.card == promise.card), None))
                for promise in unused_promises(this.cluster.pk, found.pk)
            ],
            "chart": _usage_chart(this, found, cards) if cards else None,
            "turns": turns_of_queue(found, this.cluster),
            "manifests": manifests.for_queue(found, cards, found.namespaces),  # type: ignore[attr-defined]  # annotated
            **acts_on(this, found),
        },
    )


def _queue(this: Page, name: str) -> Queue:
    queues = with_hardware(queues_with_usage(this.access, this.cluster)).annotate(namespaces=queue_grants())
    return get_object_or_404(queues, name=name)


def _usage_chart(this: Page, found: Queue, cards: list[str]) -> Chart:
    asked = this.request.GET.get("card", "")
    chosen = asked if asked in cards else cards[0]
    return Chart(
        key="usage",
        question=_("Use against quota, the last two days by the cluster's clock"),
        url=reverse("console:queue_usage", args=[this.cluster.slug, found.name]),
        query=urlencode({"card": chosen}),
        size="short",
        choices=[(card, card_label(card)) for card in cards] if len(cards) > 1 else [],
        choice=chosen,
        param="card",
        choice_label=_("Card type"),
        drawn_until=drawn_until(this.cluster, this.cluster.clock() - SPAN),
    )


@page()
def usage(this: Page, name: str) -> HttpResponse:
    found = _queue(this, name)
    card = this.request.GET.get("card", "").replace("\0", "")[:200]
    end = this.cluster.clock()

    def series() -> list[usage_figure.UsageRow]:
        points = usage_points(found, card, end - SPAN)
        rows = [
            usage_figure.UsageRow(max(at, end - SPAN), *(value / 1000 for value in values)) for at, *values in points
        ]
        # The last value holds until now.
        return (
            [*rows, usage_figure.UsageRow(end, rows[-1].quota, rows[-1].allocated, rows[-1].inqueue, rows[-1].elastic)]
            if rows
            else []
        )

    def twin() -> Twin:
        header = [reader_zone.head(_("time")), _("quota"), _("in use"), _("promised"), _("elastic")]
        data = [(base.local(row.at)[:19], row.quota, row.allocated, row.inqueue, row.elastic) for row in series()]
        return Twin(f"usage-{found.name}", header, data)

    key = f"usage:{found.pk}:{this.cluster.session_id}:{card}"  # type: ignore[attr-defined]
    return answer(
        this.request, key=key, figure=lambda theme: usage_figure.figure(series(), found.service_type, theme), twin=twin
    )
