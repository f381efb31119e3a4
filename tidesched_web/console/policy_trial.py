from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.http import Http404, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from tidesched_web.changes.policy_trial import FATES
from tidesched_web.common import alive
from tidesched_web.console.differences import moved
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_administrator
from tidesched_web.jobs.models import Job, JobKind
from tidesched_web.jobs.selectors import visible_job

COLUMNS: Final[dict[str, Promise]] = {
    "started": _("Starting"),
    "promised": _("Getting reclaimed cards"),
    "waiting": _("Waiting"),
    "reclaimed": _("Reclaimed"),
    "evicted": _("Evicted"),
    "": _("Left as it is"),
}


@page(section="policy")
def policy_trial(this: Page, pk: int) -> HttpResponse:
    need_administrator(this)
    job = visible_job(this.access, this.user, pk)
    if job is None or job.cluster_id != this.cluster.pk or job.kind != JobKind.IMPACT_DAY:
        raise Http404
    return this.render("policy/trial.html", told(job))


def told(job: Job) -> dict[str, Any]:
    trial = trial_shown(job.result or {})
    silent = job.open and job.worker in alive.silent_roles()
    return {"job": job, "percent": round(100 * job.progress), "trial": trial, "silent": silent}


def trial_shown(result: Mapping[str, Any]) -> dict[str, Any] | None:
    tenants = result.get("tenants")
    if tenants is None:
        return None
    return {
        **result["sessions"],
        "rows": [(row["name"], _cells([row])) for row in tenants] + [(_("All tenants"), _cells(tenants))],
        "columns": [COLUMNS[fate] for fate in FATES],
        "differ": [(row, COLUMNS[row["was"]], COLUMNS[row["becomes"]]) for row in result["differ"]],
        "more": result["counts"]["differ"] - len(result["differ"]),
    }


def _cells(rows: Iterable[Mapping[str, Any]]) -> list[tuple[Promise, int, int, str]]:
    sums = ((fate, *(sum(row[fate][place] for row in rows) for place in (0, 1))) for fate in FATES)
    return [(COLUMNS[fate], before, after, moved(before, after)) for fate, before, after in sums]
