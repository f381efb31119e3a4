import datetime as dt
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from tidesched_web.changes import services
from tidesched_web.changes.acts import Act, require_act
from tidesched_web.changes.models import ChangeState, QuotaChange
from tidesched_web.changes.second_person import is_author
from tidesched_web.common.errors import DomainError
from tidesched_web.console.change_page import change_page
from tidesched_web.console.change_reading import change_of
from tidesched_web.console.forms.change import ApplyForm, DecisionForm
from tidesched_web.console.methods import acts_by_post
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_writer


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
