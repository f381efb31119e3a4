from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tidesched_web.accounts.models import Tenant
from tidesched_web.changes.removal_selectors import removals_of
from tidesched_web.console import amounts
from tidesched_web.console.edit_pages import delete_page, edit_page, quota_ways, removal_ways
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.owners import SearchFilter, TenantEditForm, TenantForm
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.owner_use import use_table
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import manages, need_admin_of, need_administrator
from tidesched_web.quota import services
from tidesched_web.quota.dependent_selectors import clusters_with_quota_of, dependents_of, edits_without_quota
from tidesched_web.quota.owner_selectors import business_lines_listed, projects_listed, tenants_listed
from tidesched_web.quota.selectors import limits_of, visible_queues, with_limits


@page(section="tenants")
def tenants(this: Page) -> HttpResponse:
    form = SearchFilter(this.request.GET)
    part = paged(form.apply(tenants_listed(this.access)), ("slug", "id"), this.request.GET.get("cursor", ""))
    return this.render("tenants/tenants.html", {"page": part, "form": form})


def tenant_of(this: Page, slug: str) -> Tenant:
    found: Tenant = get_object_or_404(with_limits(tenants_listed(this.access), "tenant"), slug=slug)
    return found


@page(section="tenants")
def tenant(this: Page, tenant: str) -> HttpResponse:
    found = tenant_of(this, tenant)
    names = {cluster.pk: cluster for cluster in this.clusters}
    limits = [{**limit, "cluster": names[limit["cluster"]]} for limit in limits_of(found) if limit["cluster"] in names]
    counts = found.queues_count, found.members_count  # type: ignore[attr-defined]  # annotated by the selector
    line = _("%(queues)s and %(members)s.") % {
        "queues": ngettext("%(n)s queue", "%(n)s queues", counts[0]) % {"n": amounts.number(counts[0])},
        "members": ngettext("%(n)s member", "%(n)s members", counts[1]) % {"n": amounts.number(counts[1])},
    }
    return this.render(
        "tenants/tenant.html",
        {
            "tenant": found,
            "line": line,
            "limits": limits,
            "use": use_table(visible_queues(this.access).filter(tenant=found), names, limits),
            "projects": list(projects_listed(this.access).filter(tenant=found).order_by("slug")[:200]),
            "lines": list(business_lines_listed(this.access).filter(tenant=found).order_by("slug")[:200]),
            "manages": manages(this.access, found.pk),
        },
    )


def _trail(*more: tuple[str, str]) -> list[tuple[str, str]]:
    return [(_("Tenants"), reverse("console:tenants")), *more]


@takes_forms
@page(section="tenants")
def tenant_new(this: Page) -> HttpResponse:
    need_administrator(this)
    form = TenantForm(this.request.POST or None)
    if this.request.method == "POST" and form.is_valid():
        values = form.values()
        if form.saved(services.create_tenant, **values, actor=this.access.actor):
            messages.success(this.request, _("Tenant %(name)s is made.") % {"name": values["name"]})
            return redirect("console:tenant", values["slug"])
    return edit_page(
        this, "tenants/edit.html", form, title=_("New tenant"), submit=_("Make the tenant"), trail=_trail()
    )


@takes_forms
@page(section="tenants")
def tenant_edit(this: Page, tenant: str) -> HttpResponse:
    found = tenant_of(this, tenant)
    need_admin_of(this, found.pk)
    start = {"name": found.name, "description": found.description, "version": found.version}
    form = TenantEditForm(this.request.POST or None, initial=start)
    if form.is_valid() and form.saved(services.update_owner, owner=found, **form.values(), actor=this.access.actor):
        messages.success(this.request, _("The changes are saved."))
        return redirect("console:tenant", found.slug)
    back = (found.name, reverse("console:tenant", args=[found.slug]))
    title = _("Edit %(name)s") % {"name": found.name}
    return edit_page(this, "tenants/edit.html", form, title=title, submit=_("Save"), trail=_trail(back))


@takes_forms
@page(section="tenants")
def tenant_delete(this: Page, tenant: str) -> HttpResponse:
    found = tenant_of(this, tenant)
    need_administrator(this)
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    if form.is_valid() and form.saved(services.delete_owner, owner=found, **form.values(), actor=this.access.actor):
        messages.success(this.request, _("Tenant %(name)s is deleted.") % {"name": found.name})
        return redirect("console:tenants")
    back = (found.name, reverse("console:tenant", args=[found.slug]))
    removals = removals_of(found)
    # Where it has queues, what takes them back takes back its quotas too.
    clusters = [] if removals else clusters_with_quota_of(found)
    return delete_page(
        this,
        form,
        title=_("Delete tenant %(name)s?") % {"name": found.name},
        submit=_("Delete the tenant"),
        trail=_trail(back),
        dependents=dependents_of(found),
        protected=[services.has_quotas(found, clusters).message] if clusters else [],
        ways=quota_ways(clusters, edits_without_quota(found)),
        removals=removal_ways(removals),
    )
