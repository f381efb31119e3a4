import datetime as dt
import time
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse

from tidesched_web.changes import services
from tidesched_web.changes.impact import answer_of, start_day_impact
from tidesched_web.changes.impact_sight import within_sight
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.server_check import server_check
from tidesched_web.changes.tide_steps import StepAhead, job_of, steps_ahead
from tidesched_web.changes.tree_document import kind_of
from tidesched_web.console import impact_view
from tidesched_web.console.change_reading import answer_shown, change_of, is_number, plan_of
from tidesched_web.console.export import csv_response
from tidesched_web.console.methods import acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_writer
from tidesched_web.console.tide_reading import changed_figures
from tidesched_web.jobs.models import Job, JobKind
from tidesched_web.jobs.selectors import earlier_answer, is_answered, job_by_id, newest_about, visible_job
from tidesched_web.quota.selectors import visible_queues_of

# Seconds; so young an answer of a step is not asked for again.
RECENT = 60


@takes_forms
@page()
def change_impact(this: Page, pk: int) -> HttpResponse:
    found = change_of(this, pk)
    if (other := _other_revision(this, found)) is not None:
        return other
    number = this.request.GET.get("job", "")
    if this.request.method == "POST":
        if is_number(number) and not services.has_aged(job_by_id(int(number))):
            return HttpResponse(status=204)
        services.ask_impact(change=found, access=this.access)
        number = ""
    job = visible_job(this.access, this.user, int(number)) if is_number(number) else None
    if job is not None and job.subject == services.subject_of(found):
        impact = within_sight(answer_of(job), this.access, this.cluster.pk)
    else:
        impact = services.shown_plan(change=found, access=this.access, impact=True)["impact"] or {
            "unavailable": "nothing"
        }
    waits = impact.get("unavailable") in ("timeout", "no_worker") or bool(impact.get("pending"))
    return this.render(
        "changes/impact.html",
        {
            "change": found,
            "impact": impact,
            "view": None if impact.get("unavailable") else impact_view.view_of(impact),
            **(_waiting(this, impact) if waits and impact.get("unavailable") else {}),
            "waits": waits,
        },
    )


def _waiting(this: Page, impact: Mapping[str, Any]) -> dict[str, Any]:
    job = impact.get("job") or 0
    earlier, asked = answer_shown(this, earlier_answer(job)), job_by_id(job)
    return {
        "earlier": earlier,
        "asked_at": asked.created_at if asked else None,
        "first": earlier is None and not is_answered(JobKind.IMPACT, this.cluster.pk),
    }


def _other_revision(this: Page, found: QuotaChange) -> HttpResponse | None:
    opened = this.request.GET.get("revision", "")
    if opened in ("", str(found.revision)):
        return None
    return this.render("changes/other_revision.html", {"change": found})


@page()
def change_server(this: Page, pk: int) -> HttpResponse:
    found = change_of(this, pk)
    if (other := _other_revision(this, found)) is not None:
        return other
    plan = services.shown_plan(change=found, access=this.access)
    sound = found.state in QuotaChange.OPEN and not plan.get("errors")
    answer = server_check(this.cluster, plan.get("objects") or []) if sound else None
    return this.render("changes/server.html", {"answer": answer, "change": found})


@takes_forms
@page()
def change_day(this: Page, pk: int) -> HttpResponse:
    found = change_of(this, pk)
    if (other := _other_revision(this, found)) is not None:
        return other
    job = newest_about(this.access, this.user, services.subject_of(found), JobKind.IMPACT_DAY)
    if this.request.method == "POST":
        need_writer(this)
        job = start_day_impact(
            this.cluster,
            plan_of(this, found).get("objects", ()),
            access=this.access,
            subject=services.subject_of(found),
        )
    view = _day_view(this, job)
    # The figures of now, of which the day was tried with the objects that they make.
    earlier = view is not None and job is not None and job.params.get("objects") != plan_of(this, found).get("objects")
    if this.request.GET.get("format") == "csv":
        rows = [(row.card, row.queue, row.gained, row.lost, row.over) for row in view.hours] if view else []
        return csv_response(f"change-{pk}-card-hours", ["card", "queue", "gained", "lost", "over_quota"], rows)
    return this.render(
        "changes/day.html",
        {
            "change": found,
            "job": job,
            "view": view,
            "earlier": earlier,
            "percent": round(100 * job.progress) if job else 0,
        },
    )


def _day_view(this: Page, job: Job | None) -> impact_view.ImpactView | None:
    if job is None or job.result is None or job.result.get("unavailable"):
        return None
    return impact_view.view_of(within_sight(job.result, this.access, this.cluster.pk))


@acts_by_post
@page()
def change_steps(this: Page, pk: int) -> HttpResponse:
    found = change_of(this, pk)
    if (other := _other_revision(this, found)) is not None:
        return other
    opened = this.request.GET.get("since", "")
    since = int(opened) if opened.isascii() and opened.isdigit() and len(opened) < 12 else int(time.time()) - RECENT
    steps, waits = steps_shown(this, found) if turns_plans(found) else [], False
    for shown in steps:
        if shown["ahead"].differences:
            # One question after the other: those of the page itself, and of others, are not kept waiting.
            shown.update(_answer(this, found, shown["ahead"], since=since, asks=not waits))
            waits = waits or shown["waits"]
    return this.render("changes/steps.html", {"change": found, "steps": steps, "again": waits, "since": since})


def turns_plans(change: QuotaChange) -> bool:
    return change.state in QuotaChange.OPEN and any(kind_of(key) == "tide-plan" for key in change.edits)


def steps_shown(this: Page, change: QuotaChange) -> list[dict[str, Any]]:
    """The steps that turn a queue in sight."""
    steps = steps_ahead(change, this.access)
    seen = sorted(visible_queues_of(this.cluster, this.access).values_list("name", flat=True)) if steps else []
    shown = []
    for number, step in enumerate(steps, 1):
        without, with_it = ({name: quota.get(name, {}) for name in seen} for quota in (step.without, step.with_it))
        if figures := changed_figures(without, without, with_it):
            shown.append({"number": number, "ahead": step, "figures": figures})
    return shown


def _answer(this: Page, change: QuotaChange, step: StepAhead, *, since: int, asks: bool) -> dict[str, Any]:
    job = job_of(change, step, this.access, since=dt.datetime.fromtimestamp(since, dt.UTC), asks=asks)
    impact = within_sight(answer_of(job), this.access, this.cluster.pk) if job else {"unavailable": "timeout"}
    waits = impact.get("unavailable") == "timeout"
    return {
        "waits": waits or bool(impact.get("pending")),
        "impact": impact,
        "view": None if impact.get("unavailable") else impact_view.view_of(impact),
    }
