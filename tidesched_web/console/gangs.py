import datetime as dt
import math
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.changes import services as changes
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.remedy_edits import MoreCards, more_cards
from tidesched_web.changes.room_above import with_room_above
from tidesched_web.changes.selectors import reading_of, surroundings_of
from tidesched_web.clusters.selectors import card_names
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access
from tidesched_web.common.sentences import listed
from tidesched_web.console import reason_words
from tidesched_web.console.edit_pages import edit_page, trail_of
from tidesched_web.console.export import csv_list, plain_cards
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.filters import GangFilter
from tidesched_web.console.gang_why import (
    RemedyLine,
    Why,
    all_holders,
    gangs_in_remedies,
    held_back,
    remedy_line,
    shown_numbers,
    together,
    why,
    why_sentence,
    why_title,
)
from tidesched_web.console.methods import acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import manages, need_admin_of
from tidesched_web.console.states import look
from tidesched_web.console.stop_words import stop_words
from tidesched_web.quota.selectors import visible_queues_of
from tidesched_web.scheduling.gang_selectors import marks_of, with_evictions, with_pods, with_promises
from tidesched_web.scheduling.holds import sending_stop
from tidesched_web.scheduling.remedy_asking import ask
from tidesched_web.scheduling.selectors import reclaims_of_gang
from tidesched_web.scheduling.services import holds_unused_promise, withdraw_promise
from tidesched_web.workloads.models import Gang
from tidesched_web.workloads.reason_figures import AsOf, as_of, of_all, with_figures
from tidesched_web.workloads.remedies import remedy_of
from tidesched_web.workloads.remedy_selectors import with_remedies
from tidesched_web.workloads.selectors import (
    BY_NEED,
    by_need,
    newest_gang_id,
    that_wait,
    visible_gangs,
    with_granted,
    with_own_queue,
    with_reason_counts,
    with_steps,
)


def timeline(access: Access, rows: Iterable[dict[str, Any]], *, own_queue: bool = True) -> list[dict[str, Any]]:
    return [_step(access, row, own_queue) for row in rows]


def _step(access: Access, row: dict[str, Any], own_queue: bool) -> dict[str, Any]:
    detail = row["detail"]
    sentence = reason_words.reason_detail(detail.get("code", ""), detail.get("message", ""))
    if not sentence and detail.get("numbers"):
        numbers = reason_words.own_numbers(access, detail["numbers"]) if own_queue else {}
        sentence = reason_words.reason_sentence(detail["code"], numbers)
    if made_by := detail.get("made_by"):
        who = look("maker", made_by).word
        sentence = ngettext(
            "%(n)s pod of it was evicted. By: %(who)s.", "%(n)s pods of it were evicted. By: %(who)s.", detail["pods"]
        ) % {"n": detail["pods"], "who": who}
    elif detail.get("waits_no_more"):
        ready = ngettext("It has %(n)s pod and waits no more.", "It has %(n)s pods and waits no more.", detail["ready"])
        sentence = ready % {"n": detail["ready"]}
    elif row["kind"] == "reclaimed" and row["reclaim_id"]:
        sentence = _("Evicted by reclaim %(n)s.") % {"n": row["reclaim_id"]}
    word = look("step", row["kind"]).word
    return row | {"at": dt.datetime.fromisoformat(row["at"]), "word": word, "sentence": sentence}


API_VERSION = "scheduling.volcano.sh/v1beta1"


def pod_group_yaml(seen: Mapping[str, Any], *, phase: str) -> str:
    if not seen:
        return ""
    document = {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": _filled(
            namespace=seen.get("namespace"),
            name=seen.get("name"),
            uid=seen.get("uid"),
            creationTimestamp=_moment(seen.get("created")),
            labels=seen.get("labels"),
            annotations=seen.get("annotations"),
        ),
        "spec": _filled(
            queue=seen.get("queue"),
            minMember=seen.get("min_member"),
            minTaskMember=seen.get("min_task_member"),
            minResources=resources(seen.get("min_resources")),
            priorityClassName=seen.get("priority_class"),
        ),
        "status": {"phase": phase},
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def resources(amount: Mapping[str, Any] | None) -> dict[str, str]:
    found = {}
    if cpu := (amount or {}).get("cpu_milli"):
        found["cpu"] = f"{cpu // 1000}" if cpu % 1000 == 0 else f"{cpu}m"
    if memory := (amount or {}).get("memory_mib"):
        found["memory"] = f"{memory}Mi"
    return found


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", {}, [])}


