from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from tidesched_web.accounts.models import BusinessLine, Project
from tidesched_web.accounts.selectors import visible_tenants
from tidesched_web.changes.removal_selectors import removals_of
from tidesched_web.changes.services import remove_project
from tidesched_web.common.errors import DomainError
from tidesched_web.console.edit_pages import delete_page, edit_page, quota_ways, removal_ways
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.owners import PLATFORM, NameForm, OfTenantFilter, ProjectForm
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.owner_use import use_table
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import manages, need_admin_of
from tidesched_web.quota import services
from tidesched_web.quota.dependent_selectors import clusters_with_quota_of, dependents_of, edits_without_quota
from tidesched_web.quota.owner_selectors import business_lines_listed, projects_listed, tenants_managed
from tidesched_web.quota.selectors import limits_of, visible_queues, with_limits


@page(section="projects")
def projects(this: Page) -> HttpResponse:
    tenants = list(visible_tenants(this.access).order_by("slug")[:500])
    form = OfTenantFilter(this.request.GET, tenants)
    rows = form.apply(projects_listed(this.access))
    part = paged(rows, ("tenant_id", "slug", "id"), this.request.GET.get("cursor", ""))
    makes = any(manages(this.access, tenant.pk) for tenant in tenants)
    return this.render("projects/projects.html", {"page": part, "form": form, "tenants": tenants, "makes": makes})


def project_of(this: Page, tenant: str, slug: str) -> Project:
    rows = with_limits(projects_listed(this.access), "project")
    found: Project = get_object_or_404(rows, tenant__slug=tenant, slug=slug)
    return found


def _trail(found: Project | None = None, *, itself: bool = False) -> list[tuple[str, str]]:
    trail = [(_("Projects"), reverse("console:projects"))]
    if found is not None:
        trail.append((found.tenant.name, reverse("console:tenant", args=[found.tenant.slug])))
    if found is not None and itself:
        trail.append((found.name, reverse("console:project", args=[found.tenant.slug, found.slug])))
    return trail


@page(section="projects")
def project(this: Page, tenant: str, project: str) -> HttpResponse:
    found = project_of(this, tenant, project)
    clusters = {cluster.pk: cluster for cluster in this.clusters}
    limits = [row | {"cluster": clusters[row["cluster"]]} for row in limits_of(found) if row["cluster"] in clusters]
    queues = visible_queues(this.access).filter(project=found).order_by("cluster__name", "name")
    return this.render(
        "projects/project.html",
        {
            "project": found,
            "limits": limits,
            "use": use_table(queues, clusters, limits),
            "queues": list(queues[:200]),
            "trail": _trail(found),
            "manages": manages(this.access, found.tenant_id),
        },
    )


@takes_forms
@page(section="projects")
def project_new(this: Page) -> HttpResponse:
    tenants = list(tenants_managed(this.access))
    start = {"tenant": this.request.GET.get("tenant", tenants[0].slug if len(tenants) == 1 else "")}
    form = ProjectForm(this.request.POST or None, tenants=tenants, initial=start)
    if this.request.method == "POST" and form.is_valid():
        values = form.values()
        need_admin_of(this, values["tenant"].pk)
        if form.saved(services.create_project, **values, actor=this.access.actor):
            messages.success(this.request, _("Project %(name)s is made.") % {"name": values["name"] or values["slug"]})
            return redirect("console:project", values["tenant"].slug, values["slug"])
    return edit_page(
        this,
        "projects/edit.html",
        form,
        title=_("New project"),
        submit=_("Make the project"),
        trail=_trail(),
        missing=not tenants,
    )


@takes_forms
@page(section="projects")
def project_edit(this: Page, tenant: str, project: str) -> HttpResponse:
    found = project_of(this, tenant, project)
    need_admin_of(this, found.tenant_id)
    form = NameForm(this.request.POST or None, initial={"name": found.name, "version": found.version})
    if form.is_valid() and form.saved(services.update_owner, owner=found, **form.values(), actor=this.access.actor):
        messages.success(this.request, _("The changes are saved."))
        return redirect("console:project", found.tenant.slug, found.slug)
    title = _("Edit %(name)s") % {"name": found.name}
    return edit_page(this, "projects/edit.html", form, title=title, submit=_("Save"), trail=_trail(found, itself=True))


@takes_forms
@page(section="projects")
def project_delete(this: Page, tenant: str, project: str) -> HttpResponse:
    found = project_of(this, tenant, project)
    need_admin_of(this, found.tenant_id)
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    clusters = clusters_with_quota_of(found)
    if this.request.method == "POST" and form.is_valid():
        try:
            change = remove_project(project=found, access=this.access, **form.values())
        except DomainError as error:
            form.refuse(error)
        else:
            if change is not None:
                return redirect("console:change", change.cluster.slug, change.pk)
            messages.success(this.request, _("Project %(name)s is deleted.") % {"name": found.name})
            return redirect("console:tenant", found.tenant.slug)
    several, removals = len(clusters) > 1, removals_of(found)
    return delete_page(
        this,
        form,
        title=_("Delete project %(name)s?") % {"name": found.name},
        submit=_("Delete the project"),
        trail=_trail(found, itself=True),
        dependents=dependents_of(found),
        protected=[services.has_quotas(found, clusters).message] if several and not removals else [],
        ways=quota_ways(clusters, edits_without_quota(found)) if several and not removals else [],
        removals=removal_ways(removals),
        by_one_change=any(one.whole and not one.in_use for one in removals),
        by_change=clusters[0] if len(clusters) == 1 else None,
    )


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


def _lines_trail() -> list[tuple[str, str]]:
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
        trail=_lines_trail(),
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
    return edit_page(this, "business_lines/edit.html", form, title=title, submit=_("Save"), trail=_lines_trail())


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
        trail=_lines_trail(),
        dependents=dependents_of(found),
    )
