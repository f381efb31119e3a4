from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import BusinessLine
from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.console.edit_pages import delete_page, edit_page
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.owners import PLATFORM, NameForm, OfTenantFilter, ProjectForm
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import manages, need_admin_of
from tidesched_web.quota import services
from tidesched_web.quota.dependent_selectors import dependents_of
from tidesched_web.quota.owner_selectors import business_lines_listed, tenants_managed


@page(section="business_lines")
def business_lines(this: Page) -> HttpResponse:
    tenants = list(visible_tenants(this.access).order_by("slug")[:500])
    form = OfTenantFilter(this.request.GET, tenants, platform=this.access.everything)
    part = paged(form.apply(business_lines_listed(this.access)), ("slug", "id"), this.request.GET.get("cursor", ""))
    for row in part.rows:
        row.managed = manages(this.access, row.tenant_id)
    makes = this.access.administers or any(manages(this.access, tenant.pk) for tenant in tenants)
    return this.render("business_lines/business_lines.html", {"page": part, "form": form, "makes": makes})


def _line(this: Page, pk: int) -> BusinessLine:
    found = get_object_or_404(business_lines_listed(this.access), pk=pk)
    need_admin_of(this, found.tenant_id)
    return found


def _trail() -> list[tuple[str, str]]:
    return [(_("Business lines"), reverse("console:business_lines"))]


@takes_forms
@page(section="business_lines")
def business_line_new(this: Page) -> HttpResponse:
    tenants, platform = list(tenants_managed(this.access)), this.access.administers
    start = {"tenant": this.request.GET.get("tenant", PLATFORM if platform and not tenants else "")}
    form = ProjectForm(this.request.POST or None, tenants=tenants, platform=platform, initial=start)
    if this.request.method == "POST" and form.is_valid():
        values = form.values()
        need_admin_of(this, values["tenant"].pk if values["tenant"] else None)
        if form.saved(services.create_business_line, **values, actor=this.access.actor):
            name = values["name"] or values["slug"]
            messages.success(this.request, _("Business line %(name)s is made.") % {"name": name})
            return redirect("console:business_lines")
    return edit_page(
        this,
        "business_lines/edit.html",
        form,
        title=_("New business line"),
        submit=_("Make the business line"),
        trail=_trail(),
        missing=not tenants and not platform,
    )


@takes_forms
@page(section="business_lines")
def business_line_edit(this: Page, pk: int) -> HttpResponse:
    found = _line(this, pk)
    form = NameForm(this.request.POST or None, initial={"name": found.name, "version": found.version})
    if form.is_valid() and form.saved(services.update_owner, owner=found, **form.values(), actor=this.access.actor):
        messages.success(this.request, _("The changes are saved."))
        return redirect("console:business_lines")
    title = _("Edit %(name)s") % {"name": found.name}
    return edit_page(this, "business_lines/edit.html", form, title=title, submit=_("Save"), trail=_trail())


@takes_forms
@page(section="business_lines")
def business_line_delete(this: Page, pk: int) -> HttpResponse:
    found = _line(this, pk)
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    if form.is_valid() and form.saved(services.delete_owner, owner=found, **form.values(), actor=this.access.actor):
        messages.success(this.request, _("Business line %(name)s is deleted.") % {"name": found.name})
        return redirect("console:business_lines")
    return delete_page(
        this,
        form,
        title=_("Delete business line %(name)s?") % {"name": found.name},
        submit=_("Delete the business line"),
        trail=_trail(),
        dependents=dependents_of(found),
    )
