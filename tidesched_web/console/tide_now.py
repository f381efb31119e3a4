import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common.card_names import card_label
from tidesched_web.common.models import ServiceType
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts, reason_words
from tidesched_web.console.page import Page
from tidesched_web.console.tide_reading import open_figures, others_on
from tidesched_web.quota import tide
from tidesched_web.quota.models import Queue, SyncState, TidePlan
from tidesched_web.quota.selectors import card_quota_of
from tidesched_web.quota.tide_selectors import effective_by_name
from tidesched_web.scheduling.usage_selectors import allocated_of
from tidesched_web.workloads.waits_selectors import reasons_by_card

# Reasons that end when a queue gets more quota, and not when cards become free.
_OF_QUOTA = ("WaitingForQuota", "ExceedsMaxQuota")
Waits = Mapping[tuple[int, str], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class QueueNow:
    """``now``: what the cluster was sent; ``otherwise``: if the plan were switched. ``used`` in milli-cards."""

    queue: Queue
    card: str
    base: int
    now: int
    otherwise: int
    used: int
    why: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Figure:
    cluster: Cluster
    queue: Queue
    card: str
    base: int
    alone: int
    wanted: int
    due: int
    now: int
    used: int

    @property
    def waits_for_inference(self) -> bool:
        return self.base < self.due > self.now and self.queue.sync_state == SyncState.IN_STEP


def queues_now(this: Page, row: TidePlan, own: tide.Plan, queues: list[Queue]) -> list[QueueNow]:
    named = [queue for queue in queues if queue.name in tide.touched([own])]
    moment, base = this.cluster.clock(), {queue.name: card_quota_of(queue) for queue in named}
    used = allocated_of([queue.pk for queue in named])
    floors = {
        queue.name: {card: math.ceil(milli / 1000) for card, milli in used.get(queue.pk, {}).items()}
        for queue in named
        if queue.service_type == ServiceType.INFERENCE
    }
    others = others_on(this, row.name)
    plans = tide.in_order([*others, own])
    wanted = tide.effective_quota(base, plans, moment)
    with_it = tide.effective_quota(base, plans, moment, floors)
    switched = effective_by_name(this.cluster, tide.in_order(others) if row.enabled else plans, base, now=moment)
    alone = tide.effective_quota(base, [own], moment)
    open_now = open_figures(own, tide.open_layers([own], moment)) if row.enabled else set()
    trains = [queue.pk for queue in queues if queue.service_type == ServiceType.TRAINING]
    waits = reasons_by_card([*trains, *(queue.pk for queue in named)]) if open_now else {}
    found = []
    for queue in named:
        for card in sorted({card for layer in own.layers for card in layer.quota.get(queue.name, {})}):
            had = base[queue.name].get(card, 0)
            now = queue.tide.get(card, had)
            uses = used.get(queue.pk, {}).get(card, 0)
            otherwise = switched[queue.name].get(card, 0)
            why: list[str] = []
            if (queue.name, card) in open_now:
                figure = _Figure(
                    this.cluster,
                    queue,
                    card,
                    base=had,
                    alone=alone[queue.name].get(card, 0),
                    wanted=wanted[queue.name].get(card, 0),
                    due=with_it[queue.name].get(card, 0),
                    now=now,
                    used=math.ceil(uses / 1000),
                )
                why = _why(figure, waits, trains, everything=this.access.everything)
            found.append(QueueNow(queue, card, had, now, otherwise, uses, why))
    return found


def _why(figure: _Figure, waits: Waits, trains: list[int], *, everything: bool) -> list[str]:
    said = [*_sent(figure)]
    if figure.alone != figure.wanted:
        said.append(_("Another plan that is open now decides this figure."))
    if figure.wanted < figure.base:
        return [*said, *_lends(figure, waits, trains, everything=everything)]
    if figure.wanted > figure.base:
        said += _gets(figure, waits)
    return said


def _sent(figure: _Figure) -> list[str]:
    if figure.queue.sync_state == SyncState.FAILED:
        text = _("The cluster does not take what was sent: %(error)s")
        return [text % {"error": figure.queue.sync_error}]
    if figure.now == figure.due:
        return []
    if figure.cluster.mode == ClusterMode.OBSERVE:
        return [_("In mode observe nothing is sent to the cluster: its own figures hold there.")]
    return [] if figure.waits_for_inference else [_("It is being sent: the cluster has not taken it yet.")]


def _lends(figure: _Figure, waits: Waits, trains: list[int], *, everything: bool) -> list[str]:
    meant, lent, said = figure.base - figure.wanted, max(0, figure.base - figure.now), []
    if figure.due > figure.wanted:
        text = _(
            "It uses %(used)s itself, and what inference uses is never taken from it: "
            "%(kept)s of the %(meant)s that it gives up stay with it until it uses less."
        )
        counts = {"used": figure.used, "kept": figure.due - figure.wanted, "meant": meant}
        said.append(text % {name: amounts.number(count) for name, count in counts.items()})
    if not lent:
        return said
    card = card_label(figure.card)
    said.append(_("Lent now: %(n)s.") % {"n": amounts.number(lent)})
    reasons: dict[str, int] = {}
    for queue in trains:
        for code, gangs in waits.get((queue, figure.card), {}).items():
            reasons[code] = reasons.get(code, 0) + gangs
    if not reasons:
        text = (
            _("No training gang waits for %(card)s, so what it gives up is not asked for.")
            if everything
            else _("No training gang of yours waits for %(card)s.")
        )
        return [*said, text % {"card": card}]
    said.append(_wait_line(reasons, figure, service_type=ServiceType.TRAINING))
    if set(reasons) <= {*_OF_QUOTA}:
        said.append(
            _(
                "They wait for quota of their own queues. "
                "What inference gives up raises no quota of training: a layer does."
            )
        )
    return said


def _gets(figure: _Figure, waits: Waits) -> list[str]:
    said = []
    if figure.waits_for_inference:
        text = _("%(n)s of the %(meant)s more wait until inference gives them up.")
        waits_for, meant = figure.wanted - max(figure.now, figure.base), figure.wanted - figure.base
        said.append(text % {"n": amounts.number(waits_for), "meant": amounts.number(meant)})
    if figure.used < figure.now:
        card = card_label(figure.card)
        reasons = waits.get((figure.queue.pk, figure.card), {})
        said.append(
            _wait_line(reasons, figure, queue=figure.queue.name)
            if reasons
            else _("No gang waits in it for %(card)s.") % {"card": card}
        )
    return said


def _wait_line(reasons: Mapping[str, int], figure: _Figure, **within: str) -> str:
    gangs = sum(reasons.values())
    titles = {code: reason_words.reason_title(code) if code else _("no reason yet") for code in reasons}
    named = listed(f"{titles[code]} {amounts.number(n)}" for code, n in reasons.items())
    text = ngettext("%(n)s gang waits for %(card)s: %(reasons)s.", "%(n)s gangs wait for %(card)s: %(reasons)s.", gangs)
    words = text % {"n": amounts.number(gangs), "card": card_label(figure.card), "reasons": named}
    asked = urlencode({"card": figure.card, "needs": "yes", **within})
    return format_html('<a href="{}?{}">{}</a>', reverse("console:gangs", args=[figure.cluster.slug]), asked, words)
