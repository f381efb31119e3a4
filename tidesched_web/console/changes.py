"""Changes of quota: the list, the review of one, and what people do with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.changes import services
from tidesched_web.changes.acts import Act, agrees_by_applying, allowed_actions, refusal, require_act
from tidesched_web.changes.ceiling_requests import NO_ROOM
from tidesched_web.changes.forecast_selectors import forecast_of, record_of
from tidesched_web.changes.impact import answer_of, answered_about, start_day_impact, within_sight
from tidesched_web.changes.inbox_selectors import approvers_of, tenants_of
from tidesched_web.changes.models import CarryState, ChangeObject, ChangeState, QuotaChange
from tidesched_web.changes.second_person import is_author
from tidesched_web.changes.selectors import objects_of, visible_changes, with_touched, writers_of
from tidesched_web.changes.server_check import server_check
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access
from tidesched_web.common.sentences import listed
from tidesched_web.console import amounts, change_words, forecast_view, impact_view
from tidesched_web.console.change_parts import FIGURES, OBJECTS, Part, part
from tidesched_web.console.export import csv_list, csv_response
from tidesched_web.console.forms.change import ApplyForm, ApproveForm, CancelForm, ChangeFilter, RejectForm
from tidesched_web.console.methods import acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import need_writer, writes
from tidesched_web.console.tide_reading import edited_plans, openings, plans_in_sight
from tidesched_web.jobs.models import Job, JobKind
from tidesched_web.jobs.selectors import earlier_answer, is_answered, job_by_id, newest_about, visible_job

OPEN = (ChangeState.DRAFT, ChangeState.WAITING, ChangeState.APPROVED)
# What was sent for at once has an hour so near to when it was sent.
A_MOMENT = dt.timedelta(minutes=1)


@page(section="changes", topics="changes")
def changes(this: Page) -> HttpResponse:
    """All changes of the cluster that the reader sees, the newest first."""
    form = ChangeFilter(this.request.GET)
    rows = with_touched(form.apply(visible_changes(this.access).filter(cluster=this.cluster)))
    if this.request.GET.get("format") == "csv":
        return csv_list(
            f"changes-{this.cluster.slug}",
            {
                "change": lambda row: row.pk,
                "state": lambda row: row.state,
                "objects": lambda row: row.touched,
                "source": lambda row: row.source,
                "created_by": lambda row: row.created_by,
                "created_at": lambda row: row.created_at.isoformat(),
                "approved_by": lambda row: row.approved_by,
                "applied_at": lambda row: row.applied_at.isoformat() if row.applied_at else "",
                "reason": lambda row: row.reason,
            },
            rows.iterator(chunk_size=100),
        )
    listed = paged(rows, ["-id"], this.request.GET.get("cursor", ""))
    for row in listed.rows:
        row.told = told_objects(row.touched_first, row.touched)
    return this.render(
        "changes/changes.html",
        {
            "page": listed,
            "rows": listed.rows,
            "form": form,
            "may_edit": writes(this.access),
            "record": forecast_view.record_line(record_of(this.access, this.cluster)),
        },
    )


def told_objects(first: Iterable[str], count: int) -> str:
    """What a change touches, in a few words: its first objects, and how many more there are of ``count``."""
    names = [" ".join(change_words.object_name(key)) for key in first]
    more = count - len(names)
    said = listed(names)
    if more > 0:
        said += " " + ngettext("and %(n)s more", "and %(n)s more", more) % {"n": amounts.number(more)}
    return said


def _change(this: Page, pk: int) -> QuotaChange:
    found = visible_changes(this.access).filter(cluster=this.cluster, pk=pk).first()
    if found is None:
        raise Http404
    services.take_turn(found)
    return found


def _plan(this: Page, change: QuotaChange) -> dict[str, Any]:
    """What it would do now, or did once it is written, as far as the reader may see it."""
    return services.shown_plan(change=change, access=this.access)


@page(section="changes", topics="changes")
def change(this: Page, pk: int) -> HttpResponse:
    """One change: what differs, what it would do, where it stands, and what can be done with it."""
    found = _change(this, pk)
    # A page that stands open follows the change by itself; its author may look elsewhere.
    if not getattr(this.request, "htmx", None):
        services.note_seen(change=found, access=this.access)
    return _page(this, found)


def _page(
    this: Page,
    found: QuotaChange,
    *,
    apply_form: ApplyForm | None = None,
    reject_form: RejectForm | None = None,
    approve_form: ApproveForm | None = None,
    cancel_form: CancelForm | None = None,
    stale: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    plan = _plan(this, found)
    reject_form = reject_form or RejectForm(prefix="reject")
    approve_form = approve_form or ApproveForm(prefix="approve")
    cancel_form = cancel_form or CancelForm(prefix="cancel")
    if apply_form is None:
        # An hour that is over was "at once" when it was sent.
        ahead = found.apply_at if found.apply_at and found.apply_at > timezone.now() else None
        at = ahead or [timezone.localtime().date(), None]
        apply_form = ApplyForm(initial={"reason": found.reason, "when": "at" if ahead else "now", "at": at})
    author = is_author(found, this.access)
    acts = allowed_actions(found, this.access)
    objects = plan.get("objects", ())
    is_open = found.committed_at is None and found.state in (*OPEN, ChangeState.FAILED)
    errors = [_error(error) for error in plan.get("errors", ())] if is_open else []
    fields = part(plan.get("fields", ()), this.request.GET.get("fields", ""), size=FIGURES)
    written = part(objects, this.request.GET.get("objects", ""), size=OBJECTS)
    due = bool(plan.get("approval", {}).get("due"))
    waits = found.state == ChangeState.WAITING
    # What has not arrived stands first.
    carried = sorted(objects_of(found), key=_arrived) if found.committed_at else []
    asked = part(change_words.asked_words(plan, found.base))
    # What is asked for may be sent while the cluster has no room for it.
    sendable = NO_ROOM if asked else frozenset()
    asks_impact = is_open and bool(objects) and not errors
    # What its author or anybody else was answered stands there until the question of this page is.
    answered = answered_about(objects, subject=_subject(found)) if asks_impact else None
    bad = any(form.is_bound and form.errors for form in (apply_form, reject_form, approve_form, cancel_form))
    return this.render(
        "changes/change.html",
        {
            "live_object": f"changes {found.pk}",
            "change": found,
            "tenants": sorted(tenants_of([found], this.access).values(), key=lambda tenant: tenant.slug),
            "plan": plan,
            "fields": change_words.fields_of_plan(fields.rows, base=found.base, edits=found.edits),
            "field_part": fields,
            "objects": change_words.objects_of_plan(written.rows),
            "object_part": written,
            "errors": errors,
            "blocks": (
                bool(plan.get("more_errors")) or any(error["code"] not in sendable for error in plan.get("errors", ()))
            )
            if is_open
            else False,
            "asked": asked,
            "more_errors": plan.get("more_errors", 0) if is_open else 0,
            "warnings": _told(plan.get("warnings", ()), _error) if is_open else None,
            "stale": _still(_moved(found, plan.get("stale", ()), this.access), found, plan) if is_open else None,
            "merged": _moved(found, plan.get("merged", ()), this.access) if is_open else None,
            "refused": stale,
            "edited": _told(stale.extra.get("edited_since", ()), _difference) if stale else None,
            "last_edit": _last_edit(found) if is_open and not author else None,
            "due": due and found.state != ChangeState.APPROVED,
            "why_due": why_due(this, plan),
            "carried": part(carried),
            "arrived": sum(map(_arrived, carried)),
            "apply_form": apply_form,
            "reject_form": reject_form,
            "approve_form": approve_form,
            "cancel_form": cancel_form,
            "waits_for": approvers_of(found, this.access) if waits else None,
            "zone": timezone.get_current_timezone_name(),
            "author": author,
            "acts": [act.value for act in acts],
            "approval_refused": _approval_refused(found, this.access) if waits and Act.APPROVE not in acts else "",
            "asks_impact": asks_impact,
            "openings": openings(this, found.edits) if is_open and not objects and not errors else [],
            "only_plan": _only_plan(this, found) if Act.EDIT in acts else "",
            "earlier": _answered(this, answered),
            "expected": _expected(found, plan),
            "came": _came(this, found),
            "approved_note": _approved_note(found, this.access, acts, due=due),
            "later": _has_hour(found),
            "undone_by": found.rolled_back_by.order_by("-id").first(),
        },
        status=stale.status if stale else 400 if bad else status,
    )


def _only_plan(this: Page, found: QuotaChange) -> str:
    """The tide plan that a change edits alone, where there is a page of it: it is no change of figures of the grid."""
    names = edited_plans(found.edits)
    return names[0] if len(names) == 1 and any(row.name == names[0] for row in plans_in_sight(this)) else ""


def _approval_refused(found: QuotaChange, access: Access) -> str:
    """Why the reader, who may change quota, is no second person for it; nothing where it is not theirs to decide."""
    refused = refusal(found, access, Act.APPROVE)
    return refused.message if refused is not None and refused.code == "approver_not_independent" else ""


def _has_hour(found: QuotaChange) -> bool:
    """Whether it is to be applied at an hour of its own; once it is closed, whether it was."""
    if found.apply_at is None:
        return False
    since = (found.submitted_at or found.created_at) + A_MOMENT if found.closed_by else timezone.now()
    return found.apply_at > since


def _approved_note(found: QuotaChange, access: Access, acts: Sequence[Act], *, due: bool) -> str:
    """What becomes of an approval where the reader applies the change at another hour than it was approved for."""
    if found.state != ChangeState.APPROVED:
        return ""
    if Act.APPLY not in acts:
        refused = refusal(found, access, Act.APPLY)
        return refused.message if refused is not None and writes(access) else ""
    if not due or found.apply_at is None:
        return ""
    if agrees_by_applying(found, access):
        return _(
            "Your approval counts for this change: applied by you at another hour, it is approved by you for that."
        )
    return _("It is approved for this hour and this reason: sent with others, it waits for a new approval.")


def _arrived(row: ChangeObject) -> bool:
    return row.state in (CarryState.APPLIED, CarryState.SKIPPED)


def _last_edit(found: QuotaChange) -> Part | None:
    """What its author edited last, for who looked at it before that."""
    if found.revision == 1:
        return None
    return _told(services.edited_since(found, found.revision - 1), lambda entry: _difference(entry.as_json()))


def _told(entries: Sequence[Any], say: Callable[[Any], dict[str, Any]]) -> Part:
    """The first of them in words, and how many more there are."""
    found = part(entries)
    return replace(found, rows=[say(entry) for entry in found.rows])


def _expected(found: QuotaChange, plan: dict[str, Any]) -> impact_view.ImpactView | None:
    """What was known of its effect when it was decided."""
    kept = plan.get("impact")
    return impact_view.view_of(kept) if found.state not in OPEN and kept and not kept.get("unavailable") else None


def _came(this: Page, found: QuotaChange) -> forecast_view.ForecastView | None:
    """What came of it beside what was expected."""
    shown = forecast_of(found, this.access) if found.committed_at else None
    return forecast_view.forecast_view(shown) if shown is not None and (shown.rows or shown.hidden) else None


def why_due(this: Page, plan: Mapping[str, Any]) -> list[str]:
    """Who demands a second person, by the names that people gave them."""
    why = [one for one in plan.get("approval", {}).get("why", ()) if one["kind"] != "ceiling"]
    slugs = [one["name"] for one in why if one["kind"] == "tenant"]
    names = dict(visible_tenants(this.access).filter(slug__in=slugs).values_list("slug", "name")) if slugs else {}
    called = [names.get(one["name"], one["name"]) if one["kind"] == "tenant" else this.cluster.name for one in why]
    return [f"{change_words.WHOSE[one['kind']]} {name}" for one, name in zip(why, called, strict=True)]


def _error(error: dict[str, Any]) -> dict[str, Any]:
    kind, name = change_words.object_name(error["object"]) if error.get("object") else ("", "")
    return {
        "kind": kind,
        "name": name,
        "field": change_words.field_name(error.get("field", "")),
        "detail": error["detail"],
        # Of cards the sentence says it itself, with what is in use.
        "sibling": None if "card_quota" in error.get("field", "") else error.get("sibling"),
    }


def _moved(found: QuotaChange, entries: Sequence[dict[str, Any]], access: Access) -> Part:
    """What others changed since it was made, each with the change that did it, as far as the reader sees it."""
    writers = writers_of(found, part(entries).rows, access)
    return _told(entries, lambda entry: _difference(entry) | {"writer": writers.get((entry["object"], entry["field"]))})


def _still(moved: Part, found: QuotaChange, plan: Mapping[str, Any]) -> Part:
    """Beside what others set, what this change still sets, and how far that is from what is there now."""
    wanted = {(one["object"], one["field"]): one for one in plan.get("fields", ())}
    rows = []
    for row, entry in zip(moved.rows, plan.get("stale", ()), strict=False):
        mine = wanted.get((entry["object"], entry["field"]))
        gone = found.edits.get(entry["object"], {}) is None
        if gone:
            still = _("deleted")
        elif mine is None:
            still = _("%(figure)s, as it is now") % {"figure": row["after"]}
        else:
            still = change_words.set_words(mine)
        rows.append(row | {"still": still, "gone": gone})
    return replace(moved, rows=rows)


def _difference(entry: dict[str, Any]) -> dict[str, str]:
    kind, name = change_words.object_name(entry["object"])
    return {
        "kind": kind,
        "name": name,
        "field": change_words.field_name(entry["field"]),
        "before": change_words.figure(entry["field"], entry["before"]),
        "after": change_words.figure(entry["field"], entry["after"]),
    }


# --- what people do with it -------------------------------------------------------------------------------------------


@acts_by_post
@page(section="changes")
def change_act(this: Page, pk: int, verb: str) -> HttpResponse:
    """Apply, approve, reject, cancel, retry, accept what moved, or roll back."""
    found = _change(this, pk)
    need_writer(this)
    try:
        return _act(this, found, verb)
    except DomainError as error:
        if error.code == "not_found":
            raise Http404 from None
        typed = _typed(this, verb)
        if error.code == "stale":
            return _page(this, _change(this, pk), stale=error, **typed)
        messages.error(this.request, error.message)
        if typed:
            return _page(this, _change(this, pk), status=error.status, **typed)
        return redirect("console:change", this.cluster.slug, found.pk)


def _typed(this: Page, verb: str) -> dict[str, Any]:
    """The form that was sent: what is refused keeps what was typed."""
    if verb == "apply":
        return {"apply_form": ApplyForm(this.request.POST)}
    if verb == "approve" and this.request.POST.get("approve-reason"):
        return {"approve_form": ApproveForm(this.request.POST, prefix=verb)}
    if verb == "cancel" and this.request.POST.get("cancel-reason"):
        return {"cancel_form": CancelForm(this.request.POST, prefix=verb)}
    return {"reject_form": RejectForm(this.request.POST, prefix=verb)} if verb == "reject" else {}


def _reviewed(this: Page) -> services.Reviewed:
    """Which revision of the change stood on the page whose button was pressed."""
    text = this.request.POST.get("revision", "")
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise DomainError(
            "precondition_required", _("This page is out of date: look at the change again, then decide.")
        )
    return services.Reviewed(revision=int(text))


def _act(this: Page, found: QuotaChange, verb: str) -> HttpResponse:
    access, back = this.access, redirect("console:change", this.cluster.slug, found.pk)
    seen = _reviewed(this)
    match verb:
        case "apply":
            form = ApplyForm(this.request.POST)
            if not form.is_valid():
                return _page(this, found, apply_form=form)
            services.apply(
                change=found, access=access, at=_hour(found, form), reason=form.cleaned_data["reason"], seen=seen
            )
        case "approve":
            agreed = ApproveForm(this.request.POST, prefix=verb)
            if not agreed.is_valid():
                _say_errors(this, found, Act.APPROVE, agreed)
                return _page(this, found, approve_form=agreed)
            services.approve(change=found, access=access, reason=agreed.cleaned_data["reason"], seen=seen)
        case "cancel":
            given_up = CancelForm(this.request.POST, prefix=verb)
            if not given_up.is_valid():
                _say_errors(this, found, Act.CANCEL, given_up)
                return _page(this, found, cancel_form=given_up)
            services.cancel(change=found, access=access, reason=given_up.cleaned_data["reason"], seen=seen)
            messages.success(this.request, _("Change %(n)s is cancelled.") % {"n": found.pk})
        case "retry":
            services.retry(change=found, access=access, seen=seen)
        case "rebase":
            services.edit_draft(change=found, access=access, rebase=True, seen=seen)
        case "reject":
            reason = RejectForm(this.request.POST, prefix=verb)
            if not reason.is_valid():
                _say_errors(this, found, Act.REJECT, reason)
                return _page(this, found, reject_form=reason)
            services.reject(change=found, access=access, reason=reason.cleaned_data["reason"], seen=seen)
        case "rollback":
            made = services.roll_back(change=found, access=access, seen=seen)
            return redirect("console:change", this.cluster.slug, made.pk)
        case _:
            raise Http404
    return back


def _say_errors(this: Page, found: QuotaChange, act: Act, form: ApproveForm | CancelForm | RejectForm) -> None:
    """Say what is wrong with a form above the page, where the page of this change does not show that form."""
    require_act(found, this.access, act)
    own = act == Act.REJECT and is_author(found, this.access)
    if act != Act.CANCEL and (found.state != ChangeState.WAITING or own):
        for name, errors in form.errors.items():
            messages.error(this.request, f"{form[name].label} {' '.join(map(str, errors))}")


def _hour(found: QuotaChange, form: ApplyForm) -> dt.datetime:
    """When to apply it: now, also where a later hour was set before; the form knows an hour to the minute."""
    if form.cleaned_data["when"] != "at":
        return timezone.now()
    at: dt.datetime = form.cleaned_data["at"]
    kept = found.apply_at
    return kept if kept is not None and kept.replace(second=0, microsecond=0) == at else at


# --- impact -----------------------------------------------------------------------------------------------------------


@takes_forms
@page()
def change_impact(this: Page, pk: int) -> HttpResponse:
    """What the next session would do otherwise: a POST puts the question, a GET looks for the answer."""
    found = _change(this, pk)
    if (other := _other_revision(this, found)) is not None:
        return other
    if this.request.method == "POST":
        services.ask_impact(change=found, access=this.access)
    number = this.request.GET.get("job", "")
    job = (
        visible_job(this.access, this.user, int(number))
        if number.isascii() and number.isdigit() and len(number) < 15
        else None
    )
    if job is not None and job.subject == _subject(found):
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
    """What is shown until the answer is there: since when it is asked, and what was answered before."""
    earlier, asked = _earlier(this, impact), job_by_id(impact.get("job") or 0)
    return {
        "earlier": earlier,
        "asked_at": asked.created_at if asked else None,
        "first": earlier is None and not is_answered(JobKind.IMPACT, this.cluster.pk),
    }


def _earlier(this: Page, impact: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was answered to the same question before, while it is asked anew."""
    return _answered(this, earlier_answer(impact.get("job") or 0))


