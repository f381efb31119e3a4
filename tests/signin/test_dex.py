"""Dex as the proof of sign-in uses it: people, groups that change, keys and refresh tokens that outlive a restart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import jwt
import pytest
from django.db import connection

from tests.signin.dex import PASSWORD, Dex

BACK = "http://127.0.0.1:1/back/"
SCOPE = "openid email profile groups offline_access"


@pytest.fixture
def dex(tmp_path: Path, db: None) -> Iterator[Dex]:
    place = connection.settings_dict
    made = Dex(tmp_path, f"postgresql://{place['USER']}@/postgres?host={place['HOST']}", redirect_uris=[BACK])
    made.start()
    yield made
    made.drop()


def discovery(dex: Dex) -> dict[str, str]:
    return dict(httpx.get(f"{dex.issuer}/.well-known/openid-configuration").json())


def tokens(dex: Dex, **form: str) -> httpx.Response:
    return httpx.post(discovery(dex)["token_endpoint"], data=form, auth=(dex.client_id, dex.client_secret))


def claims(dex: Dex, answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    token = answer.json()["id_token"]
    key = jwt.PyJWKClient(discovery(dex)["jwks_uri"]).get_signing_key_from_jwt(token)
    return dict(jwt.decode(token, key, algorithms=["RS256"], audience=dex.client_id, issuer=dex.issuer))


def test_a_refresh_after_a_restart_tells_the_new_groups(dex: Dex) -> None:
    first = tokens(dex, grant_type="password", username="ada@example.org", password=PASSWORD, scope=SCOPE)
    assert claims(dex, first)["groups"] == ["gpu-admins"]
    dex.restart(groups={"ada": ["auditors"], "ben": ["gpu-admins"]})
    second = tokens(dex, grant_type="refresh_token", refresh_token=first.json()["refresh_token"])
    assert claims(dex, second)["groups"] == ["auditors"]
    assert claims(dex, first)["sub"] == claims(dex, second)["sub"], "the key of before the restart is still published"


def test_a_person_signs_in_with_a_code(dex: Dex) -> None:
    asked = {"client_id": dex.client_id, "redirect_uri": BACK, "response_type": "code", "scope": SCOPE, "state": "s"}
    with httpx.Client(follow_redirects=True) as browser:
        page = browser.get(discovery(dex)["authorization_endpoint"], params=asked)
        action = re.search(r'<form method="post" action="([^"]+)"', page.text)
        assert action, page.text
        browser.follow_redirects = False
        answer = browser.post(
            urljoin(str(page.url), action[1].replace("&amp;", "&")),
            data={"login": "ben@example.org", "password": PASSWORD},
        )
        while not (place := urljoin(str(answer.url), answer.headers["Location"])).startswith(BACK):
            answer = browser.get(place)
    code = parse_qs(urlsplit(place).query)["code"][0]
    answer = tokens(dex, grant_type="authorization_code", code=code, redirect_uri=BACK)
    told = claims(dex, answer)
    assert (told["preferred_username"], told["email"], told.get("groups")) == ("ben", "ben@example.org", None)
    assert tokens(dex, grant_type="authorization_code", code=code, redirect_uri=BACK).is_client_error
