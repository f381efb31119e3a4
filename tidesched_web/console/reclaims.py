import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import plotly.graph_objects as go
from django import forms
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.audit.selectors import has_entry
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import cards_as_found
from tidesched_web.common import reader_zone
from tidesched_web.common.card_names import card_label
from tidesched_web.common.live_memory import memory
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import Access
from tidesched_web.console import amounts, bars
from tidesched_web.console.chart import Chart, Twin, answer
from tidesched_web.console.export import csv_list, plain_cards
from tidesched_web.console.figures import reclaims as reclaims_figure
from tidesched_web.console.forms.bounded import BoundedFilterForm
from tidesched_web.console.forms.filters import card_choices, some_or_any
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.receipt_view import receipt_view, within_quota
from tidesched_web.console.reclaim_words import cards_of, evicted, is_hidden, said_of
from tidesched_web.scheduling import reclaim_selectors as sides
from tidesched_web.scheduling.gang_selectors import marks_of_reclaim
from tidesched_web.scheduling.models import Reclaim, ReclaimMaker, ReclaimSource, ReclaimState
from tidesched_web.scheduling.reclaim_history_selectors import Chosen, day_of, pictured_since, taken_by_hour
from tidesched_web.scheduling.reclaim_selectors import filter_choices
from tidesched_web.scheduling.selectors import (
    OthersAndOwn,
    decisions_of_reclaim,
    others_and_own,
    own_queue_ids,
    reclaims_with_victims,
    visible_reclaims,
)
from tidesched_web.scheduling.sight import hide_other_side, receipt_within_sight


class ReclaimFilter(BoundedFilterForm):
    q = forms.CharField(label=gettext_lazy("Gang or queue"), max_length=120)
    gainer_tenant = forms.ChoiceField(label=gettext_lazy("Tenant that gained"))
    loser_tenant = forms.ChoiceField(label=gettext_lazy("Tenant that lost"))
    loser = forms.CharField(label=gettext_lazy("Gang or queue that lost"), max_length=120)
    # Set by links: from the page of a queue or a tenant, and from who took back from whom.
    queue = forms.CharField(label=gettext_lazy("Queue"), max_length=63, widget=forms.HiddenInput)
    tenant = forms.CharField(label=gettext_lazy("Tenant"), max_length=63, widget=forms.HiddenInput)
    gainer_queue = forms.CharField(label=gettext_lazy("Queue that gained"), max_length=63, widget=forms.HiddenInput)
    loser_queue = forms.CharField(label=gettext_lazy("Queue that lost"), max_length=63, widget=forms.HiddenInput)
    gainer_service = forms.ChoiceField(
        label=gettext_lazy("Service type that gained"), choices=some_or_any(ServiceType.choices)
    )
    card = forms.ChoiceField(label=gettext_lazy("Card type"))
    state = forms.ChoiceField(label=gettext_lazy("State"), choices=some_or_any(ReclaimState.choices))
    made_by = forms.ChoiceField(label=gettext_lazy("Made by"), choices=some_or_any(ReclaimMaker.choices))
    clock = forms.ChoiceField(
        label=gettext_lazy("From and to by"),
        choices=[("", gettext_lazy("the cluster's clock")), ("wall", gettext_lazy("the wall clock"))],
    )

    def __init__(
        self, data: QueryDict, access: Access, tenants: Iterable[tuple[str, str]], cards: Iterable[str]
    ) -> None:
        self.access = access
        self.tenants = list(tenants)
        self.cards = list(cards)
        asked = data.get("card", "")
        if asked not in self.cards:
            named = [card for card in self.cards if card_label(card).casefold() == asked.casefold()]
            if len(named) == 1:
                data = data.copy()
                data["card"] = named[0]
        super().__init__(data)

    def is_valid(self) -> bool:
        tenants = some_or_any(self.tenants)
        choices: dict[str, list[tuple[str, Any]]] = {
            "gainer_tenant": tenants,
            "loser_tenant": tenants,
            "card": card_choices(self.cards),
        }
        for name, pairs in choices.items():
            self.fields[name].choices = pairs  # type: ignore[attr-defined]  # a choice
        return super().is_valid()

    def apply(self, reclaims: QuerySet[Reclaim]) -> QuerySet[Reclaim]:
        for name, narrow in {
            "q": sides.mentions,
            "gainer_tenant": sides.gained_by_tenant,
            "loser_tenant": sides.lost_by_tenant,
            "loser": sides.lost_by,
            "gainer_queue": sides.gained_by_queue,
            "loser_queue": sides.lost_by_queue,
            "gainer_service": sides.gained_by_service,
            "queue": sides.touched_queue,
            "tenant": sides.touched_tenant,
            "card": sides.moved_card,
        }.items():
            if value := self.value(name):
                reclaims = reclaims.filter(narrow(self.access, value))
        for name in ("state", "made_by"):
            if value := self.value(name):
                reclaims = reclaims.filter(**{name: value})
        clock = "wall_at" if self.value("clock") == "wall" else "at"
        if since := self.moment("from"):
            reclaims = reclaims.filter(**{f"{clock}__gte": since})
        if until := self.moment("to"):
            reclaims = reclaims.filter(**{f"{clock}__lt": until})
        return reclaims


