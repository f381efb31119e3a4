"""Gangs: the list with its filters, and the page of one gang with the reason why it waits."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import ngettext

from tidesched_web.clusters.selectors import card_names
from tidesched_web.common.permissions import Access
from tidesched_web.console import rule_words, wording
from tidesched_web.console.export import csv_list, plain_cards
from tidesched_web.console.forms.filters import GangFilter
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.pod_group import pod_group_yaml
from tidesched_web.console.states import look
from tidesched_web.scheduling.selectors import reclaims_of_gang
from tidesched_web.workloads.models import Gang
from tidesched_web.workloads.selectors import (
    newest_gang_id,
    pods_of,
    that_wait,
    visible_gang_keys,
    visible_gangs,
    with_reason_counts,
    with_steps,
)


@page(section="gangs", topics="sessions gangs")
def gangs(this: Page) -> HttpResponse:
    """The list; `?format=csv` exports all that the filters leave."""
    cluster = this.cluster
    form = GangFilter(this.request.GET, card_names(cluster))
    all_gangs = visible_gangs(this.access).filter(cluster=cluster)
    rows = form.apply(all_gangs).defer("manifest")
    waiting_first = form.value("order") == "waiting"
    if waiting_first:
        rows = that_wait(rows).filter(waiting_since__isnull=False)
    order = ("waiting_since", "id") if waiting_first else ("-submitted_at", "-id")
    if this.request.GET.get("format") == "csv":
        return _export(this, rows.order_by(*order))
    found = paged(with_reason_counts(rows, form.apply_but_reason(all_gangs)), order, this.request.GET.get("cursor", ""))
    counts = found.rows[0].reason_counts if found.rows else []
    total = sum(entry["n"] for entry in counts)
    code, most = (counts[0]["code"], counts[0]["n"]) if counts else ("", 0)
    return this.render(
        "gangs/gangs.html",
        {
            "page": found,
            "form": form,
            "counts": counts,
            "line": wording.waiting_line(total, code, most) if found.rows else "",
        },
    )


def _export(this: Page, rows: Any) -> HttpResponse:
    def sentence(row: Gang) -> str:
        numbers = wording.own_numbers(this.access, row.reason_numbers)
        return wording.reason_sentence(row.reason_code, numbers) if row.needs else ""

    return csv_list(
        f"gangs-{this.cluster.slug}",
        {
            "namespace": lambda row: row.namespace,
            "name": lambda row: row.name,
            "queue": lambda row: row.queue_name,
            "service_type": lambda row: row.service_type,
            "state": lambda row: row.state,
            "priority": lambda row: row.priority,
            "min_member": lambda row: row.min_member,
            "ready": lambda row: row.ready,
            "cards": lambda row: plain_cards(row.cards),
            "submitted_at": lambda row: row.submitted_at.isoformat(),
            "waiting_since": lambda row: row.waiting_since.isoformat() if row.waiting_since else "",
            "reason": lambda row: row.reason_code if row.needs else "",
            "message": sentence,
        },
        rows.iterator(chunk_size=1000),
    )


@dataclass(frozen=True, slots=True)
class HolderRow:
    """A gang that holds what another one waits for; without a name when it is somebody else's."""

    gang: str
    queue: str
    amount: str


@dataclass(frozen=True, slots=True)
class Why:
    """The card that says why a gang waits."""

    sentence: str
    figures: list[tuple[str, str]]
    holders: list[HolderRow]
    refusals: list[tuple[str, int]]
    remedy: str


def why(access: Access, gang: Gang) -> Why:
    """The reason with its numbers, its holders (one query where there are any) and what would help."""
    numbers = gang.reason_numbers or {}
    resource = numbers.get("resource")
    words = wording.FIGURES
    figures = [
        (str(words[name]), wording.resource_amount(resource, numbers[name]))
        for name in words
        if numbers.get(name) is not None
    ]
    held = numbers.get("holders") or []
    keys = [holder["gang"] for holder in held]
    seen = visible_gang_keys(access, [gang.cluster_id], keys) if keys and not access.everything else None
    holders = [
        HolderRow(holder["gang"], holder.get("queue", ""), wording.resource_amount(resource, holder.get("amount")))
        if seen is None or (gang.cluster_id, holder["gang"]) in seen
        else HolderRow("", "", wording.resource_amount(resource, holder.get("amount")))
        for holder in held
    ]
    if seen is not None and holders and not holders[0].gang:
        # The sentence may name the largest holder: not to somebody who may not see it.
        numbers = wording.own_numbers(access, numbers)
    return Why(
        wording.reason_detail(gang.reason_code, gang.reason_message)
        or wording.reason_sentence(gang.reason_code, numbers),
        figures,
        holders,
        rule_words.node_refusals(numbers),
        wording.remedy_sentence(gang.reason_remedy) if gang.reason_remedy else "",
    )


def _step(access: Access, row: dict[str, Any]) -> dict[str, Any]:
    """One step of the timeline with its words; the database gives its time as text."""
    detail = row["detail"]
    sentence = wording.reason_detail(detail.get("code", ""), detail.get("message", ""))
    if not sentence and detail.get("numbers"):
        sentence = wording.reason_sentence(detail["code"], wording.own_numbers(access, detail["numbers"]))
    if made_by := detail.get("made_by"):
        who = look("maker", made_by).word
        sentence = ngettext(
            "%(n)s pod of it was evicted. By: %(who)s.", "%(n)s pods of it were evicted. By: %(who)s.", detail["pods"]
        ) % {"n": detail["pods"], "who": who}
    word = look("step", row["kind"]).word
    return row | {"at": dt.datetime.fromisoformat(row["at"]), "word": word, "sentence": sentence}


@page(section="gangs", topics="sessions gangs")
def gang(this: Page, pk: int) -> HttpResponse:
    """One gang: why it waits, what happened to it, its pods and its object."""
    found = with_steps(visible_gangs(this.access).filter(cluster=this.cluster, pk=pk)).first()
    if found is None:
        raise Http404
    # Without pods, before its start and after its end, what it asks for is what its PodGroup says.
    asked = found.manifest.get("card_request") or {}
    least = found.manifest.get("min_resources") or {}
    return this.render(
        "gangs/gang.html",
        {
            "gang": found,
            "cards": found.cards or {name: milli / 1000 for name, milli in asked.items()},
            "cpu_milli": found.cpu_milli or least.get("cpu_milli", 0),
            "memory_mib": found.memory_mib or least.get("memory_mib", 0),
            "why": why(this.access, found) if found.needs and found.reason_code else None,
            "pods": list(pods_of(found)),
            "steps": [_step(this.access, row) for row in found.step_rows],  # type: ignore[attr-defined]
            "reclaims": reclaims_of_gang(this.access, this.cluster, found.key, limit=6) if not found.needs else [],
            "manifest": pod_group_yaml(found.manifest, phase=found.phase),
        },
    )


@page()
def gang_by_name(this: Page, namespace: str, name: str) -> HttpResponse:
    """The address that other pages know: go to the gang of that name that was submitted last."""
    pk = newest_gang_id(this.access, this.cluster, f"{namespace}/{name}")
    if pk is None:
        raise Http404
    return redirect("console:gang", this.cluster.slug, pk)