def _moment(seconds: float | None) -> str | None:
    if not seconds:
        return None
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat().replace("+00:00", "Z")


MIB = 2**20


@page(section="gangs", topics="sessions gangs")
def gangs(this: Page) -> HttpResponse:
    cluster = this.cluster
    form = GangFilter(this.request.GET, card_names(cluster))
    all_gangs = visible_gangs(this.access).filter(cluster=cluster)
    rows = with_remedies(with_figures(with_own_queue(form.apply(all_gangs), this.access))).defer("manifest")
    rows = with_evictions(rows, this.access, cluster.clock())
    wanted = form.value("order")
    order: tuple[str, ...] = BY_NEED
    if wanted == "waiting":
        rows, order = that_wait(rows).filter(waiting_since__isnull=False), ("waiting_since", "id")
    elif wanted == "newest":
        order = ("-submitted_at", "-id")
    else:
        rows = by_need(rows)
    if this.request.GET.get("format") == "csv":
        return _export(this, rows.order_by(*order))
    found = paged(with_reason_counts(rows, form.apply_but_reason(all_gangs)), order, this.request.GET.get("cursor", ""))
    stop = sending_stop(cluster)
    seen = gangs_in_remedies(this.access, cluster.pk, found.rows)
    namespaces: dict[str, set[str]] = {}
    for row in found.rows:
        namespaces.setdefault(row.name, set()).add(row.namespace)
    for row in found.rows:
        # Where only the namespace tells gangs apart it is not cut.
        row.has_namesake = len(namespaces[row.name]) > 1
        if held_back(row, stop) or (row.needs and row.reason_code):
            row.title, row.why = why_title(row, stop), why_sentence(this.access, row, stop)
            row.brief = (
                ""
                if held_back(row, stop)
                else reason_words.reason_brief(row.reason_code, shown_numbers(this.access, row)[0])
            )
            row.helps = None if held_back(row, stop) else remedy_line(row, seen)
        row.marks = marks_of(row)
    counts = found.rows[0].reason_counts if found.rows else []
    total = sum(entry["n"] for entry in counts)
    code, most = (counts[0]["code"], counts[0]["n"]) if counts else ("", 0)
    return this.render(
        "gangs/gangs.html",
        {
            "page": found,
            "form": form,
            "counts": counts,
            "figures_of": of_all(found.rows[0]) if counts else None,
            "line": reason_words.waiting_line(total, code, most) if found.rows else "",
        },
    )


def _export(this: Page, rows: Any) -> HttpResponse:
    stop = sending_stop(this.cluster)

    def sentence(row: Gang) -> str:
        return why_sentence(this.access, row, stop) if row.needs or held_back(row, stop) else ""

    def would_help(row: Gang) -> RemedyLine | None:
        # Names of gangs of other tenants are for who sees everything.
        return remedy_line(row, None if this.access.everything else set()) if row.needs else None

    return csv_list(
        f"gangs-{this.cluster.slug}",
        {
            "namespace": lambda row: row.namespace,
            "name": lambda row: row.name,
            "queue": lambda row: row.queue_name,
            "service_type": lambda row: row.service_type,
            "state": lambda row: row.state,
            "left_without_running": lambda row: row.left_waiting,
            "priority": lambda row: row.priority,
            "min_member": lambda row: row.min_member,
            "ready": lambda row: row.ready,
            "cards": lambda row: plain_cards(row.cards),
            "submitted_at": lambda row: row.submitted_at.isoformat(),
            "waiting_since": lambda row: row.waiting_since.isoformat() if row.waiting_since else "",
            "reason": lambda row: row.reason_code if row.needs else "",
            "message": sentence,
            "figures_of_session": lambda row: _session_of(as_of(row)) if row.needs else "",
            "would_help": lambda row: found.sentence if (found := would_help(row)) else "",
            "would_help_of_session": lambda row: _session_of(would_help(row)),
        },
        rows.iterator(chunk_size=1000),
    )


def _session_of(said: AsOf | RemedyLine | None) -> int | str:
    return said.session if said else ""


def _gang(this: Page, pk: int) -> Gang:
    access = this.access
    rows = with_figures(with_own_queue(visible_gangs(access).filter(cluster=this.cluster, pk=pk), access))
    rows = with_evictions(with_granted(with_steps(rows), access), access, this.cluster.clock())
    return get_object_or_404(with_remedies(with_pods(with_promises(rows))).select_related("queue"))


