"""Sign-in, sign-out, password and profile."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import translation
from django.utils.translation import gettext as _

from tidesched_web.accounts import services
from tidesched_web.common.errors import DomainError
from tidesched_web.console.forms.account import PasswordForm, ProfileForm, SignInForm
from tidesched_web.console.page import Page, page

YEAR = 365 * 24 * 3600


class SignIn(LoginView):
    """The door; the language can be chosen here already."""

    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """`?language=` sets the language of this browser."""
        language = request.GET.get("language", "")
        if language in dict(settings.LANGUAGES):
            response = redirect("console:sign_in")
            response.set_cookie(settings.LANGUAGE_COOKIE_NAME, language, max_age=YEAR, samesite="Lax")
            return response
        return super().get(request, *args, **kwargs)


class SignOut(LogoutView):
    """POST only."""

    http_method_names = ["post", "options"]


@page(section="account")
def password(this: Page) -> HttpResponse:
    """Change one's own password; the other sessions of the account end with it."""
    request, user = this.request, this.user
    form = PasswordForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            services.change_password(
                user=user,
                old_password=values["old_password"],
                new_password=values["new_password"],
                actor=this.access.actor,
            )
        except DomainError as error:
            if error.code == "wrong_password":
                form.add_error("old_password", _("That is not the present password."))
            else:
                for text in [entry["detail"] for entry in error.extra.get("errors", ())] or [error.message]:
                    form.add_error("new_password", text)
        else:
            user.refresh_from_db(fields=["password"])
            update_session_auth_hash(request, user)
            messages.success(request, _("Your password is changed."))
            return redirect("console:overview")
    return this.render("accounts/password.html", {"form": form}, status=400 if form.errors else 200)


@page(section="account")
def profile(this: Page) -> HttpResponse:
    """Language, time zone, appearance."""
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
    return this.render("accounts/profile.html", {"form": form}, status=400 if form.errors else 200)
