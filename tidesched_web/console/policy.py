from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tidesched_web.changes import impact
from tidesched_web.clusters import services
from tidesched_web.clusters.models import PolicyRevision
from tidesched_web.clusters.selectors import newest_usable, ruling_policy, visible_policies
from tidesched_web.console.differences import text_lines
from tidesched_web.console.edit_pages import edit_page, trail_of
from tidesched_web.console.forms.edit import EditForm, ReasonForm, reason_field
from tidesched_web.console.methods import acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.policy_trial import told
from tidesched_web.console.policy_words import policy_words, turned
from tidesched_web.console.rights import need_administrator
from tidesched_web.engine.demo import FOUNDING_POLICY
from tidesched_web.engine.policy_check import policy_findings
from tidesched_web.jobs.models import JobKind
from tidesched_web.jobs.selectors import newest_about

CHECK, APPLY = "check", "apply"
MOST = 200_000


class PolicyForm(EditForm):
    text = forms.CharField(
        label="volcano-scheduler.conf",
        max_length=MOST,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "class": "form-control code", "wrap": "off", "spellcheck": "false"}),
        help_text=gettext_lazy("Actions in order, and tiers of plugins with their arguments, in Volcano's own format."),
    )
    reason = reason_field(required=False)
    act = forms.ChoiceField(choices=[(CHECK, CHECK), (APPLY, APPLY)], widget=forms.HiddenInput, required=False)

    def clean_text(self) -> str:
        """A browser sends line ends of its own; a file ends with one."""
        text = str(self.cleaned_data["text"]).replace("\r\n", "\n").replace("\r", "\n")
        return text if text.endswith("\n") else text + "\n"

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        if values.get("act") == APPLY and not values.get("reason", "").strip():
            self.add_error("reason", _("Say why: the reason goes into the audit log."))
        return values


def _revisions(this: Page) -> list[PolicyRevision]:
    return list(visible_policies(this.access).filter(cluster=this.cluster).order_by("-number")[:20])


@takes_forms
@page(section="policy")
def policy(this: Page) -> HttpResponse:
    cluster, revisions = this.cluster, _revisions(this)
    ruling = newest_usable(revisions)
    newest = revisions[0].number if revisions else 0
    start = {"text": ruling.text if ruling else FOUNDING_POLICY, "version": newest}
    form = PolicyForm(this.request.POST or None, initial=start)
    checked: dict[str, Any] = {}
    if this.request.method == "POST":
        need_administrator(this)
        valid = form.is_valid()
        values = dict(form.cleaned_data) if form.is_bound else {}  # a refusal takes its field out of the form's own
        said = _("The policy is stored. Sessions run under it now, but send nothing until you release it.")
        if valid and values["act"] == APPLY and _set(this, form, values["text"], said):
            return redirect("console:policy", cluster.slug)
        if "text" in values:
            checked = _checked(this, values["text"], ruling, ask=valid and values["act"] != APPLY)
    findings = checked.get("findings", policy_findings(ruling.text) if ruling else [])
    return this.render(
        "policy/policy.html",
        {
            "form": form,
            "ruling": ruling,
            "revisions": revisions,
            "checked": checked,
            "findings": findings,
            "words": policy_words(ruling.text) if ruling else None,
            "history": len(revisions) == 20,
        },
        status=form.refused_as,
    )


def _set(this: Page, form: EditForm, text: str, said: str) -> bool:
    reason, version = form.cleaned_data["reason"].strip(), form.cleaned_data["version"]
    given = {"cluster": this.cluster, "text": text, "reason": reason, "version": version, "actor": this.access.actor}
    done = form.saved(services.set_policy, **given)
    if done:
        messages.success(this.request, said)
    return done


def _checked(this: Page, text: str, ruling: PolicyRevision | None, *, ask: bool) -> dict[str, Any]:
    """The trial is a question to a worker: a text that was not applied (``ask`` is false) puts none."""
    findings = policy_findings(text)
    broken = any(finding["severity"] == "error" for finding in findings)
    lines = text_lines(ruling.text if ruling else "", text)
    found: dict[str, Any] = {"findings": findings, "lines": lines, "broken": broken, "same": not lines and not broken}
    if not lines or broken:
        return found
    subject = f"policy:{this.cluster.pk}:{this.user.pk}"
    if ask:
        impact.start_day_impact(this.cluster, (), access=this.access, policy_text=text, subject=subject)
    job = newest_about(this.access, this.user, subject, JobKind.IMPACT_DAY)
    known = told(job) if job is not None and job.params["policy"] == text else {}
    return {**found, "turn": turned(ruling.text if ruling else "", text), **known}


def _revision(this: Page, number: int) -> PolicyRevision:
    return get_object_or_404(visible_policies(this.access), cluster=this.cluster, number=number)


def _trail(this: Page) -> list[tuple[str, str]]:
    return trail_of(this, _("Policy"), "policy")


@page(section="policy")
def policies(this: Page) -> HttpResponse:
    rows = visible_policies(this.access).filter(cluster=this.cluster)
    part = paged(rows, ("-number",), this.request.GET.get("cursor", ""))
    return this.render("policy/policies.html", {"page": part, "trail": _trail(this)})


@page(section="policy")
def policy_revision(this: Page, number: int) -> HttpResponse:
    found = _revision(this, number)
    rows = visible_policies(this.access).filter(cluster=this.cluster)
    before = rows.filter(number__lt=number).order_by("-number").first()
    ruling = ruling_policy(this.cluster)
    return this.render(
        "policy/revision.html",
        {
            "revision": found,
            "before": before,
            "lines": text_lines(before.text if before else "", found.text),
            "rules": ruling is not None and ruling.pk == found.pk,
            "trail": _trail(this),
        },
    )


@takes_forms
@page(section="policy")
def policy_roll_back(this: Page, number: int) -> HttpResponse:
    found = _revision(this, number)
    need_administrator(this)
    revisions = _revisions(this)
    newest = revisions[0]
    form = ReasonForm(this.request.POST or None, initial={"version": newest.number})
    said = _("Revision %(number)s is back.") % {"number": found.number}
    if this.request.method == "POST" and form.is_valid() and _set(this, form, found.text, said):
        return redirect("console:policy", this.cluster.slug)
    ruling = newest_usable(revisions)
    return edit_page(
        this,
        "policy/roll_back.html",
        form,
        title=_("Go back to revision %(number)s?") % {"number": found.number},
        submit=_("Go back"),
        trail=_trail(this),
        lines=text_lines(ruling.text if ruling else "", found.text),
    )


@acts_by_post
@page(section="policy")
def policy_release(this: Page, number: int) -> HttpResponse:
    found = _revision(this, number)
    need_administrator(this)
    if services.release_policy(revision=found, actor=this.access.actor):
        text = _("The policy is released: from the next session on, what it decides is sent.")
        messages.success(this.request, text)
    else:
        messages.info(this.request, _("It was released already."))
    return redirect("console:policy", this.cluster.slug)
