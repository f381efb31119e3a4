import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialLogin
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from tidesched_web.accounts.identity_selectors import open_providers, provider_named, provider_secret
from tidesched_web.accounts.models import IdentityProvider, User
from tidesched_web.accounts.services import identities, sign_ins

_log = logging.getLogger(__name__)


class SocialAdapter(DefaultSocialAccountAdapter):
    def list_apps(self, request: HttpRequest, provider: str = "", client_id: str = "") -> list[SocialApp]:
        found = [_app(row) for row in open_providers() if provider in ("", None, row.slug)]
        return [app for app in found if client_id in ("", app.client_id)] if client_id else found

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Of allauth's processes only signing in: to connect an account would hand it over."""
        provider, user = _row(sociallogin), sociallogin.user
        why = "" if sociallogin.state.get("process") == "login" else "refused"
        if not sociallogin.token.token_secret:
            why = "no_refresh"
        known = (provider.issuer, str(_claims(sociallogin)["sub"]))
        if sociallogin.is_existing and (user.issuer, user.subject) != known:
            why = "refused"
        if why:
            raise ImmediateHttpResponse(sign_in_failed(request, provider.name, provider.slug, why, ""))
        if sociallogin.is_existing and sociallogin.user.is_active:
            self._vouch(sociallogin, sociallogin.user)

    def save_user(self, request: HttpRequest, sociallogin: SocialLogin, form: object = None) -> User:
        provider = _row(sociallogin)
        try:
            # Without an e-mail address of allauth's own: it would offer to send codes there.
            user = identities.new_account(provider=provider, claims=_claims(sociallogin), account=sociallogin.account)
            sociallogin.user = user
        except IntegrityError:  # the same person, a moment ago, in another window
            raise ImmediateHttpResponse(redirect("oidc_login", provider.slug)) from None
        self._vouch(sociallogin, user)
        return user

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Mapping[str, Any] | None = None,
    ) -> None:
        """What the address says is shown only in answer to a question of this browser."""
        why, said = "lost", ""
        if exception is not None:
            _log.warning("a sign-in through %s fails: %s", provider.app.provider_id, exception)
            why = "client" if "invalid_client" in str(exception) else "refused"
        elif "state" in (extra_context or {}):
            why = "cancelled" if error == "cancelled" else "said"
            said = request.GET.get("error_description") or request.GET.get("error") or ""
        raise ImmediateHttpResponse(sign_in_failed(request, provider.app.name, provider.app.provider_id, why, said))

    def _vouch(self, sociallogin: SocialLogin, user: User) -> None:
        token = sociallogin.token.token_secret
        identities.vouched_for(user=user, provider=_row(sociallogin), claims=_claims(sociallogin), refresh_token=token)


def sign_in_failed(request: HttpRequest, name: str, slug: str, why: str, said: str) -> HttpResponse:
    """A page at the door that says what to do; ``said`` is for who keeps the installation."""
    if slug:
        sign_ins.record_refusal(provider=slug, why=why, said=said)
    else:  # ``name`` is an account's, with the right password
        sign_ins.record_failure(name=name, action="user.sign_in_refused")
    context = {"layout": "layouts/door_form.html", "name": name, "slug": slug, "why": why, "said": said[:300]}
    down = why == "down"
    status = HTTPStatus.BAD_GATEWAY if down else HTTPStatus.FORBIDDEN if why == "local_off" else HTTPStatus.BAD_REQUEST
    return render(request, "accounts/sign_in_failed.html", context, status=status)


def _app(row: IdentityProvider) -> SocialApp:
    facts = {"server_url": row.issuer, "scope": row.scopes.split()}
    return SocialApp(
        provider="oidc", provider_id=row.slug, name=row.name, client_id=row.client_id, secret=provider_secret(row),
        settings=facts,
    )  # fmt: skip


def _row(sociallogin: SocialLogin) -> IdentityProvider:
    found = provider_named(sociallogin.account.provider)
    assert found is not None
    return found


def _claims(sociallogin: SocialLogin) -> Mapping[str, Any]:
    claims: Mapping[str, Any] = sociallogin.account.extra_data["id_token"]
    return claims
