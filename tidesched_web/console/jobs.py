from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.changes.impact_sight import result_within_sight
from tidesched_web.common.errors import DomainError
from tidesched_web.console import amounts, impact_view
from tidesched_web.console.methods import acts_by_post
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.policy_trial import trial_shown
from tidesched_web.jobs import services
from tidesched_web.jobs.models import OPEN_JOB_STATES, Job, JobKind
from tidesched_web.jobs.selectors import visible_job, visible_jobs


@page(section="jobs", topics="jobs")
def jobs(this: Page) -> HttpResponse:
    found = paged(visible_jobs(this.access, this.user), ("-id",), this.request.GET.get("cursor", ""))
    places = services.places_of(found.rows)
    for row in found.rows:
        _seen(this, row)
        row.place = places.get(row.pk)
    runs = sum(row.open for row in found.rows)
    open_ones = ngettext("%(n)s of them is not over.", "%(n)s of them are not over.", runs)
    line = open_ones % {"n": amounts.number(runs)} if runs else _("All of them are over.")
    return this.render("jobs/jobs.html", {"page": found, "line": line if found.rows else ""})


@page(section="jobs", topics="jobs")
def job(this: Page, pk: int) -> HttpResponse:
    found = _found(this, pk)
    _seen(this, found)
    found.place = services.places_of([found]).get(found.pk)  # type: ignore[attr-defined]
    # The result's links lead into the cluster that the job is about.
    this.current = next((cluster for cluster in this.clusters if cluster.pk == found.cluster_id), None)
    result = result_within_sight(found, this.access)
    impact = found.kind in (JobKind.IMPACT, JobKind.IMPACT_DAY) and result is not None and this.current is not None
    shown = impact and result is not None and not result.get("unavailable")
    trial = trial_shown(result) if shown and result is not None else None
    return this.render(
        "jobs/job.html",
        {
            "job": found,
            "log": [(line["at"], _(line["text"]) % line["values"]) for line in found.log],
            "trial": trial,
            "view": impact_view.view_of(result) if shown and not trial and result is not None else None,
            "unavailable": result.get("detail") or result.get("unavailable") if impact and result and not shown else "",
        },
    )


@acts_by_post
@page(section="jobs")
def cancel(this: Page, pk: int) -> HttpResponse:
    found = _found(this, pk)
    try:
        services.cancel(job=found)
    except DomainError:
        messages.info(this.request, _("This job was over already."))
    else:
        messages.success(this.request, _("The job is stopped at its next step."))
    return redirect("console:job", pk)


def _found(this: Page, pk: int) -> Job:
    found = visible_job(this.access, this.user, pk)
    if found is None:
        raise Http404
    return found


def _seen(this: Page, row: Job) -> None:
    row.percent = round(row.progress * 100)  # type: ignore[attr-defined]
    row.cancelling = row.state in OPEN_JOB_STATES and row.cancel_asked_at is not None  # type: ignore[attr-defined]
    row.about = _about(this, row)  # type: ignore[attr-defined]


def _about(this: Page, row: Job) -> tuple[str, str] | None:
    kind, _colon, pk = row.subject.partition(":")
    slug = next((cluster.slug for cluster in this.clusters if cluster.pk == row.cluster_id), None)
    if slug is None:
        return None
    if kind == "change" and pk.isdigit():
        return _("Change %(n)s") % {"n": pk}, reverse("console:change", args=[slug, int(pk)])
    return (_("Policy"), reverse("console:policy", args=[slug])) if kind == "policy" else None
