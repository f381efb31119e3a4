import datetime as dt
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tidesched_web.changes import services as changes
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.tree_document import key_of, kind_of, parts_of
from tidesched_web.clusters.selectors import card_names, ruling_policy
from tidesched_web.common.card_names import card_label
from tidesched_web.common.errors import DomainError
from tidesched_web.common.sentences import listed
from tidesched_web.common.time_zones import time_zones
from tidesched_web.console import amounts, change_words, chart
from tidesched_web.console.export import csv_list
from tidesched_web.console.figures import tide_preview
from tidesched_web.console.forms.bounded import BoundedFilterForm
from tidesched_web.console.forms.filters import some_or_any
from tidesched_web.console.forms.meanwhile import Figure, Meanwhile
from tidesched_web.console.forms.tide_plan import PlanForm, local_days
from tidesched_web.console.layer_words import day_words
from tidesched_web.console.methods import acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.quota_at import next_changes, plans_on
from tidesched_web.console.quota_editor import draft_of
from tidesched_web.console.tide_now import queues_now
from tidesched_web.console.tide_reading import (
    changed_figures,
    need_plan_writer,
    others_on,
    overlaps_in_sight,
    patched,
    plan_named,
    plans_in_sight,
    queues_in_sight,
)
from tidesched_web.console.tide_week import Week, week_of
from tidesched_web.engine.policy_check import cooldown_seconds
from tidesched_web.quota import tide, tide_document
from tidesched_web.quota.models import Queue, TideAnswer, TidePlan, TideStep
from tidesched_web.quota.selectors import card_quota_of
from tidesched_web.quota.tide_rules import WEEKDAY_NAMES
from tidesched_web.quota.tide_selectors import (
    beyond_base,
    document_of,
    effective_of,
    steps_of_plan,
    visible_tide_plans,
    visible_tide_steps,
)
from tidesched_web.scheduling.usage_selectors import demand_by_hour_of_week
from tidesched_web.workloads.models import Gang
from tidesched_web.workloads.selectors import spared_gangs

FIELDS = ("position", "time_zone", "enabled", "exceptions", "layers")


def rest_on(row: TidePlan, form: PlanForm, said: str) -> None:
    typed, _faults = tide_document.canonical(form.document())
    there = document_of(row)
    form.meanwhile, form.version = Meanwhile(said), row.version
    for name in FIELDS:
        field = f"/{name}"
        now, mine = (change_words.figure(field, document.get(name)) for document in (there, typed))
        if now != mine:
            form.meanwhile.both.append(Figure(change_words.field_name(field), now, mine))


SPARED = 100
STEPS = 10
DAYS = list(zip(tide.WEEKDAYS, WEEKDAY_NAMES, strict=True))


@page(section="tide_plans", topics="queues changes reclaims")
def plans(this: Page) -> HttpResponse:
    rows = plans_in_sight(this)
    now = this.cluster.clock()
    standing = plans_on(this)
    open_now = tide.open_layers(standing, now)
    for row in rows:
        own = tide.plan_of(row.name, document_of(row))
        row.open_now = [  # type: ignore[attr-defined]
            own.layers[number].name or _("layer %(n)s") % {"n": number + 1}
            for _place, number in tide.open_layers([own], now)
        ]
        row.next_change = tide.next_change([own], now)  # type: ignore[attr-defined]
        row.queues = sorted(tide.touched([own]))  # type: ignore[attr-defined]
    queues = queues_in_sight(this) if standing else []
    turned = _turned(queues)
    return this.render(
        "tide/plans.html",
        {
            "rows": rows,
            "turned": turned,
            "next_changes": next_changes(this, queues),
            "overlaps": overlaps_in_sight(this),
            "line": _line(rows, turned, open_now, everything=this.access.everything),
            **(_cool_down(this) if this.cluster.evicts else {}),
        },
    )