def _answered(this: Page, job: Job | None) -> dict[str, Any] | None:
    if job is None or (job.result or {}).get("unavailable"):
        return None
    known = within_sight(answer_of(job), this.access, this.cluster.pk)
    return {"view": impact_view.view_of(known), "impact": known, "at": job.finished_at}


def _other_revision(this: Page, found: QuotaChange) -> HttpResponse | None:
    """What stands in the place of a part of the page that was opened for another revision than there is now."""
    opened = this.request.GET.get("revision", "")
    if opened in ("", str(found.revision)):
        return None
    return this.render("changes/other_revision.html", {"change": found})


@page()
def change_server(this: Page, pk: int) -> HttpResponse:
    """What the cluster would refuse of the change, by a dry run of each object."""
    found = _change(this, pk)
    if (other := _other_revision(this, found)) is not None:
        return other
    plan = services.shown_plan(change=found, access=this.access)
    sound = found.state in OPEN and not plan.get("errors")
    answer = server_check(this.cluster, plan.get("objects") or []) if sound else None
    return this.render("changes/server.html", {"answer": answer, "change": found})


def _subject(found: QuotaChange) -> str:
    return f"change:{found.pk}"


@takes_forms
@page()
def change_day(this: Page, pk: int) -> HttpResponse:
    """The same over the recorded sessions of the last day: a job that is started here, and how far it is."""
    found = _change(this, pk)
    if (other := _other_revision(this, found)) is not None:
        return other
    job = newest_about(this.access, this.user, _subject(found), JobKind.IMPACT_DAY)
    if this.request.method == "POST":
        need_writer(this)
        job = start_day_impact(
            this.cluster, _plan(this, found).get("objects", ()), access=this.access, subject=_subject(found)
        )
    view = _day_view(this, job)
    # The figures of now, of which the day was tried with the objects that they make.
    earlier = view is not None and job is not None and job.params.get("objects") != _plan(this, found).get("objects")
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
