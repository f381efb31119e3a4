from typing import Any

from django.middleware.csrf import CsrfViewMiddleware
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from tidesched_web.accounts.mfa import refuse_where_demanded
from tidesched_web.accounts.models import ApiToken, User
from tidesched_web.accounts.selectors import live_token
from tidesched_web.accounts.services import note_token_use


class BearerAuthentication(BaseAuthentication):
    """``Authorization: Bearer tide_…``. A header of this kind is the whole answer: no session is tried after it."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = live_token(text.strip())
        if token is None:
            raise AuthenticationFailed("This token is unknown, expired or revoked.")
        note_token_use(token)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class _CsrfCheck(CsrfViewMiddleware):
    def _reject(self, request: Any, reason: str) -> str:
        return reason


class BrowserAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, None] | None:
        browser = request._request  # noqa: SLF001, the framework's own way to the session's user
        user = getattr(browser, "user", None)
        if user is None or not user.is_authenticated or not user.is_active:
            return None
        if user.must_change_password:
            raise PermissionDenied("Change your first password in the console before you use the API.")
        refuse_where_demanded(user)
        check = _CsrfCheck(lambda _: None)  # type: ignore[arg-type]  # no answer is asked of it
        check.process_request(browser)
        reason = check.process_view(browser, None, (), {})  # type: ignore[arg-type]  # reads no view
        if reason:
            raise PermissionDenied(f"The CSRF check failed: {reason}", code="csrf_failed")
        return user, None


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = BearerAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "`manage.py token create`, or `POST /tokens/`."}


class BrowserScheme(OpenApiAuthenticationExtension):
    target_class = BrowserAuthentication
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
