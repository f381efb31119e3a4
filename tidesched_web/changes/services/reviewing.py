"""Call it outside of transactions: the impact is waited for."""

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.changes.forecast_selectors import newest_session
from tidesched_web.changes.impact import answer_in_time, answer_of, answered_about, ask
from tidesched_web.changes.impact_sight import within_sight
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.server_check import server_check
from tidesched_web.changes.services.drafting import plan
from tidesched_web.changes.services.known_plan import known_impact, subject_of
from tidesched_web.changes.services.reviewed import Reviewed
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access
from tidesched_web.common.sentences import listed
from tidesched_web.jobs.models import Job
from tidesched_web.jobs.selectors import job_by_id

# An open page asks again where its answer is so old and a newer session has run.
_RENEWED_AFTER: Final = dt.timedelta(minutes=1)
_MOST_NAMES: Final = 6


def ask_impact(*, change: QuotaChange, access: Access, just_planned: bool = False) -> None:
    """``just_planned``: the change was drafted in this very request, so the plan that it has is that of now."""
    document = change.plan or {} if just_planned else plan(change=change, access=access)
    if change.state in QuotaChange.OPEN and document.get("objects") and not document.get("errors"):
        ask(change.cluster, document["objects"], access=access, subject=subject_of(change))


def shown_plan(*, change: QuotaChange, access: Access, impact: bool = False, server: bool = False) -> dict[str, Any]:
    """``impact``: wait a little for one that is being worked out. ``server``: ask the cluster too, by a dry run."""
    document = plan(change=change, access=access)
    whole = known_impact(change, document, wait=impact) if impact or (change.plan or {}).get("impact") else None
    errors = document.get("errors", [])
    asks = server and change.state in QuotaChange.OPEN and not errors
    answer = server_check(change.cluster, document.get("objects") or []) if asks else None
    found = None if whole is None else within_sight(whole, access, change.cluster_id)
    return document | {"impact": found, "server": answer}


def has_aged(job: Job | None) -> bool:
    at = None if job is None else job.finished_at or job.created_at
    return job is None or at is None or (at < timezone.now() - _RENEWED_AFTER and _is_behind(job))


def require_same_impact(change: QuotaChange, access: Access, seen: Reviewed | None) -> None:
    """Refuse what was decided by an answer that names other gangs than the one of now; without both, nothing is."""
    shown = job_by_id(seen.impact or 0) if seen is not None and seen.revision == change.revision else None
    if shown is None or shown.subject != subject_of(change) or change.state not in QuotaChange.OPEN:
        return
    objects = plan(change=change, access=access).get("objects") or ()
    if objects and _is_behind(shown):
        answer_in_time(ask(change.cluster, objects, access=access, subject=subject_of(change)))
    newest = answered_about(objects, subject=subject_of(change)) or shown
    then, now = (within_sight(answer_of(job), access, change.cluster_id) for job in (shown, newest))
    if then.get("unavailable") or now.get("unavailable"):
        return
    starts, loses = _moved(then, now, "gangs_run"), _moved(then, now, "gangs_lose", "reclaimed_next")
    words = {_("Would run at once"): starts, _("Would lose their place"): loses}
    if moved := " · ".join(f"{word}: {what}" for word, what in words.items() if what):
        text = _("Who would start or lose a place has changed since session %(then)s, which you looked at (%(moved)s).")
        raise DomainError("stale", text % {"then": then["session"], "moved": moved})


def _is_behind(job: Job) -> bool:
    newest = newest_session(job.cluster_id) if job.cluster_id is not None else None
    return newest is not None and newest.number > ((job.result or {}).get("session") or 0)


def _moved(then: Mapping[str, Any], now: Mapping[str, Any], *lists: str) -> str:
    before, after = ({row["gang"] for name in lists for row in answer.get(name) or ()} for answer in (then, now))
    # Those of other tenants count, and what a long list leaves out.
    had, has = (sum(answer["counts"].get(name, 0) for name in lists) for answer in (then, now))
    names = [*(f"+{gang}" for gang in sorted(after - before)), *(f"−{gang}" for gang in sorted(before - after))]
    rest = ["…"] if len(names) > _MOST_NAMES else []
    return listed([f"{had} → {has}", *names[:_MOST_NAMES], *rest]) if names or had != has else ""