def _cool_down(this: Page) -> dict[str, Any]:
    ruling = ruling_policy(this.cluster)
    gangs = list(spared_gangs(this.access, this.cluster).defer("manifest")[: SPARED + 1])
    shown = gangs[:SPARED]
    queues: dict[str, list[Gang]] = {}
    for gang in shown:
        queues.setdefault(gang.queue_name, []).append(gang)
    counts = {
        "gangs": ngettext("%(n)s gang", "%(n)s gangs", len(shown)) % {"n": amounts.number(len(shown))},
        "queues": ngettext("%(n)s queue", "%(n)s queues", len(queues)) % {"n": amounts.number(len(queues))},
    }
    return {
        "cool_down": cooldown_seconds(ruling.text) if ruling else None,
        "spared": sorted(queues.items()),
        "spared_line": _("%(gangs)s of %(queues)s.") % counts if shown else _("No gang."),
        "more_spared": len(gangs) > SPARED,
    }


def _turned(queues: list[Queue]) -> list[dict[str, Any]]:
    effective = effective_of(queues)
    found = []
    for queue in queues:
        base = card_quota_of(queue)
        for card, cards in beyond_base(base, effective[queue.pk]).items():
            found.append({"queue": queue, "card": card, "base": base.get(card, 0), "cards": cards})
    return found


def _line(rows: list[TidePlan], turned: list[dict[str, Any]], open_now: tide.Open, *, everything: bool) -> str:
    if not rows and not everything:
        return _("No tide plan is about queues of your tenants: their base holds at every hour.")
    if not rows:
        return _("Quota follows no clock here: the base holds at every hour.")
    on = sum(row.enabled for row in rows)
    if not on:
        return _("No plan is on: the base holds at every hour.")
    said = ngettext("%(n)s plan is on", "%(n)s plans are on", on) % {"n": amounts.number(on)}
    if not open_now:
        return _("%(on)s; no layer is open now, the base holds.") % {"on": said}
    figures = ngettext("%(n)s figure is", "%(n)s figures are", len(turned)) % {"n": amounts.number(len(turned))}
    return _("%(on)s; %(figures)s another than the base now.") % {"on": said, "figures": figures}


def _week(this: Page, name: str, document: Mapping[str, Any], queues: list[Queue], text: str = "") -> Week:
    shown = tide.plan_of(name, document)
    base = {queue.name: card_quota_of(queue) for queue in queues}
    kinds = {queue.name: queue.service_type for queue in queues}
    return week_of(
        tide.in_order([*others_on(this, name), shown]), shown, base, kinds, text=text, now=this.cluster.clock()
    )


@page(section="tide_plans", topics="queues changes")
def plan(this: Page, name: str) -> HttpResponse:
    row = plan_named(this, name)
    document = document_of(row)
    queues = queues_in_sight(this)
    week = _week(this, name, document, queues, this.request.GET.get("week", ""))
    own = tide.plan_of(name, document)
    now = this.cluster.clock()
    choices = [(f"{each.queue}|{each.card}", f"{each.queue}, {card_label(each.card)}") for each in week.rows]
    drawn = None
    if choices:
        address = reverse("console:tide_plan_preview", args=[this.cluster.slug, name])
        drawn = chart.Chart(
            "tide-preview",
            _("Would the plan have fitted what was asked for?"),
            address,
            query="",
            choices=choices,
            choice=choices[0][0],
            choice_label=_("Queue and card type"),
        )
    return this.render(
        "tide/plan.html",
        {
            "plan": row,
            "layers": [layer | {"begins": day_words(layer["days"])} for layer in row.layers],
            "week": week,
            "chart": drawn,
            "overlaps": overlaps_in_sight(this, name),
            **_next_step(this, row, own, queues),
            "steps": list(steps_of_plan(this.access, this.cluster.pk, name)[:STEPS]),
            "days": DAYS,
            "exceptions": local_days(row.exceptions),
            "line": _plan_line(own, row.enabled, now),
            "figures": queues_now(this, row, own, queues),
            "open_now": row.enabled and bool(tide.open_layers([own], now)),
            "ended": [
                {"name": own.layers[one.layer].name or _("layer %(n)s") % {"n": one.layer + 1}, "ended": one}
                for one in (tide.ended_layers(own, now) if row.enabled else ())
            ],
            "refused": _switch_refused(this, row) if not row.enabled and this.access.administers else "",
        },
    )


