import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.changes import services
from tidesched_web.changes.acts import Act, agrees_by_applying, allowed_actions, refusal, require_act
from tidesched_web.changes.forecast_selectors import forecast_of
from tidesched_web.changes.impact import answered_about
from tidesched_web.changes.inbox_selectors import approvers_of, tenants_of
from tidesched_web.changes.models import CarryState, ChangeObject, ChangeState, QuotaChange
from tidesched_web.changes.second_person import is_author
from tidesched_web.changes.selectors import objects_of, writers_of
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access
from tidesched_web.console import change_words, forecast_view, impact_view
from tidesched_web.console.change_impact import turns_plans
from tidesched_web.console.change_parts import FIGURES, OBJECTS, Part, part
from tidesched_web.console.change_reading import answer_shown, blocks, change_of, is_number, plan_of
from tidesched_web.console.forms.change import ApplyForm, DecisionForm
from tidesched_web.console.methods import acts_by_post
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_writer, writes
from tidesched_web.console.tide_reading import plan_editor

# What was sent for at once has an hour so near to when it was sent.
A_MOMENT = dt.timedelta(minutes=1)


@page(section="changes", topics="changes sessions")
def change(this: Page, pk: int) -> HttpResponse:
    found = change_of(this, pk)
    # A page that stands open follows the change by itself; its author may look elsewhere.
    if not getattr(this.request, "htmx", None):
        services.note_seen(change=found, access=this.access)
    return change_page(this, found)