_OTHERS_SECONDS = 10.0


def _redact(this: Page, reclaim: Reclaim) -> None:
    """Of the other side of a reclaim a member sees the gang's name, not how much it has nor who else was looked at."""
    hide_other_side(reclaim)
    if not this.access.everything:
        reclaim.refused, reclaim.instead = [], None


def _others(cluster: Cluster) -> OthersAndOwn | None:
    """The sums of a day change with a reclaim; what leaves the day at its far end may stay in them for a moment."""
    read = partial(others_and_own, cluster)
    return memory.get(("others and own", cluster.pk), ("reclaims",), read, seconds=_OTHERS_SECONDS)


@page(section="reclaims", topics="sessions reclaims")
def reclaims(this: Page) -> HttpResponse:
    cluster = this.cluster
    form = _filter(this)
    rows = form.apply(reclaims_with_victims(this.access).filter(cluster=cluster))
    if this.request.GET.get("format") == "csv":
        return _export(this, rows.select_related("queue__tenant").order_by("-id"))
    found = paged(rows, ("-id",), this.request.GET.get("cursor", ""))
    for row in found.rows:
        _redact(this, row)
        row.marks = marks_of_reclaim(row)
        row.needed_hidden, row.freed_hidden = is_hidden(row.needed), is_hidden(row.freed)
    return this.render(
        "reclaims/reclaims.html",
        {
            "page": found,
            "form": form,
            "line": _line(this, found.rows),
            "hides": any(row.needed_hidden or row.freed_hidden for row in found.rows),
            "chart": Chart(
                key="reclaimed",
                question=_("Which cards were taken back, and when?"),
                url=reverse("console:reclaims_taken", args=[cluster.slug]),
                query=form.asked(),
                size="short",
                empty=_nothing(this),
            ),
            "others": _others(cluster) if this.access.everything else None,
        },
    )


def _filter(this: Page) -> ReclaimFilter:
    return ReclaimFilter(this.request.GET, this.access, *filter_choices(this.access, this.cluster))


def _pictured(this: Page) -> Chosen:
    """The pictures show what the list does, as far as it is of their day."""
    form = _filter(this)
    if not form.chips():
        return None
    rows = form.apply(visible_reclaims(this.access).filter(cluster=this.cluster, at__gte=pictured_since(this.cluster)))
    return list(rows.order_by().values_list("pk", flat=True))


def _nothing(this: Page) -> str:
    if this.cluster.session_id is None:  # type: ignore[attr-defined]  # annotated
        return ""
    if this.access.everything:
        return _("Nothing was taken back in these 24 hours.")
    return _("Nothing was taken back from your queues in these 24 hours.")


@page()
def taken(this: Page) -> HttpResponse:
    cluster, since = this.cluster, pictured_since(this.cluster)
    rows = taken_by_hour(this.access, cluster, since, _pictured(this))
    hours = reclaims_figure.hours_from(since, cluster.clock())

    def twin() -> Twin:
        cards = reclaims_figure.by_card(rows)
        names = [card_label(card) if card else _("other cards") for card in cards]
        lines = [(reader_zone.to_the_minute(hour), *(of.get(hour, 0) for of in cards.values())) for hour in hours]
        return Twin(f"reclaimed-{cluster.slug}", [reader_zone.head(_("hour")), *names], lines)

    whose = "all" if this.access.everything else ",".join(map(str, sorted(this.access.tenant_ids)))
    key = f"reclaimed:{cluster.pk}:{cluster.session_id}:{whose}:{_filter(this).asked()}"  # type: ignore[attr-defined]

    def drawn(theme: str) -> go.Figure:
        return reclaims_figure.figure(hours, rows, theme, cards_as_found(cluster))

    return answer(this.request, key=key, figure=drawn, twin=twin)


@page()
def day(this: Page) -> HttpResponse:
    found = day_of(this.access, this.cluster, _pictured(this))
    return this.render(
        "reclaims/day.html",
        {
            "day": found,
            "share": f"{amounts.number(round(100 * found.promptly / found.gains))} %" if found.gains else "",
            "since": timezone.localtime(found.since).strftime("%Y-%m-%dT%H:%M"),
        },
    )


def _line(this: Page, rows: list[Reclaim]) -> str:
    if not rows:
        return ""
    fallen = [victim for row in rows for victim in row.victim_rows]  # type: ignore[attr-defined]
    own = [victim for victim in fallen if victim["own"]]
    first = ngettext("The newest reclaim", "The newest %(n)s reclaims", len(rows)) % {"n": amounts.number(len(rows))}
    facts = {"first": first, "work": amounts.work(sum(victim["work"] or 0 for victim in own))}
    if this.access.everything:
        return _("%(first)s: %(fell)s, %(work)s of work lost.") % (facts | {"fell": evicted(len(own))})
    gangs, others = len(own), len(fallen) - len(own)
    line = ngettext(
        "%(first)s: %(n)s gang of your tenants was evicted, %(work)s of work lost.",
        "%(first)s: %(n)s gangs of your tenants were evicted, %(work)s of work lost.",
        gangs,
    ) % (facts | {"n": amounts.number(gangs)})
    if not others:
        return line
    more = ngettext(
        "%(n)s gang of other tenants was evicted for yours; its work is not shown.",
        "%(n)s gangs of other tenants were evicted for yours; their work is not shown.",
        others,
    )
    return _("%(line)s %(more)s") % {"line": line, "more": more % {"n": amounts.number(others)}}


