from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from tidesched_web.changes.documents import RULES
from tidesched_web.changes.tree_document import key_of
from tidesched_web.console.edit_pages import edit_page, trail_of
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.rules import RulesForm
from tidesched_web.console.intent import carried
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.rights import need_administrator
from tidesched_web.console.tenants import tenant_of


@takes_forms
@page(section="quota")
def rules(this: Page) -> HttpResponse:
    need_administrator(this)
    cluster = this.cluster
    start = {
        "overcommit_inference_percent": round(cluster.overcommit_inference * 100),
        "overcommit_training_percent": round(cluster.overcommit_training * 100),
        "approval_required": cluster.approval_required,
        "version": cluster.version,
    }
    form = RulesForm(this.request.POST or None, initial=start)
    done = _("The rules are saved and hold from now on.")
    if form.is_valid() and carried(this, form, {RULES: form.document()}, key=RULES, done=done):
        return redirect("console:quota_tree", cluster.slug)
    trail = trail_of(this, _("Quota tree"), "quota_tree")
    return edit_page(this, "rules/rules.html", form, title=_("Rules of the tree"), submit=_("Save"), trail=trail)


@takes_forms
@page(section="tenants")
def tenant_approval(this: Page, tenant: str) -> HttpResponse:
    found = tenant_of(this, tenant)
    need_administrator(this)
    asks = not found.approval_required
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    key = key_of("tenant", found.slug)
    edits = {key: {"approval_required": asks}}
    done = (
        _("From now on a second person has to approve each change of the quota of %(name)s.")
        if asks
        else _("Changes of the quota of %(name)s are applied without the approval of a second person from now on.")
    ) % {"name": found.name}
    if form.is_valid() and carried(this, form, edits, key=key, done=done):
        return redirect("console:tenant", found.slug)
    trail = [(_("Tenants"), reverse("console:tenants")), (found.name, reverse("console:tenant", args=[found.slug]))]
    text = _("Ask for approval in %(name)s?") if asks else _("No longer ask for approval in %(name)s?")
    return edit_page(
        this,
        "rules/approval.html",
        form,
        title=text % {"name": found.name},
        submit=_("Ask for approval") if asks else _("No longer ask"),
        trail=trail,
        asks=asks,
    )