def change_page(
    this: Page,
    found: QuotaChange,
    *,
    apply_form: ApplyForm | None = None,
    reject_form: DecisionForm | None = None,
    approve_form: DecisionForm | None = None,
    cancel_form: DecisionForm | None = None,
    stale: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    plan = plan_of(this, found)
    forms = {
        "apply_form": apply_form or _apply_form(found),
        "reject_form": reject_form or DecisionForm("reject"),
        "approve_form": approve_form or DecisionForm("approve"),
        "cancel_form": cancel_form or DecisionForm("cancel"),
    }
    bad = any(form.is_bound and form.errors for form in forms.values())
    return this.render(
        "changes/change.html",
        {
            **forms,
            **_planned(this, found, plan),
            **_decided(this, found, plan),
            "live_object": f"changes {found.pk}",
            "change": found,
            "plan": plan,
            "refused": stale,
            "edited": _told(stale.extra.get("edited_since", ()), _difference) if stale else None,
            "zone": timezone.get_current_timezone_name(),
        },
        status=stale.status if stale else 400 if bad else status,
    )


def _apply_form(found: QuotaChange) -> ApplyForm:
    # An hour that is over was "at once" when it was sent.
    ahead = found.apply_at if found.apply_at and found.apply_at > timezone.now() else None
    at = ahead or [timezone.localtime().date(), None]
    return ApplyForm(initial={"reason": found.reason, "when": "at" if ahead else "now", "at": at})


def _planned(this: Page, found: QuotaChange, plan: dict[str, Any]) -> dict[str, Any]:
    objects = plan.get("objects", ())
    is_open = _is_open(found)
    errors = [_error(error) for error in plan.get("errors", ())] if is_open else []
    fields = part(plan.get("fields", ()), this.request.GET.get("fields", ""), size=FIGURES)
    written = part(objects, this.request.GET.get("objects", ""), size=OBJECTS)
    asked = part(change_words.asked_words(plan, found.base))
    asks_impact = is_open and bool(objects) and not errors
    # What its author or anybody else was answered stands there until the question of this page is.
    answered = answered_about(objects, subject=services.subject_of(found)) if asks_impact else None
    return {
        "fields": change_words.fields_of_plan(fields.rows, base=found.base, edits=found.edits),
        "field_part": fields,
        "objects": change_words.objects_of_plan(written.rows),
        "object_part": written,
        "errors": errors,
        "blocks": is_open and blocks(plan),
        "asked": asked,
        "more_errors": plan.get("more_errors", 0) if is_open else 0,
        "warnings": _told(plan.get("warnings", ()), _error) if is_open else None,
        "stale": _still(_moved(found, plan.get("stale", ()), this.access), found, plan) if is_open else None,
        "merged": _moved(found, plan.get("merged", ()), this.access) if is_open else None,
        "asks_impact": asks_impact,
        "turns_plans": turns_plans(found),
        "earlier": answer_shown(this, answered),
        "expected": _expected(found, plan),
        "came": _came(this, found),
    }


def _decided(this: Page, found: QuotaChange, plan: dict[str, Any]) -> dict[str, Any]:
    author = is_author(found, this.access)
    acts = allowed_actions(found, this.access)
    due = bool(plan.get("approval", {}).get("due"))
    waits = found.state == ChangeState.WAITING
    carried = sorted(objects_of(found), key=_arrived) if found.committed_at else []
    return {
        "tenants": sorted(tenants_of([found], this.access).values(), key=lambda tenant: tenant.slug),
        "last_edit": _last_edit(found) if _is_open(found) and not author else None,
        "due": due and found.state != ChangeState.APPROVED,
        "why_due": why_due(this, plan),
        "carried": part(carried),
        "arrived": sum(map(_arrived, carried)),
        "waits_for": approvers_of(found, this.access) if waits else None,
        "author": author,
        "acts": [act.value for act in acts],
        "approval_refused": _approval_refused(found, this.access) if waits and Act.APPROVE not in acts else "",
        "only_plan": plan_editor(this, found) if Act.EDIT in acts else "",
        "approved_note": _approved_note(found, this.access, acts, due=due),
        "later": _has_hour(found),
        "undone_by": found.rolled_back_by.order_by("-id").first(),
    }


def _is_open(found: QuotaChange) -> bool:
    return found.committed_at is None and found.state in (*QuotaChange.OPEN, ChangeState.FAILED)


def _approval_refused(found: QuotaChange, access: Access) -> str:
    refused = refusal(found, access, Act.APPROVE)
    return refused.message if refused is not None and refused.code == "approver_not_independent" else ""


def _has_hour(found: QuotaChange) -> bool:
    if found.apply_at is None:
        return False
    since = (found.submitted_at or found.created_at) + A_MOMENT if found.closed_by else timezone.now()
    return found.apply_at > since


def _approved_note(found: QuotaChange, access: Access, acts: Sequence[Act], *, due: bool) -> str:
    if found.state != ChangeState.APPROVED:
        return ""
    if Act.APPLY not in acts:
        refused = refusal(found, access, Act.APPLY)
        return refused.message if refused is not None and writes(access) else ""
    if not due or not _has_hour(found):
        return ""
    if agrees_by_applying(found, access):
        return _(
            "Your approval counts for this change: applied by you at another hour, it is approved by you for that."
        )
    return _("It is approved for this hour and this reason: sent with others, it waits for a new approval.")


def _arrived(row: ChangeObject) -> bool:
    return row.state in (CarryState.APPLIED, CarryState.SKIPPED)


def _last_edit(found: QuotaChange) -> Part | None:
    if found.revision == 1:
        return None
    return _told(services.edited_since(found, found.revision - 1), lambda entry: _difference(entry.as_json()))


def _told(entries: Sequence[Any], say: Callable[[Any], dict[str, Any]]) -> Part:
    found = part(entries)
    return replace(found, rows=[say(entry) for entry in found.rows])


def _expected(found: QuotaChange, plan: dict[str, Any]) -> impact_view.ImpactView | None:
    kept = plan.get("impact")
    return (
        impact_view.view_of(kept)
        if found.state not in QuotaChange.OPEN and kept and not kept.get("unavailable")
        else None
    )


def _came(this: Page, found: QuotaChange) -> forecast_view.ForecastView | None:
    shown = forecast_of(found, this.access) if found.committed_at else None
    return forecast_view.forecast_view(shown) if shown is not None and (shown.rows or shown.hidden) else None


def why_due(this: Page, plan: Mapping[str, Any]) -> list[str]:
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
    writers = writers_of(found, part(entries).rows, access)
    return _told(entries, lambda entry: _difference(entry) | {"writer": writers.get((entry["object"], entry["field"]))})


def _still(moved: Part, found: QuotaChange, plan: Mapping[str, Any]) -> Part:
    if not moved:
        return moved
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
    return {"kind": change_words.object_name(entry["object"])[0]} | change_words.figure_words(entry)


@acts_by_post
@page(section="changes")
def change_act(this: Page, pk: int, verb: str) -> HttpResponse:
    found = change_of(this, pk)
    need_writer(this)
    try:
        return _act(this, found, verb)
    except DomainError as error:
        if error.code == "not_found":
            raise Http404 from None
        typed = _typed(this, verb)
        if error.code == "stale":
            return change_page(this, change_of(this, pk), stale=error, **typed)
        messages.error(this.request, error.message)
        if typed:
            return change_page(this, change_of(this, pk), status=error.status, **typed)
        return redirect("console:change", this.cluster.slug, found.pk)


def _typed(this: Page, verb: str) -> dict[str, Any]:
    if verb == "apply":
        return {"apply_form": ApplyForm(this.request.POST)}
    if verb in ("approve", "cancel") and this.request.POST.get(f"{verb}-reason"):
        return {f"{verb}_form": DecisionForm(verb, this.request.POST)}
    return {"reject_form": DecisionForm(verb, this.request.POST)} if verb == "reject" else {}


def _reviewed(this: Page) -> services.Reviewed:
    text = this.request.POST.get("revision", "")
    if not is_number(text):
        raise DomainError(
            "precondition_required", _("This page is out of date: look at the change again, then decide.")
        )
    # Asked once more, not for ever: in a busy cluster the answer is another one each time.
    shown = "" if "asked_again" in this.request.POST else this.request.POST.get("seen_impact", "")
    return services.Reviewed(revision=int(text), impact=int(shown) if is_number(shown) else None)


def _act(this: Page, found: QuotaChange, verb: str) -> HttpResponse:
    access, back = this.access, redirect("console:change", this.cluster.slug, found.pk)
    seen = _reviewed(this)
    match verb:
        case "apply":
            form = ApplyForm(this.request.POST)
            if not form.is_valid():
                return change_page(this, found, apply_form=form)
            services.apply(
                change=found, access=access, at=_hour(found, form), reason=form.cleaned_data["reason"], seen=seen
            )
        case "approve" | "cancel" | "reject":
            decision = DecisionForm(verb, this.request.POST)
            if not decision.is_valid():
                _say_errors(this, found, Act(verb), decision)
                typed: dict[str, Any] = {f"{verb}_form": decision}
                return change_page(this, found, **typed)
            decide = {"approve": services.approve, "cancel": services.cancel, "reject": services.reject}[verb]
            decide(change=found, access=access, reason=decision.cleaned_data["reason"], seen=seen)
            if verb == "cancel":
                messages.success(this.request, _("Change %(n)s is cancelled.") % {"n": found.pk})
        case "retry":
            services.retry(change=found, access=access, seen=seen)
        case "unschedule":
            services.edit_draft(change=found, access=access, apply_at=None, seen=seen)
            messages.success(
                this.request, _("Its time is taken back: it is a draft again, and nothing is applied by itself.")
            )
        case "rebase":
            services.edit_draft(change=found, access=access, rebase=True, seen=seen)
        case "rollback":
            made = services.roll_back(change=found, access=access, seen=seen)
            return redirect("console:change", this.cluster.slug, made.pk)
        case _:
            raise Http404
    return back


def _say_errors(this: Page, found: QuotaChange, act: Act, form: DecisionForm) -> None:
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