def _export(this: Page, rows: Any) -> HttpResponse:
    def redacted() -> Iterator[Reclaim]:
        for row in rows.iterator(chunk_size=500):
            _redact(this, row)
            yield row

    return csv_list(
        f"reclaims-{this.cluster.slug}",
        {
            "id": lambda row: row.pk,
            "at": lambda row: row.at.isoformat(),
            "wall_at": lambda row: row.wall_at.isoformat(),
            "state": lambda row: row.state,
            "source": lambda row: row.source,
            "made_by": lambda row: row.made_by,
            "action": lambda row: row.action,
            "reclaimer": lambda row: row.reclaimer,
            "queue": lambda row: row.queue_name,
            "service_type": lambda row: row.queue.service_type if row.queue and row.queue_name else "",
            "tenant": lambda row: row.queue.tenant.slug if row.queue and row.queue_name and row.queue.tenant else "",
            "needed": lambda row: plain_cards(cards_of(row.needed)),
            "freed": lambda row: plain_cards(cards_of(row.freed)),
            "victims": lambda row: " ".join(victim["gang"] for victim in row.victim_rows),
            "victim_queues": lambda row: " ".join(
                sorted({victim["queue"] for victim in row.victim_rows if victim["own"] and victim["queue"]})
            ),
            "work_lost_card_seconds": lambda row: (
                "" if row.work_lost_card_seconds is None else round(row.work_lost_card_seconds, 3)
            ),
            "rule": lambda row: row.rule,
        },
        redacted(),
    )


@dataclass(frozen=True, slots=True)
class Balance:
    card: str
    needed: float
    freed: float
    needed_bar: bars.UsageBar
    freed_bar: bars.UsageBar


def balance(reclaim: Reclaim) -> list[Balance]:
    if is_hidden(reclaim.needed) or is_hidden(reclaim.freed):
        return []
    needed, freed = cards_of(reclaim.needed), cards_of(reclaim.freed)
    names = sorted({*needed, *freed})
    largest = max([*needed.values(), *freed.values()], default=0)
    # A text within an f-string is not extracted.
    needed_word, freed_word = _("needed"), _("freed")
    return [
        Balance(
            name,
            needed.get(name, 0),
            freed.get(name, 0),
            bars.amount_bar(
                "inference",
                needed.get(name, 0),
                largest,
                f"{needed_word}: {amounts.number(needed.get(name, 0))} × {card_label(name)}",
            ),
            bars.amount_bar(
                "reclaimed",
                freed.get(name, 0),
                largest,
                f"{freed_word}: {amounts.number(freed.get(name, 0))} × {card_label(name)}",
            ),
        )
        for name in names
    ]


@page(section="reclaims", topics="sessions reclaims")
def reclaim(this: Page, pk: int) -> HttpResponse:
    row = get_object_or_404(reclaims_with_victims(this.access).defer(None), cluster=this.cluster, pk=pk)
    within = within_quota({**row.receipt, "queue": row.queue_name})
    _redact(this, row)
    own_queues = None if this.access.everything else own_queue_ids(this.access)
    made_it = own_queues is None or row.queue_id in own_queues
    receipt = receipt_within_sight(row.receipt, own_queues, made_it=made_it)
    costs = row.receipt.get("victims", {})
    seen = [
        {**victim, **costs.get(victim["gang"], {})}
        for victim in row.victim_rows  # type: ignore[attr-defined]
        if victim["own"]
    ]
    decisions = decisions_of_reclaim(row) if this.access.everything else []
    return this.render(
        "reclaims/reclaim.html",
        {
            "reclaim": row,
            "line": said_of(row),
            "balance": balance(row),
            "marks": marks_of_reclaim(row),
            # A step of the same second was in force: the filter ends before its bound.
            "steps_until": timezone.localtime(row.at + dt.timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S"),
            "receipt": receipt_view(
                receipt | {"unknown": row.receipt.get("unknown")},
                seen,
                queue=row.queue_name,
                needed=row.needed.get("cards"),
            ),
            "decisions": decisions,
            "redacted": not this.access.everything,
            "within": within,
            # Gone where its segment was exported and dropped.
            "audited": row.audit_entry_id is not None and has_entry(this.access, row.audit_entry_id),
            "observed": row.source == ReclaimSource.OBSERVED,
            "restarting": row.work_lost_card_seconds is not None and any(victim["restarting"] for victim in seen),
            "instead": row.instead,
        },
    )
