"""Requests are counted by the name of their route, and by all processes together."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from tests.web.metrics.scrape import labels, scraped, token
from tidesched_web.common.errors import DomainError
from tidesched_web.front import answers
from tidesched_web.metrics import traffic

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    traffic._pending.clear()
    traffic._client().flushdb()
    return Client(headers={"authorization": f"Bearer {token('root', platform_role='admin')}"})


def test_an_address_is_told_by_its_route_and_never_by_its_path(client: Client) -> None:
    for path in ("queues/1/", "queues/2/", "queues/", "nowhere/"):
        client.get(f"/api/v1/{path}")
    client.get("/no/such/page")
    client.get("/static/no-such.css")
    client.generic("BREW", "/api/v1/queues/")
    found = scraped(client)["tidesched_http_requests_total"]
    assert found == {
        labels(method="GET", route="api:queues-detail", status="404"): 2,
        labels(method="GET", route="api:queues-list", status="200"): 1,
        labels(method="GET", route="tidesched_web.api.problem_json.unknown_address", status="404"): 1,
        labels(method="GET", route="", status="404"): 1,
        labels(method="GET", route="static", status="404"): 1,
        labels(method="other", route="api:queues-list", status="405"): 1,
    }


def test_what_is_refused_before_django_is_counted(client: Client) -> None:
    async def send(_message: Any) -> None:
        pass

    scope = {"method": "PUT", "path": "/api/v1/queues/", "headers": [], "client": ("127.0.0.1", 1)}
    async_to_sync(answers.refuse)(send, scope, DomainError("unavailable", "busy"))
    assert scraped(client)["tidesched_http_requests_total"] == {labels(method="PUT", route="", status="503"): 1}


def test_the_figures_of_all_processes_are_added(client: Client) -> None:
    traffic.count("GET", "a", 200, 0.02)
    traffic.flush(3)
    traffic.count("GET", "a", 200, 7)
    traffic._client().hset(traffic._STREAMS, "other 1", f"[4, {traffic.time.time()}]")
    traffic._client().hset(traffic._STREAMS, "gone 1", f"[9, {traffic.time.time() - 60}]")
    found = scraped(client)
    seconds = labels(method="GET", route="a")
    assert found["tidesched_http_requests_total"] == {labels(method="GET", route="a", status="200"): 2}
    assert found["tidesched_http_request_seconds_sum"][seconds] == pytest.approx(7.02)
    buckets = {dict(of)["le"]: figure for of, figure in found["tidesched_http_request_seconds_bucket"].items()}
    assert (buckets["0.01"], buckets["0.025"], buckets["5.0"], buckets["10.0"], buckets["+Inf"]) == (0, 1, 1, 2, 2)
    assert found["tidesched_streams"] == {(): 4}, "none is open in this process"


def test_while_redis_is_away_the_rest_is_told_and_nothing_is_lost(client: Client, settings: Any) -> None:
    address = settings.REDIS_URL
    traffic._client.cache_clear()
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    try:
        traffic.count("GET", "a", 200, 0.02)
        found = scraped(client)
        assert "tidesched_streams" not in found
        assert "tidesched_http_requests_total" not in found
    finally:
        settings.REDIS_URL = address
        traffic._client.cache_clear()
    assert scraped(client)["tidesched_http_requests_total"][labels(method="GET", route="a", status="200")] == 1
