from http import HTTPStatus

from allauth.account.adapter import get_adapter
from allauth.account.views import LoginView
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.views import LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.cache import patch_cache_control
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from tidesched_web.accounts import services
from tidesched_web.accounts.identity_selectors import open_providers, sign_in_settings
from tidesched_web.accounts.models import ApiToken
from tidesched_web.accounts.selectors import authenticators_of, own_tokens, visible_tenants, visible_tokens
from tidesched_web.accounts.services import sign_ins
from tidesched_web.accounts.sign_in_limits import counted_change, seconds_to_wait
from tidesched_web.common.errors import DomainError
from tidesched_web.console.forms.account import PasswordForm, ProfileForm, SignInForm
from tidesched_web.console.forms.tokens import TokenFilter, TokenForm
from tidesched_web.console.methods import OF_FORMS, acts_by_post, takes_forms
from tidesched_web.console.page import Page, page
from tidesched_web.console.paging import paged
from tidesched_web.console.rights import need_administrator
from tidesched_web.console.sign_in import end_at_provider

YEAR = 365 * 24 * 3600


def in_chosen_language(request: HttpRequest) -> HttpResponse | None:
    language = request.GET.get("language", "")
    if language not in dict(settings.LANGUAGES):
        return None
    response = redirect(request.path)
    response.set_cookie(settings.LANGUAGE_COOKIE_NAME, language, max_age=YEAR, samesite="Lax")
    return response


class SignIn(LoginView):
    template_name = "accounts/sign_in.html"
    form_class = SignInForm
    methods = OF_FORMS

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        response: HttpResponse = super().dispatch(request, *args, **kwargs)
        if response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            name = request.POST.get("username", "")
            sign_ins.record_limit(name=name, limit="login", wait=int(response.headers["Retry-After"]))
        return response

    def get_context_data(self, **more: object) -> dict[str, object]:
        found: dict[str, object] = super().get_context_data(**more)
        return found | {"providers": open_providers(), "local": sign_in_settings().local_accounts}

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if (chosen := in_chosen_language(request)) is not None:
            return chosen
        answer: HttpResponse = super().get(request, *args, **kwargs)
        return answer


class SignOut(LogoutView):
    http_method_names = ["post"]
    methods = ("POST",)

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        end = end_at_provider(request)
        get_adapter(request).logout(request)
        answer = super().post(request, *args, **kwargs)
        # A page, since no form leads to another host (`form-action` of the content security policy).
        return render(request, "accounts/leave.html", {"end": end}) if end else answer


def too_many_tries(request: HttpRequest) -> HttpResponse:
    seconds = getattr(request, "seconds_to_wait", None) or seconds_to_wait(request, "login")
    context = {"seconds": seconds, "back": request.path}
    response = render(request, "429.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    response.headers["Retry-After"] = str(seconds)
    patch_cache_control(response, private=True, no_store=True)
    return response


@takes_forms
@page(section="account")
def password(this: Page) -> HttpResponse:
    request, user = this.request, this.user
    form = PasswordForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        values, tried = form.cleaned_data, counted_change(request)
        if tried.refused:
            act = "user.change_password_limited"
            sign_ins.record_limit(name=user.get_username(), limit=tried.refused, wait=tried.wait, action=act)
            request.seconds_to_wait = tried.wait  # type: ignore[attr-defined]  # for the page
            return too_many_tries(request)
        try:
            services.change_password(
                user=user,
                old_password=values["old_password"],
                new_password=values["new_password"],
                actor=this.access.actor,
                end_tokens=values["end_tokens"],
            )
        except DomainError as error:
            if error.code == "wrong_password":
                sign_ins.record_failure(name=user.get_username(), action="user.change_password_failed")
                form.add_error("old_password", _("That is not the present password."))
            else:
                tried.take_back()  # the present one was right
                for text in [entry["detail"] for entry in error.extra.get("errors", ())] or [error.message]:
                    form.add_error("new_password", text)
        else:
            tried.take_back()
            user.refresh_from_db(fields=["password"])
            update_session_auth_hash(request, user)
            messages.success(request, _("Your password is changed."))
            return redirect("console:overview")
    return this.render("accounts/password.html", {"form": form}, status=400 if form.errors else 200)


@takes_forms
@page(section="account")
def profile(this: Page) -> HttpResponse:
    request = this.request
    user = this.user
    start = {"language": user.language, "time_zone": user.time_zone}
    form = ProfileForm(request.POST or None, initial=start)
    if request.method == "POST" and form.is_valid():
        services.set_preferences(user=user, **form.cleaned_data)
        # The next page speaks the language that was just chosen.
        with translation.override(form.cleaned_data["language"] or translation.get_language_from_request(request)):
            messages.success(request, _("Your profile is saved."))
        return redirect("console:profile")
    methods = list(authenticators_of(user))
    context = {"form": form, "methods": methods, "has_totp": any(one.type == "totp" for one in methods)}
    return this.render("accounts/profile.html", context, status=400 if form.errors else 200)


@acts_by_post
@page(section="account")
def density(this: Page) -> HttpResponse:
    services.set_density(user=this.user, density=this.request.POST.get("density", ""))
    back = this.request.POST.get("next", "")
    here = url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    # Not `redirect`: a text without a slash would be taken for the name of a page.
    return HttpResponseRedirect(back if back and here else reverse("console:profile"))


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
