"""The members of a tenant: its admins keep them."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from tidesched_web.accounts import services
from tidesched_web.accounts.models import Membership, Tenant
from tidesched_web.accounts.selectors import known_users, visible_memberships, visible_tenants
from tidesched_web.console.edit_pages import delete_page
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.people import MemberFilter, MemberForm, RoleForm
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import manages, need_admin_of


def _tenant(this: Page, slug: str) -> Tenant:
    found = visible_tenants(this.access).filter(slug=slug).first()
    if found is None:
        raise Http404
    return found


@page(section="tenants")
def members(this: Page, tenant: str) -> HttpResponse:
    """Who belongs to a tenant; its admins take people in here."""
    found = _tenant(this, tenant)
    may = manages(this.access, found.pk)
    form = MemberForm(this.request.POST or None)
    if this.request.method == "POST":
        need_admin_of(this, found.pk)
        if form.is_valid() and _take_in(this, found, form):
            return redirect("console:members", found.slug)
    search = MemberFilter(this.request.GET)
    rows = search.apply(visible_memberships(this.access).filter(tenant=found))
    part = paged(rows, ("user_id", "id"), this.request.GET.get("cursor", ""))
    for row in part.rows:
        row.form = RoleForm(initial={"role": row.role}, prefix=f"m{row.pk}")
    context = {"tenant": found, "page": part, "form": search, "new": form, "manages": may}
    return this.render("members/members.html", context, status=400 if form.errors else 200)


def _take_in(this: Page, tenant: Tenant, form: MemberForm) -> bool:
    values = form.values()
    user = known_users(this.access).filter(username=values["user"]).first()
    if user is None:
        form.add_error("user", _("There is no active account of this name. A platform admin can invite the person."))
        return False
    if visible_memberships(this.access).filter(user=user, tenant=tenant).exists():
        form.add_error("user", _("This person belongs to the tenant already; change the role below."))
        return False
    services.set_membership(user=user, tenant=tenant, role=values["role"], actor=this.access.actor)
    messages.success(this.request, _("%(user)s belongs to %(tenant)s now.") % {"user": user, "tenant": tenant})
    return True


def _member(this: Page, tenant: str, pk: int) -> Membership:
    found = visible_memberships(this.access).filter(tenant__slug=tenant, pk=pk).first()
    if found is None:
        raise Http404
    need_admin_of(this, found.tenant_id)
    return found


@require_POST
@page(section="tenants")
def member_role(this: Page, tenant: str, pk: int) -> HttpResponse:
    """Give another role."""
    found = _member(this, tenant, pk)
    form = RoleForm(this.request.POST, prefix=f"m{found.pk}")
    if form.is_valid():
        role = form.cleaned_data["role"]
        services.set_membership(user=found.user, tenant=found.tenant, role=role, actor=this.access.actor)
        messages.success(this.request, _("The role of %(user)s is changed.") % {"user": found.user})
    return redirect("console:members", found.tenant.slug)


@page(section="tenants")
def member_remove(this: Page, tenant: str, pk: int) -> HttpResponse:
    """Take somebody out, after a question."""
    found = _member(this, tenant, pk)
    form = ReasonForm(this.request.POST or None)
    if this.request.method == "POST" and form.is_valid():
        services.remove_membership(membership=found, reason=form.cleaned_data["reason"], actor=this.access.actor)
        messages.success(
            this.request,
            _("%(user)s no longer belongs to %(tenant)s.") % {"user": found.user, "tenant": found.tenant},
        )
        return redirect("console:members", found.tenant.slug)
    trail = [
        (_("Tenants"), reverse("console:tenants")),
        (found.tenant.name, reverse("console:tenant", args=[found.tenant.slug])),
        (_("Members"), reverse("console:members", args=[found.tenant.slug])),
    ]
    title = _("Take %(user)s out of %(tenant)s?") % {"user": found.user, "tenant": found.tenant}
    return delete_page(
        this,
        form,
        title=title,
        submit=_("Take out"),
        trail=trail,
        dependents=[],
        template="members/remove.html",
    )
