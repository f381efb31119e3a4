from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _

from tidesched_web.accounts import services
from tidesched_web.accounts.models import AccessLink, Membership, Tenant, User
from tidesched_web.accounts.selectors import known_users, members_of, visible_memberships, visible_tenants
from tidesched_web.common.errors import DomainError
from tidesched_web.common.public_address import absolute
from tidesched_web.console.edit_pages import delete_page, edit_page
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.people import InviteMemberForm, MemberFilter, MemberForm, RoleForm
from tidesched_web.console.methods import acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import manages, need_admin_of


def _tenant(this: Page, slug: str) -> Tenant:
    return get_object_or_404(visible_tenants(this.access), slug=slug)


@takes_forms
@page(section="tenants")
def members(this: Page, tenant: str) -> HttpResponse:
    found = _tenant(this, tenant)
    may = manages(this.access, found.pk)
    form = MemberForm(this.request.POST or None)
    if this.request.method == "POST":
        need_admin_of(this, found.pk)
        if form.is_valid() and _take_in(this, found, form):
            return redirect("console:members", found.slug)
    search = MemberFilter(this.request.GET)
    rows = search.apply(members_of(found, this.access))
    part = paged(rows, ("user_id", "id"), this.request.GET.get("cursor", ""))
    for row in part.rows:
        row.form = RoleForm(initial={"role": row.role, "version": row.version}, prefix=f"m{row.pk}")
        row.user.invited = row.invited
    context = {"tenant": found, "page": part, "form": search, "new": form, "manages": may}
    return this.render("members/members.html", context, status=400 if form.errors else 200)


@takes_forms
@page(section="tenants")
def member_invite(this: Page, tenant: str) -> HttpResponse:
    found = _tenant(this, tenant)
    need_admin_of(this, found.pk)
    form = InviteMemberForm(this.request.POST or None)
    if this.request.method == "POST" and form.is_valid():
        values = form.values()
        role = values.pop("role")
        try:
            person, link, secret = services.invite_user(
                **values, memberships={found: role}, of_tenant=found, actor=this.access.actor, by=this.user.pk
            )
        except DomainError as error:
            form.refuse(error)
        else:
            messages.success(this.request, _("The account of %(user)s is made.") % {"user": person.username})
            return _invited(this, found, person, link, secret)
    title = _("Invite to %(tenant)s") % {"tenant": found.name}
    return edit_page(this, "members/invite.html", form, title=title, submit=_("Invite"), trail=_trail(found))


@acts_by_post
@page(section="tenants")
def member_link(this: Page, tenant: str, pk: int) -> HttpResponse:
    found = _member(this, tenant, pk)
    try:
        link, secret = services.invite_again(membership=found, actor=this.access.actor, by=this.user.pk)
    except DomainError as error:
        messages.error(this.request, error.message)
        return redirect("console:members", found.tenant.slug)
    return _invited(this, found.tenant, found.user, link, secret)


def _invited(this: Page, tenant: Tenant, person: User, link: AccessLink, secret: str) -> HttpResponse:
    address = absolute(this.request, reverse("console:invite", args=[secret]))
    context = {"tenant": tenant, "person": person, "link": link, "address": address, "trail": _trail(tenant)}
    response = this.render("members/invited.html", context)
    patch_cache_control(response, private=True, no_store=True)
    return response


def _trail(tenant: Tenant) -> list[tuple[str, str]]:
    return [
        (_("Tenants"), reverse("console:tenants")),
        (tenant.name, reverse("console:tenant", args=[tenant.slug])),
        (_("Members"), reverse("console:members", args=[tenant.slug])),
    ]


def _take_in(this: Page, tenant: Tenant, form: MemberForm) -> bool:
    values = form.values()
    user = known_users(this.access).filter(username=values["user"]).first()
    if user is None:
        form.add_error("user", _("There is no active account of this name. Invite the person instead."))
        return False
    if visible_memberships(this.access).filter(user=user, tenant=tenant).exists():
        form.add_error("user", _("This person belongs to the tenant already; change the role below."))
        return False
    services.set_membership(user=user, tenant=tenant, role=values["role"], actor=this.access.actor, by=this.user.pk)
    messages.success(this.request, _("%(user)s belongs to %(tenant)s now.") % {"user": user, "tenant": tenant})
    return True


def _member(this: Page, tenant: str, pk: int) -> Membership:
    found = get_object_or_404(visible_memberships(this.access), tenant__slug=tenant, pk=pk)
    need_admin_of(this, found.tenant_id)
    return found


@acts_by_post
@page(section="tenants")
def member_role(this: Page, tenant: str, pk: int) -> HttpResponse:
    found = _member(this, tenant, pk)
    form = RoleForm(this.request.POST, initial={"version": found.version}, prefix=f"m{found.pk}")
    if form.is_valid():
        try:
            services.set_membership(
                user=found.user, tenant=found.tenant, **form.values(), actor=this.access.actor, by=this.user.pk
            )
        except DomainError as error:
            text = _(
                "%(user)s is %(role)s since another person changed it meanwhile: choose again if that is not right."
            )
            said = text % {"user": found.user, "role": found.get_role_display()}
            messages.error(this.request, said if error.code == "stale" else error.message)
        else:
            messages.success(this.request, _("The role of %(user)s is changed.") % {"user": found.user})
    elif form.meanwhile:
        messages.error(this.request, form.meanwhile.said)
    return redirect("console:members", found.tenant.slug)


@takes_forms
@page(section="tenants")
def member_remove(this: Page, tenant: str, pk: int) -> HttpResponse:
    found = _member(this, tenant, pk)
    form = ReasonForm(this.request.POST or None, initial={"version": found.version})
    if form.is_valid() and form.saved(
        services.remove_membership, membership=found, **form.values(), actor=this.access.actor
    ):
        messages.success(
            this.request, _("%(user)s no longer belongs to %(tenant)s.") % {"user": found.user, "tenant": found.tenant}
        )
        return redirect("console:members", found.tenant.slug)
    title = _("Take %(user)s out of %(tenant)s?") % {"user": found.user, "tenant": found.tenant}
    return delete_page(
        this,
        form,
        title=title,
        submit=_("Take out"),
        trail=_trail(found.tenant),
        dependents=[],
        template="members/remove.html",
    )
