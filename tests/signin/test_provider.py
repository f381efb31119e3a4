"""The provider of the gate's tests is one that a client can trust, until it is told to do wrong."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest

from tests.signin.provider import Provider

BACK = "http://127.0.0.1:1/back/"
VERIFIER = "v" * 43


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.stop()


def code(provider: Provider) -> str:
    digest = hashlib.sha256(VERIFIER.encode()).digest()
    asked = {
        "client_id": provider.client_id, "redirect_uri": BACK, "response_type": "code", "scope": "openid", "nonce": "n",
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(), "code_challenge_method": "S256",
    }  # fmt: skip
    answer = httpx.get(f"{provider.issuer}/authorize", params=asked)
    return parse_qs(urlsplit(answer.headers["Location"]).query)["code"][0]


def tokens(provider: Provider, **form: str) -> httpx.Response:
    form = {"grant_type": "authorization_code", "redirect_uri": BACK, "code_verifier": VERIFIER} | form
    return httpx.post(f"{provider.issuer}/token", data=form, auth=(provider.client_id, provider.client_secret))


def claims(provider: Provider, answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    token = answer.json()["id_token"]
    key = jwt.PyJWKClient(f"{provider.issuer}/keys").get_signing_key_from_jwt(token)
    return dict(jwt.decode(token, key, algorithms=["RS256"], audience=provider.client_id, issuer=provider.issuer))


def test_a_code_works_once_and_with_its_verifier_alone(provider: Provider) -> None:
    assert tokens(provider, code=code(provider), code_verifier="w" * 43).json() == {"error": "invalid_grant"}
    once = code(provider)
    told = claims(provider, tokens(provider, code=once))
    assert (told["sub"], told["groups"], told["nonce"]) == ("id-of-ada", ["gpu-admins"], "n")
    assert tokens(provider, code=once).json() == {"error": "invalid_grant"}


def test_a_refresh_tells_the_groups_of_now_until_it_is_refused(provider: Provider) -> None:
    first = tokens(provider, code=code(provider))
    provider.groups["ada"] = ["auditors"]
    second = tokens(provider, grant_type="refresh_token", refresh_token=first.json()["refresh_token"])
    assert claims(provider, second)["groups"] == ["auditors"]
    provider.refuses_refresh = True
    third = tokens(provider, grant_type="refresh_token", refresh_token=second.json()["refresh_token"])
    assert (third.status_code, third.json()) == (400, {"error": "invalid_grant"})


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"claims": {"aud": "another"}}, jwt.InvalidAudienceError),
        ({"claims": {"iss": "http://elsewhere.example"}}, jwt.InvalidIssuerError),
        ({"clock": -3600}, jwt.ExpiredSignatureError),
        ({"clock": 3600}, jwt.ImmatureSignatureError),
        ({"unknown_key": True}, jwt.PyJWKClientError),
    ],
)
def test_a_token_can_be_false(provider: Provider, changes: dict[str, Any], error: type[Exception]) -> None:
    for name, value in changes.items():
        setattr(provider, name, value)
    with pytest.raises(error):
        claims(provider, tokens(provider, code=code(provider)))


def test_a_key_of_before_is_not_published_any_more(provider: Provider) -> None:
    before = tokens(provider, code=code(provider))
    provider.rotate()
    claims(provider, tokens(provider, code=code(provider)))
    with pytest.raises(jwt.PyJWKClientError):
        claims(provider, before)


def test_it_fails_and_hangs_where_it_is_told_to(provider: Provider) -> None:
    provider.statuses["/keys"] = 500
    assert httpx.get(f"{provider.issuer}/keys").status_code == 500
    provider.hanging.add("/token")
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{provider.issuer}/token", timeout=0.2)
    assert provider.asked == {"/keys": 1, "/token": 1}