@page(section="gangs", topics="sessions gangs")
def gang(this: Page, pk: int) -> HttpResponse:
    found = _gang(this, pk)
    # Without pods, before its start and after its end, what it asks for is what its PodGroup says.
    asked = found.manifest.get("card_request") or {}
    least = found.manifest.get("min_resources") or {}
    pods = [
        row | {"started_at": dt.datetime.fromisoformat(row["started_at"]) if row["started_at"] else None}
        for row in found.pod_rows  # type: ignore[attr-defined]  # annotated by the selector
    ]
    if this.request.GET.get("format") == "json":
        return _export_one(this, found, pods)
    own_queue = found.own_queue  # type: ignore[attr-defined]
    shown = _why(this, found)
    if shown and shown.remedy and shown.remedy.pending:
        ask(this.cluster.pk, found.pk)
    reclaims = reclaims_of_gang(this.access, this.cluster, found.key, limit=6)
    spared_until = found.spared_until if this.cluster.evicts else None
    return this.render(
        "gangs/gang.html",
        {
            "gang": found,
            "own_queue": own_queue,
            "cards": found.cards or {name: milli / 1000 for name, milli in asked.items()},
            "cpu_milli": found.cpu_milli or least.get("cpu_milli", 0),
            "memory_mib": found.memory_mib or least.get("memory_mib", 0),
            "why": shown,
            "all_holders": all_holders(this.access, this.cluster, found) if shown and shown.holders else None,
            "figures_of": as_of(found) if found.reason_code else None,
            "together": together(found, pods) if own_queue else "",
            "stop": stop_words(this.cluster, this.access),
            "pods": pods,
            "steps": timeline(this.access, found.step_rows, own_queue=own_queue),  # type: ignore[attr-defined]
            "reclaims": reclaims,
            "marks": marks_of(found),
            "spared_until": spared_until,
            "spared": spared_until is not None and spared_until > this.cluster.clock(),
            "waits_since_submitted": _at_once(found),
            "manages": own_queue and found.queue is not None and manages(this.access, found.queue.tenant_id),
            "withdrawable": this.cluster.evicts and holds_unused_promise(found) and sending_stop(this.cluster) is None,
            "withdrawn": found.withdrawn_until is not None and found.withdrawn_until > this.cluster.clock(),
            "kubectl": f"kubectl -n {found.namespace} describe podgroups.scheduling.volcano.sh {found.name}",
            "manifest": pod_group_yaml(found.manifest, phase=found.phase),
        },
    )


def _why(this: Page, gang: Gang) -> Why | None:
    stop = sending_stop(this.cluster)
    return why(this.access, gang, stop) if held_back(gang, stop) or (gang.needs and gang.reason_code) else None


def _at_once(gang: Gang) -> bool:
    if not gang.needs or gang.waiting_since is None:
        return False
    return abs((gang.waiting_since - gang.submitted_at).total_seconds()) < 60


def _export_one(this: Page, gang: Gang, pods: list[dict[str, Any]]) -> HttpResponse:
    numbers, message = shown_numbers(this.access, gang)
    own_queue = gang.own_queue  # type: ignore[attr-defined]
    shown = _why(this, gang)
    of, helps = as_of(gang), shown.remedy if shown else None
    document = {
        "cluster": this.cluster.slug,
        "gang": gang.key,
        "queue": gang.queue_name,
        "service_type": gang.service_type,
        "state": gang.state,
        "left_without_running": gang.left_waiting,
        "priority": gang.priority,
        "min_member": gang.min_member,
        "ready": gang.ready,
        "cards": gang.cards,
        "submitted_at": gang.submitted_at,
        "waiting_since": gang.waiting_since,
        "reason": {
            "code": gang.reason_code,
            "numbers": numbers,
            "message": message,
            "sentence": shown.sentence,
            "session": of.session if of else None,
            "at": of.at if of else None,
        }
        if shown
        else None,
        "would_help": helps.sentence if helps else None,
        "would_help_of_session": helps.session if helps else None,
        "pods": pods,
        "timeline": [
            _plain_step(this, row)
            for row in gang.step_rows  # type: ignore[attr-defined]
            if own_queue
        ],
    }
    response = JsonResponse(document)
    name = f"gang-{gang.namespace}-{gang.name}"[:120]
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.json"'
    response.headers["Cache-Control"] = "private, no-store"
    return response


def _plain_step(this: Page, row: dict[str, Any]) -> dict[str, Any]:
    detail = row["detail"]
    if not detail.get("numbers"):
        return row
    return row | {"detail": detail | {"numbers": reason_words.own_numbers(this.access, detail["numbers"])}}


