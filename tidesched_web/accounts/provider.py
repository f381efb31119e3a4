"""The kind of provider that allauth finds in each app under this name of a module."""

from collections.abc import Mapping
from typing import Any

from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import HttpRequest
from django.urls import reverse

from tidesched_web.accounts.identity_selectors import claims_wanted_of
from tidesched_web.accounts.oidc import OidcClient
from tidesched_web.common.public_address import absolute

KIND = "oidc"


class OidcAdapter(OpenIDConnectOAuth2Adapter):
    @property
    def openid_config(self) -> dict[str, Any]:
        return self.client.config

    @property
    def client(self) -> OidcClient:
        if not hasattr(self, "_client"):
            app = self.get_provider().app
            self._client = OidcClient(app.settings["server_url"], app.client_id, app.secret)
        return self._client

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        return absolute(request, reverse("oidc_callback", args=[app.provider_id]))

    def complete_login(self, request: HttpRequest, app: SocialApp, token: SocialToken, **more: Any) -> SocialLogin:
        answer: Mapping[str, Any] = more["response"]
        claims = self.client.claims(answer, wanted=claims_wanted_of(app.provider_id))
        request.session["signed_in_by"] = {"provider": app.provider_id, "id_token": answer.get("id_token", "")}
        return self.get_provider().sociallogin_from_response(request, {"id_token": claims})


class OidcProvider(OpenIDConnectProvider):
    id = KIND
    pkce_enabled_default = True
    oauth2_adapter_class = OidcAdapter


provider_classes = [OidcProvider]
