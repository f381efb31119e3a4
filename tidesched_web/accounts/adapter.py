from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.ratelimit import respond_429
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from tidesched_web.accounts import sign_in_limits
from tidesched_web.accounts.identity_selectors import is_break_glass, may_use_password
from tidesched_web.accounts.models import User
from tidesched_web.accounts.services import sessions, sign_ins
from tidesched_web.accounts.social_adapter import sign_in_failed
from tidesched_web.common import request_context


class AccountAdapter(DefaultAccountAdapter):
    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": _("The user name or the password is wrong. Both are case-sensitive."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_ajax(self, request: HttpRequest) -> bool:
        """Only the script of the sign-in page asks for JSON: the question that a passkey answers."""
        return request.method == "GET" and request.path == reverse("mfa_login_webauthn")

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """Who has no password and no second step has nothing to confirm by, and sets up the first one without."""
        return bool(self.get_reauthentication_methods(self.request.user))

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        sign_ins.record_failure(name=user.get_username())
        messages.error(request, _("This account is switched off."))
        return redirect("console:sign_in")

    def add_message(
        self, request: HttpRequest, level: int, message_template: str | None = None, *rest: Any, **more: Any
    ) -> None:
        if not (message_template or "").startswith("mfa/"):  # the console's own pages say what was done
            super().add_message(request, level, message_template, *rest, **more)

    def get_client_ip(self, request: HttpRequest) -> str:
        """The one address that the audit log and all limits use."""
        return request_context.current().address or "unknown"

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count the try before its password is looked at; one too many is answered with a 429."""
        name = _name(credentials)
        self._try = sign_in_limits.counted(request, name)
        if self._try.refused:
            sign_ins.record_limit(name=name, limit=self._try.refused, wait=self._try.wait)
            request.seconds_to_wait = self._try.wait  # type: ignore[attr-defined]  # for the page
            raise ImmediateHttpResponse(respond_429(request))

    def _rollback_login_failed_rl_usage(self) -> None:
        self._try.take_back()

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        action = "user.confirm_failed" if request.user.is_authenticated else "user.sign_in_failed"
        sign_ins.record_failure(name=_name(credentials), action=action)

    def pre_login(self, request: HttpRequest, user: User, **more: Any) -> HttpResponse | None:
        """Whatever way a person came in by, a password or a passkey: whom a provider vouches for comes through it."""
        by_provider = "sociallogin" in (more.get("signal_kwargs") or {})
        if not by_provider and user.is_active and not may_use_password(user):
            return sign_in_failed(request, user.get_username(), "", "local_off", "")
        answer: HttpResponse | None = super().pre_login(request, user, **more)
        return answer

    def login(self, request: HttpRequest, user: User) -> None:
        super().login(request, user)
        sign_in_limits.remember(request, user.get_username())
        sign_ins.record_sign_in(user=user)
        if is_break_glass(user):
            sign_ins.record_break_glass(user=user)
        sessions.keep(user_id=user.pk, session_key=request.session.session_key or "")

    def logout(self, request: HttpRequest) -> None:
        user = request.user
        super().logout(request)
        if isinstance(user, User):
            sign_ins.record_sign_out(user=user)


def _name(credentials: dict[str, Any]) -> str:
    return str(credentials.get("username") or credentials.get("email") or "")
