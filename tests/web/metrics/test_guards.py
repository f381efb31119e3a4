"""Who may scrape: a token of those who see everything, or an address that is named."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from tests import quota_writes
from tests.web.metrics.scrape import scraped, token
from tidesched_web.accounts import services as accounts

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_counts_of_before() -> None:
    cache.clear()


def asked(plain: str = "", **headers: str) -> Any:
    return Client(headers={"authorization": f"Bearer {plain}"} if plain else None).get("/metrics", headers=headers)


def test_without_a_token_or_with_a_dead_one_it_is_401() -> None:
    for plain in ("", "tide_nobody"):
        answer = asked(plain)
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer"), answer.content
        assert answer.json()["code"] in ("not_authenticated", "invalid_token")


def test_a_session_of_the_console_is_no_token() -> None:
    client = Client()
    client.force_login(accounts.create_user(username="root", password=None, actor="tests", platform_role="admin"))
    assert client.get("/metrics").status_code == 401


def test_the_scope_is_asked_for() -> None:
    assert asked(token("ann", scopes=("metrics:read",), platform_role="auditor")).status_code == 200
    refused = asked(token("ben", scopes=("quota:read", "reclaim:read"), platform_role="admin"))
    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
    assert refused.json()["required_scopes"] == ["metrics:read"]


def test_the_figures_are_of_all_tenants_and_a_narrower_token_is_told_so() -> None:
    acme = quota_writes.ensure_tenant(slug="acme", actor="tests")
    for plain in (
        token("member", scopes=("metrics:read",)),
        token("narrowed", scopes=("metrics:read",), platform_role="admin", tenant=acme),
    ):
        refused = asked(plain)
        assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
        assert "all tenants" in refused.json()["detail"]


def test_a_named_address_needs_none_and_cannot_be_claimed(settings: Any) -> None:
    settings.METRICS_ADDRESSES = ["10.8.0.0/24", "::1/128"]
    assert asked().status_code == 401
    assert asked(**{"x-forwarded-for": "10.8.0.7"}).status_code == 401
    assert Client(REMOTE_ADDR="10.8.0.7").get("/metrics").status_code == 200
    assert Client(REMOTE_ADDR="::1").get("/metrics").status_code == 200
    assert Client(REMOTE_ADDR="10.8.1.7").get("/metrics").status_code == 401
    settings.TRUSTED_PROXIES = ["127.0.0.1/32"]
    assert asked(**{"x-forwarded-for": "10.8.0.7"}).status_code == 200


def test_requests_count_against_the_limits_of_the_api(settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE = 2
    plain = token("ann", platform_role="admin")
    answers = [asked(plain) for _ in range(5)]
    statuses = [answer.status_code for answer in answers]
    assert 429 in statuses
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert (refused.json()["limit"], int(refused.headers["Retry-After"]) <= 60) == (2, True)


def test_other_methods_and_wishes(settings: Any) -> None:
    client = Client(headers={"authorization": f"Bearer {token('ann', platform_role='admin')}"})
    assert client.post("/metrics").status_code == 405
    assert client.head("/metrics").status_code == 200
    # As Prometheus asks.
    answer = client.get("/metrics", headers={"accept": "application/openmetrics-text;q=0.6,text/plain;q=0.4,*/*;q=0.1"})
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "ETag" not in answer.headers
    assert scraped(client)["tidesched_streams"] == {(): 0}