def _switch_refused(this: Page, row: TidePlan) -> str:
    edits = {key_of("tide-plan", row.name): {"enabled": True}}
    try:
        errors = changes.check(cluster=this.cluster, edits=edits, access=this.access)["errors"]
    except DomainError as error:
        return error.message
    return str(errors[0]["detail"]) if errors else ""


def _plan_line(own: tide.Plan, enabled: bool, now: Any) -> str:
    if not enabled:
        return _("It is off: the base holds, whatever its layers say.")
    open_now = tide.names_of([own], tide.open_layers([own], now), _("layer %(n)s"))
    then = tide.next_change([own], now)
    until = timezone.localtime(then, own.zone).strftime("%Y-%m-%d %H:%M") if then else _("no end in sight")
    if open_now:
        return _("Open now: %(layers)s. The next change is at %(time)s (%(zone)s).") % {
            "layers": listed(open_now), "time": until, "zone": own.zone.key
        }  # fmt: skip
    return _("No layer is open now. The next change is at %(time)s (%(zone)s).") % {"time": until, "zone": own.zone.key}


@page(section="tide_plans")
def preview(this: Page, name: str) -> HttpResponse:
    row = plan_named(this, name)
    queues = queues_in_sight(this)
    own = tide.plan_of(name, document_of(row))
    week = _week(this, name, document_of(row), queues)
    asked = this.request.GET.get("card", "")
    chosen = next((each for each in week.rows if f"{each.queue}|{each.card}" == asked), None)
    chosen = chosen or (week.rows[0] if week.rows else None)
    if chosen is None:
        raise Http404
    queue = next(queue for queue in queues if queue.name == chosen.queue)
    demand = demand_by_hour_of_week([queue.pk], chosen.card, own.zone.key)
    hours = tide_preview.hours(chosen, week.start, demand)
    return chart.answer(
        this.request,
        key=f"tide-preview:{row.pk}:{row.version}:{queue.pk}:{queue.version}:{chosen.card}:{week.key}:{len(demand)}",
        figure=lambda theme: tide_preview.figure(hours, chosen.service_type, theme),
        twin=lambda: tide_preview.twin(f"{row.name}-{queue.name}", hours),
    )


@takes_forms
@page(section="tide_plans")
def new(this: Page) -> HttpResponse:
    need_plan_writer(this)
    return _editor(this, None)


@takes_forms
@page(section="tide_plans")
def edit(this: Page, name: str) -> HttpResponse:
    row = plan_named(this, name)
    need_plan_writer(this)
    return _editor(this, row)


def _editor(this: Page, row: TidePlan | None) -> HttpResponse:
    draft = draft_of(this, this.request.GET.get("change"))
    opened = _opened(this, row, draft)
    if this.request.method != "POST":
        return _show_editor(this, row, opened)
    form = PlanForm.read(this.request.POST)
    if row is not None:
        form.name = row.name
    act = this.request.POST.get("act", "")
    if act and form.act(act):
        return _show_editor(this, row, form)
    if row is not None and draft is None and tide_document.canonical(form.document())[0] == document_of(row):
        messages.info(this.request, _("Nothing was changed: it says so already."))
        return redirect("console:tide_plan", this.cluster.slug, row.name)
    change = _drafted(this, row, form, draft)
    if change is None:
        return _show_editor(this, row, form, status=412 if form.meanwhile else 400)
    return redirect("console:change", this.cluster.slug, change.pk)


