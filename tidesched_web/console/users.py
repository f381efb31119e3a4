from allauth.account.utils import perform_login
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from tidesched_web.accounts import services
from tidesched_web.accounts.models import AccessLink, LinkKind, User
from tidesched_web.accounts.selectors import (
    account_version,
    has_mfa,
    live_link,
    memberships_of,
    only_admin_who_signs_in,
    users_listed,
    visible_tenants,
)
from tidesched_web.common.errors import DomainError
from tidesched_web.common.public_address import absolute
from tidesched_web.console.accounts import in_chosen_language
from tidesched_web.console.edit_pages import delete_page, edit_page
from tidesched_web.console.forms.edit import ReasonForm
from tidesched_web.console.forms.people import InviteForm, NewPasswordForm, UserFilter, UserForm
from tidesched_web.console.methods import takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import need_administrator, need_whole_sight


@page(section="users")
def users(this: Page) -> HttpResponse:
    need_whole_sight(this)
    form = UserFilter(this.request.GET)
    part = paged(form.apply(users_listed(this.access)), ("username", "id"), this.request.GET.get("cursor", ""))
    return this.render("users/users.html", {"page": part, "form": form})


def _user(this: Page, pk: int) -> User:
    need_whole_sight(this)
    return get_object_or_404(users_listed(this.access), pk=pk)


def _trail(found: User | None = None) -> list[tuple[str, str]]:
    trail = [(_("Users"), reverse("console:users"))]
    return trail if found is None else [*trail, (found.username, reverse("console:user", args=[found.pk]))]


def _shown(this: Page, found: User, link: AccessLink | None = None, secret: str = "") -> HttpResponse:
    address = absolute(this.request, reverse("console:invite", args=[secret])) if secret else ""
    return this.render(
        "users/user.html",
        {
            "person": found,
            "memberships": memberships_of(found),
            "link": link,
            "address": address,
            "mfa": has_mfa(found),
            "keeps": only_admin_who_signs_in(found),
            "trail": _trail(),
        },
    )


@takes_forms
@page(section="users")
def user(this: Page, pk: int) -> HttpResponse:
    found = _user(this, pk)
    if this.request.method != "POST":
        return _shown(this, found)
    need_administrator(this)
    kind = LinkKind.RESET if found.has_usable_password() else LinkKind.INVITE
    try:
        link, secret = services.make_link(user=found, kind=kind, actor=this.access.actor, by=this.user.pk)
    except DomainError as error:
        messages.error(this.request, error.message)
        return redirect("console:user", found.pk)
    return _shown(this, found, link, secret)


@takes_forms
@page(section="users")
def user_new(this: Page) -> HttpResponse:
    need_administrator(this)
    form = InviteForm(this.request.POST or None, tenants=visible_tenants(this.access).order_by("slug"))
    if this.request.method == "POST" and form.is_valid():
        try:
            found, link, secret = services.invite_user(**form.values(), actor=this.access.actor, by=this.user.pk)
        except DomainError as error:
            form.refuse(error)
        else:
            messages.success(this.request, _("The account of %(user)s is made.") % {"user": found.username})
            return _shown(this, _user(this, found.pk), link, secret)
    return edit_page(this, "users/edit.html", form, title=_("Invite a person"), submit=_("Invite"), trail=_trail())


@takes_forms
@page(section="users")
def user_edit(this: Page, pk: int) -> HttpResponse:
    found = _user(this, pk)
    need_administrator(this)
    names = ("first_name", "last_name", "email", "platform_role")
    start = {name: getattr(found, name) for name in names} | {"version": account_version(found)}
    form = UserForm(this.request.POST or None, initial=start)
    if form.is_valid() and form.saved(
        services.update_user, user=found, **form.values(), actor=this.access.actor, by=this.user.pk
    ):
        messages.success(this.request, _("The changes are saved."))
        return redirect("console:user", found.pk)
    title = _("Edit %(name)s") % {"name": found.username}
    return edit_page(this, "users/edit.html", form, title=title, submit=_("Save"), trail=_trail(found))


@takes_forms
@page(section="users")
def user_switch(this: Page, pk: int) -> HttpResponse:
    found = _user(this, pk)
    need_administrator(this)
    form = ReasonForm(this.request.POST or None, initial={"version": account_version(found)})
    act = services.deactivate_user if found.is_active else services.activate_user
    if form.is_valid() and form.saved(act, user=found, **form.values(), actor=this.access.actor):
        text = _("%(user)s is switched off.") if found.is_active else _("%(user)s is switched on again.")
        messages.success(this.request, text % {"user": found.username})
        return redirect("console:user", found.pk)
    keeps = found.is_active and only_admin_who_signs_in(found)
    protected = [_("This is the last active platform admin. Make another account one first.")] if keeps else []
    title = _("Switch %(user)s off?") if found.is_active else _("Switch %(user)s on again?")
    return delete_page(
        this,
        form,
        title=title % {"user": found.username},
        submit=_("Switch off") if found.is_active else _("Switch on"),
        trail=_trail(found),
        dependents=[],
        protected=protected,
        template="users/switch.html",
        person=found,
    )


@takes_forms
@page(section="users")
def user_mfa_reset(this: Page, pk: int) -> HttpResponse:
    found = _user(this, pk)
    need_administrator(this)
    form = ReasonForm(this.request.POST or None)
    if form.is_valid() and form.saved(
        services.reset_mfa, user=found, **form.values(), actor=this.access.actor, by=this.user.pk
    ):
        text = _("%(user)s signs in without a second step until a new one is set up.")
        messages.success(this.request, text % {"user": found.username})
        return redirect("console:user", found.pk)
    title = _("Reset two-step sign-in of %(user)s?") % {"user": found.username}
    return edit_page(this, "layouts/edit.html", form, title=title, submit=_("Reset"), trail=_trail(found))


@takes_forms
@sensitive_post_parameters()
def invite(request: HttpRequest, secret: str) -> HttpResponse:
    """The door that a link opens: its person sets a password and is signed in. No account is needed to come here."""
    if request.method == "GET" and (chosen := in_chosen_language(request)) is not None:
        return chosen
    link = live_link(secret)
    form = NewPasswordForm(request.POST or None)
    if link is not None and request.method == "POST" and form.is_valid():
        try:
            person = services.use_link(secret=secret, new_password=form.cleaned_data["new_password"])
        except DomainError as error:
            if error.code == "link_is_dead":
                link = None
            form.refuse(error)
        else:
            messages.success(request, _("Your password is set."))
            return perform_login(request, person)
    status = 410 if link is None else 400 if form.errors else 200
    response = render(request, "users/invite.html", {"link": link, "form": form}, status=status)
    patch_cache_control(response, private=True, no_store=True)
    # The address is the key, so its path goes to no other site. `no-referrer` would make the browser send the form with
    # `Origin: null`, which is refused as another site's.
    response.headers["Referrer-Policy"] = "strict-origin"
    return response