@acts_by_post
@page(section="gangs")
def try_remedy(this: Page, pk: int) -> HttpResponse:
    found = _gang(this, pk)
    if found.queue is None or not manages(this.access, found.queue.tenant_id):
        raise PermissionDenied
    worked_out = remedy_of(found, timezone.now())
    remedy = worked_out.remedy if worked_out else None
    if not remedy or remedy.get("change") != "quota":
        messages.error(this.request, _("What would help has changed meanwhile: look at it again."))
        return redirect("console:gang", this.cluster.slug, found.pk)
    try:
        draft = _draft(this, found, remedy)
    except DomainError as error:
        messages.error(this.request, error.message)
        return redirect("console:gang", this.cluster.slug, found.pk)
    if any(key.startswith("tide-plan/") for key in draft.edits):  # the grid of the editor holds the base alone
        return redirect("console:change", this.cluster.slug, draft.pk)
    return redirect(f"{reverse('console:quota_editor', args=[this.cluster.slug])}?change={draft.pk}")


def _draft(this: Page, gang: Gang, remedy: dict[str, Any]) -> QuotaChange:
    queue = visible_queues_of(this.cluster, this.access).filter(name=gang.queue_name).get()
    card, more = remedy["card"], remedy["by"]
    reading = reading_of(this.cluster)
    if card in ("cpu", "memory"):
        figure = (
            {"cpu_milli": (queue.cpu_milli or 0) + math.ceil(more)}
            if card == "cpu"
            else {"memory_bytes": (queue.memory_mib or 0) * MIB + math.ceil(more / MIB) * MIB}
        )
        needed = MoreCards({f"queue/{queue.name}": figure})
    else:
        now, by = this.cluster.clock(), math.ceil(more)
        needed = more_cards(reading.documents, queue.name, card, by, now=now, access=this.access)
    if needed.plan:
        said = _(
            "The tide plan %(plan)s sets this quota now, so the draft changes the plan: a higher base has no effect."
        )
        messages.info(this.request, said % {"plan": needed.plan})
    around = surroundings_of(this.cluster, reading)
    # A draft that the rules refuse would be none to try: what stands above the queue is raised with it.
    room = with_room_above(reading, around, needed.edits, this.access)
    edits = room.edits
    if room.raised:
        names = listed(str(reading.documents[key].get("name") or key.partition("/")[2]) for key in room.raised)
        said = _("The draft raises the quotas above queue %(queue)s too, since they are given out whole: %(names)s.")
        messages.info(this.request, said % {"queue": queue.name, "names": names})
    if room.gives:
        names = listed(key.partition("/")[2] for key in room.gives)
        said = _(
            "All of it is given out, so the draft takes as much from a queue that does not use it: %(names)s. "
            "Take it from another one if that is better."
        )
        messages.info(this.request, said % {"names": names})
    reason = _("So that %(gang)s need not wait.") % {"gang": gang.key}
    return changes.draft(cluster=this.cluster, edits=edits, access=this.access, reason=reason, once=True)


@takes_forms
@page(section="gangs")
def withdraw(this: Page, pk: int) -> HttpResponse:
    found = _gang(this, pk)
    need_admin_of(this, found.queue.tenant_id if found.queue else None)
    form = ReasonForm(this.request.POST or None)
    posted = this.request.method == "POST" and form.is_valid()
    if posted and form.saved(
        withdraw_promise,
        gang=found,
        reason=form.cleaned_data["reason"],
        actor=this.access.actor,
        stopped=sending_stop(this.cluster) is not None,
    ):
        messages.success(this.request, _("The promise is withdrawn: the next session frees its quota."))
        return redirect("console:gang", this.cluster.slug, found.pk)
    title, submit = _("Withdraw the promise of %(gang)s?") % {"gang": found.key}, _("Withdraw the promise")
    trail = [*trail_of(this, _("Gangs"), "gangs"), (found.key, reverse("console:gang", args=[this.cluster.slug, pk]))]
    return edit_page(this, "gangs/withdraw.html", form, title=title, submit=submit, trail=trail, gang=found)


@page()
def gang_by_name(this: Page, namespace: str, name: str) -> HttpResponse:
    pk = newest_gang_id(this.access, this.cluster, f"{namespace}/{name}")
    if pk is None:
        raise Http404
    return redirect("console:gang", this.cluster.slug, pk)