def _opened(this: Page, row: TidePlan | None, draft: QuotaChange | None) -> PlanForm:
    document = document_of(row) if row else {}
    if draft is not None:
        key, patch = next(iter(draft.edits.items())) if len(draft.edits) == 1 else ("", None)
        if patch is None or kind_of(key) != "tide-plan" or (row and key != key_of("tide-plan", row.name)):
            raise Http404
        form = PlanForm.of(parts_of(key)[0], patched(document, patch), row.version if row else 0)
        form.revision = draft.revision
        return form
    if row is None:
        return PlanForm.empty(this.cluster.time_zone or timezone.get_current_timezone_name())
    return PlanForm.of(row.name, document, row.version)


def _drafted(this: Page, row: TidePlan | None, form: PlanForm, draft: QuotaChange | None) -> QuotaChange | None:
    document = form.document()
    if row is None and any(each.name == form.name for each in plans_in_sight(this)):
        form.field_errors["name"] = _("There is a plan of this name already.")
    if not form.name or "/" in form.name:
        form.field_errors["name"] = _("Give it a name without a slash.")
    if not form.sound:
        # All that is wrong is said at once: what the document's own reading finds beside what the form has seen.
        _document, faults = tide_document.canonical(document)
        if faults:
            form.refuse([{"field": fault.field, "detail": fault.detail} for fault in faults], "")
        return None
    key = key_of("tide-plan", form.name)
    # A merge patch keeps exceptions that it does not name; those that left the form have to be named.
    left = {day: None for day in (row.exceptions if row else {}) if day not in document["exceptions"]}
    edits = {key: document | {"exceptions": document["exceptions"] | left}}
    versions = {key: form.version} if row is not None else None
    sent: dict[str, Any] = {"edits": edits, "access": this.access}
    try:
        if draft is None:
            return changes.draft(cluster=this.cluster, versions=versions, sound=True, once=True, **sent)
        if errors := changes.check(cluster=this.cluster, **sent)["errors"]:
            raise DomainError("invalid", "", {"errors": errors})
        seen = changes.Reviewed(revision=form.revision)
        return changes.edit_draft(change=draft, seen=seen, **sent)
    except DomainError as error:
        if error.code == "stale" and row is not None and draft is None:
            rest_on(row, form, error.message)
        else:
            form.refuse(error.extra.get("errors", ()), error.message)
        return None


def _show_editor(this: Page, row: TidePlan | None, form: PlanForm, *, status: int = 200) -> HttpResponse:
    queues = queues_in_sight(this)
    return this.render(
        "tide/edit.html",
        {
            "plan": row,
            "form": form,
            "queues": queues,
            "cards": card_names(this.cluster),
            "days": DAYS,
            "zones": time_zones(),
            **_week_of_form(this, form, queues),
        },
        status=status,
    )


def _week_of_form(this: Page, form: PlanForm, queues: list[Queue]) -> dict[str, Any]:
    document, _faults = tide_document.canonical(form.document())
    if not document["layers"]:
        return {"week": None, "overlaps": []}
    name = form.name or _("this plan")
    return {"week": _week(this, name, document, queues), "overlaps": overlaps_in_sight(this, name, document)}


@acts_by_post
@page(section="tide_plans")
def week_of_draft(this: Page) -> HttpResponse:
    need_plan_writer(this)
    form = PlanForm.read(this.request.POST)
    # A layer that was added just now is no mistake; saving it as it is would be.
    form.layers = [layer for layer in form.layers if layer.begun]
    if not form.layers:
        return render(this.request, "tide/draft_week.html", {"week": None, "errors": [], "edits": True})
    document = form.document()
    name = form.name.replace("/", "") or _("this plan")
    try:
        plan = changes.check(
            cluster=this.cluster, edits={key_of("tide-plan", name): document | {"enabled": True}}, access=this.access
        )
        form.refuse(plan["errors"], "") if plan["errors"] else None
    except DomainError as error:
        form.refuse(error.extra.get("errors", ()), error.message)
    shown = _week_of_form(this, PlanForm.read(this.request.POST), queues_in_sight(this))
    errors = list(dict.fromkeys(form.said))
    return render(this.request, "tide/draft_week.html", shown | {"errors": errors, "edits": True})


