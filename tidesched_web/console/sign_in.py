"""Signing in through a provider of OpenID Connect, and signing out there too."""

from collections.abc import Callable

from allauth.socialaccount.models import SocialApp
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils.http import urlencode

from tidesched_web.accounts.identity_selectors import oidc_client, provider_named
from tidesched_web.accounts.oidc import NotVouched, ProviderFails
from tidesched_web.accounts.provider import OidcAdapter
from tidesched_web.accounts.social_adapter import sign_in_failed
from tidesched_web.common.errors import DomainError
from tidesched_web.common.public_address import absolute


def _with_answers(view: Callable[..., HttpResponse], request: HttpRequest, slug: str) -> HttpResponse:
    try:
        return view(request)
    except SocialApp.DoesNotExist:
        raise Http404 from None
    except (ProviderFails, NotVouched, DomainError) as error:
        provider = provider_named(slug)
        why = "refused" if isinstance(error, NotVouched) else "down"
        return sign_in_failed(request, provider.name if provider else slug, slug, why, str(error))


def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    # Scopes, parameters and other processes of allauth are not for the address to say.
    request.GET = QueryDict(urlencode({"next": request.GET.get("next", "")}))
    return _with_answers(OAuth2LoginView.adapter_view(OidcAdapter(request, provider_id)), request, provider_id)


def come_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    return _with_answers(OAuth2CallbackView.adapter_view(OidcAdapter(request, provider_id)), request, provider_id)


def end_at_provider(request: HttpRequest) -> str:
    """The address at which the person's session with the provider ends too, "" where there is none."""
    by = request.session.get("signed_in_by") or {}
    provider = provider_named(by.get("provider", ""))
    if provider is None:
        return ""
    try:
        end = oidc_client(provider).config.get("end_session_endpoint")
    except (ProviderFails, DomainError):
        return ""
    facts = {
        "id_token_hint": by.get("id_token", ""),
        "client_id": provider.client_id,
        "post_logout_redirect_uri": absolute(request, reverse("console:sign_in")),
    }
    return f"{end}{'&' if '?' in end else '?'}{urlencode(facts)}" if isinstance(end, str) else ""
