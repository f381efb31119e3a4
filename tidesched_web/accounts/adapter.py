from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.core.ratelimit import respond_429
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from tidesched_web.accounts import sign_in_limits
from tidesched_web.accounts.models import User
from tidesched_web.accounts.services import sessions, sign_ins
from tidesched_web.common import request_context


class AccountAdapter(DefaultAccountAdapter):
    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": _("The user name or the password is wrong. Both are case-sensitive."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_ajax(self, request: HttpRequest) -> bool:
        return False

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
        sign_ins.record_failure(name=_name(credentials))

    def login(self, request: HttpRequest, user: User) -> None:
        super().login(request, user)
        sign_in_limits.remember(request, user.get_username())
        sign_ins.record_sign_in(user=user)
        sessions.keep(user_id=user.pk, session_key=request.session.session_key or "")

    def logout(self, request: HttpRequest) -> None:
        user = request.user
        super().logout(request)
        if isinstance(user, User):
            sign_ins.record_sign_out(user=user)


def _name(credentials: dict[str, Any]) -> str:
    return str(credentials.get("username") or credentials.get("email") or "")
