from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from tidesched_web.accounts import services
from tidesched_web.accounts.models import ApiToken
from tidesched_web.accounts.selectors import own_tokens, visible_tenants, visible_tokens
from tidesched_web.common.errors import DomainError
from tidesched_web.console.forms.tokens import TokenFilter, TokenForm
from tidesched_web.console.methods import acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import need_administrator

ORDER = ("-created_at", "-id")


@takes_forms
@page(section="account")
def tokens(this: Page) -> HttpResponse:
    form = TokenForm(this.request.POST or None, tenants=visible_tenants(this.access).order_by("slug"))
    made, plain = None, ""
    if this.request.method == "POST" and form.is_valid():
        try:
            made, plain = services.create_token(user=this.user, actor=this.access.actor, **form.values())
        except DomainError as error:
            form.refuse(error)
        else:
            form = TokenForm(tenants=form.tenants.values())
    part = paged(own_tokens(this.user), ORDER, this.request.GET.get("cursor", ""))
    context = {
        "page": part,
        "form": form,
        "made": made,
        "plain": plain,
        "trail": [(_("Profile"), reverse("console:profile"))],
    }
    return this.render("accounts/tokens.html", context, status=400 if form.errors else 200)


@page(section="users")
def all_tokens(this: Page) -> HttpResponse:
    need_administrator(this)
    form = TokenFilter(this.request.GET)
    rows = form.apply(visible_tokens(this.user, this.access))
    part = paged(rows, ORDER, this.request.GET.get("cursor", ""))
    context = {"page": part, "form": form, "trail": [(_("Users"), reverse("console:users"))]}
    return this.render("users/tokens.html", context)


@acts_by_post
@page(section="account")
def token_revoke(this: Page, pk: int) -> HttpResponse:
    found: ApiToken = get_object_or_404(visible_tokens(this.user, this.access), pk=pk)
    if services.revoke_token(token=found, actor=this.access.actor):
        text = _("The token %(name)s no longer works.") % {"name": found.name or f"{found.prefix}…"}
        messages.success(this.request, text)
    return redirect("console:tokens" if found.user_id == this.user.pk else "console:all_tokens")
