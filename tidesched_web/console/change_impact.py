from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.urls import reverse

from tidesched_web.changes import services
from tidesched_web.changes.impact import answer_of, start_day_impact
from tidesched_web.changes.impact_sight import within_sight
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.server_check import server_check
from tidesched_web.console import impact_view
from tidesched_web.console.change_reading import answer_shown, change_of, plan_of
from tidesched_web.console.export import csv_response
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_writer
from tidesched_web.jobs.models import Job, JobKind
from tidesched_web.jobs.selectors import earlier_answer, is_answered, job_by_id, newest_about, visible_job


@takes_forms
@page()
def change_impact(this: Page, pk: int) -> HttpResponse:
    found = change_of(this, pk)
    if (other := _other_revision(this, found)) is not None:
        return other
    if this.request.method == "POST":
        services.ask_impact(change=found, access=this.access)
    number = this.request.GET.get("job", "")
    known = number.isascii() and number.isdigit() and len(number) < 15
    job = visible_job(this.access, this.user, int(number)) if known else None
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
            "again": f"{reverse('console:change_impact', args=[this.cluster.slug, pk])}"
            f"?job={impact.get('job') or 0}&revision={found.revision}"
            if waits
            else "",
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