def _next_step(this: Page, row: TidePlan, own: tide.Plan, queues: list[Queue]) -> dict[str, Any]:
    moment = tide.next_change([own], this.cluster.clock())
    if moment is None:
        return {}
    plans = tide.in_order([own, *others_on(this, row.name)])
    base = {queue.name: card_quota_of(queue) for queue in queues if queue.name in tide.touched([own])}
    before, after = (
        tide.with_layers(base, plans, tide.open_layers(plans, at)) for at in (moment - dt.timedelta(seconds=1), moment)
    )
    return {"next_at": moment, "next_figures": changed_figures(base, before, after)}


class TideStepFilter(BoundedFilterForm):
    plan = forms.ChoiceField(label=gettext_lazy("Plan"))
    queue = forms.CharField(label=gettext_lazy("Queue"), max_length=63)
    answer = forms.ChoiceField(label=gettext_lazy("Cluster"), choices=some_or_any(TideAnswer.choices))

    def __init__(self, data: QueryDict, plans: Iterable[str]) -> None:
        self.plans = list(plans)
        super().__init__(data)

    def is_valid(self) -> bool:
        # A choice field, which the type of a form's fields does not say.
        self.fields["plan"].choices = some_or_any((name, name) for name in self.plans)  # type: ignore[attr-defined]
        return super().is_valid()

    def apply(self, steps: QuerySet[TideStep]) -> QuerySet[TideStep]:
        if plan := self.value("plan"):
            steps = steps.filter(plans__contains=[plan])
        if queue := self.value("queue"):
            steps = steps.filter(queue__name__icontains=queue)
        if answer := self.value("answer"):
            steps = steps.filter(answer=answer)
        if since := self.moment("from"):
            steps = steps.filter(at__gte=since)
        if until := self.moment("to"):
            steps = steps.filter(at__lt=until)
        return steps


_COLUMNS = ("card", "before", "after", "wanted", "answer", "message")


@page(section="tide_plans", topics="queues")
def steps(this: Page) -> HttpResponse:
    plans = visible_tide_plans(this.access).filter(cluster=this.cluster).order_by("position", "name")
    form = TideStepFilter(this.request.GET, plans.values_list("name", flat=True))
    rows = form.apply(visible_tide_steps(this.access).filter(cluster=this.cluster))
    if this.request.GET.get("format") == "csv":
        return csv_list(
            f"tide-steps-{this.cluster.slug}",
            {
                "at": lambda row: row.at.isoformat(),
                "since": lambda row: row.since.isoformat() if row.since else "",
                "plans": lambda row: "; ".join(row.plans),
                "layers": lambda row: "; ".join(row.layers),
                "taken_back": lambda row: "; ".join(f"{one['plan']}: {one['layer']}" for one in row.taken_back),
                "taken_back_by": lambda row: "; ".join(one["by"] for one in row.taken_back),
                "queue": lambda row: row.queue.name,
                **{name: attrgetter(name) for name in _COLUMNS},
                "answered_at": lambda row: row.answered_at.isoformat(),
            },
            rows.order_by("-id").iterator(chunk_size=1000),
        )
    found = paged(rows, ("-id",), this.request.GET.get("cursor", ""))
    return this.render(
        "tide/steps.html", {"page": found, "steps": found.rows, "form": form, "line": _steps_line(found.rows)}
    )


def _steps_line(rows: list[TideStep]) -> str:
    if not rows:
        return ""
    refused = sum(row.answer == TideAnswer.REFUSED for row in rows)
    waits = sum(row.answer == TideAnswer.PENDING for row in rows)
    shown = ngettext("%(n)s step", "%(n)s steps", len(rows)) % {"n": amounts.number(len(rows))}
    if not refused and not waits:
        return _("%(steps)s here; the cluster has taken all of them.") % {"steps": shown}
    return _("%(steps)s here; the cluster refused %(refused)s, and %(waits)s have not reached it yet.") % {
        "steps": shown, "refused": amounts.number(refused), "waits": amounts.number(waits)
    }  # fmt: skip
