"""OpenID Connect as this installation speaks it: to sign in (`accounts.provider`) and to ask again later.

The answer to a request is `NotVouched` where the provider says no or its token does not hold, and `ProviderFails`
where it says nothing of the person: it is down, or knows this installation no longer.
"""

import json
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any

import jwt
import requests

SKEW_SECONDS = 60
# As many seconds to connect, and between two pieces of an answer.
TIMEOUT = 5
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
# With these a token endpoint speaks of the client or of itself; with others of the grant.
_OF_THE_CLIENT = frozenset(
    {"", "invalid_client", "unauthorized_client", "invalid_scope", "server_error", "temporarily_unavailable"}
)


class NotVouched(Exception):
    """What the provider sent does not say that this is the person."""


class ProviderFails(Exception):
    """The provider did not answer so that anything follows of the person."""


class ProviderDown(ProviderFails):
    """It answers nobody."""


class OidcClient:
    """One conversation: what the provider says of itself is read once."""

    def __init__(self, issuer: str, client_id: str, secret: str) -> None:
        self.issuer, self.client_id, self.secret = issuer, client_id, secret

    @cached_property
    def config(self) -> dict[str, Any]:
        try:
            found = _object(_answer("GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"))
        except ProviderFails as error:
            raise ProviderDown(str(error)) from None
        if str(found.get("issuer", "")).rstrip("/") != self.issuer.rstrip("/"):
            raise ProviderDown(f"the issuer calls itself {found.get('issuer')!r}, not {self.issuer!r}")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not isinstance(found.get(name), str):
                raise ProviderDown(f"its configuration has no {name}")
        return found

    @cached_property
    def keys(self) -> list[jwt.PyJWK]:
        return jwt.PyJWKSet.from_dict(_object(_answer("GET", self.config["jwks_uri"]))).keys

    def _keys(self, key_id: str | None) -> list[jwt.PyJWK]:
        return [key for key in self.keys if key.key_id == key_id] if key_id else self.keys

    def claims(self, answer: Mapping[str, Any], *, wanted: frozenset[str] = frozenset()) -> dict[str, Any]:
        """What a token endpoint's ``answer`` says of the person; ``wanted`` claims that it lacks are asked for."""
        text = answer.get("id_token")
        said = self._verified(text) if isinstance(text, str) else {}
        if (not said or not wanted <= said.keys()) and isinstance(self.config.get("userinfo_endpoint"), str):
            bearer = {"Authorization": f"Bearer {answer.get('access_token', '')}"}
            more = _object(_answer("GET", self.config["userinfo_endpoint"], headers=bearer))
            if not more.get("sub") or (said and more["sub"] != said["sub"]):
                raise NotVouched("the user info is of another subject than the ID token")
            said = {**more, **said}
        if not said:
            raise NotVouched("there is no ID token in the answer")
        if len(str(said["sub"])) > 255 or "\\u0000" in json.dumps(said):
            raise NotVouched("a claim is longer than can be kept, or holds a zero byte")
        return said

    def refreshed(self, refresh_token: str) -> dict[str, Any]:
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        methods = self.config.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        auth = None
        if "client_secret_post" in methods:
            form |= {"client_id": self.client_id, "client_secret": self.secret}
        else:
            auth = (self.client_id, self.secret)
        response = _answer("POST", self.config["token_endpoint"], data=form, auth=auth)
        if response.status_code != HTTPStatus.OK:
            error = str(_json(response).get("error", ""))[:80]
            if response.status_code == HTTPStatus.BAD_REQUEST and error not in _OF_THE_CLIENT:
                raise NotVouched(f"a new token is refused: {error}")
            raise ProviderFails(f"a new token is refused: {error or response.status_code}")
        return _object(response)

    def _verified(self, text: str) -> dict[str, Any]:
        try:
            key_id = jwt.get_unverified_header(text).get("kid")
            if not (named := self._keys(key_id)):
                self.__dict__.pop("keys", None)  # they may have been changed since they were read
                named = self._keys(key_id)
            if len(named) != 1:
                raise NotVouched(f"the ID token is signed with a key that the provider does not show: {key_id}")
            said: dict[str, Any] = jwt.decode(
                text, named[0], algorithms=ALGORITHMS, audience=self.client_id, issuer=self.config["issuer"],
                leeway=SKEW_SECONDS, options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            raise NotVouched(f"the ID token does not hold: {error}") from None
        if said.get("azp", self.client_id) != self.client_id:
            raise NotVouched(f"the ID token was made for the client {said['azp']!r}")
        return said


def _answer(method: str, url: str, **more: Any) -> requests.Response:
    try:
        response = requests.request(method, url, timeout=TIMEOUT, allow_redirects=False, **more)
    except requests.RequestException as error:
        raise ProviderDown(f"{url} cannot be reached") from error
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise ProviderFails(f"{url} answers with {response.status_code}")
    return response


def _json(response: requests.Response) -> dict[str, Any]:
    try:
        found = response.json()
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _object(response: requests.Response) -> dict[str, Any]:
    found = _json(response)
    if response.status_code != HTTPStatus.OK or not found:
        raise ProviderFails(f"{response.url} answers with {response.status_code} and no JSON object")
    return found
