"""`/healthz`, `/readyz`, the signs of life behind them, and the broker's address."""

import json
import threading

import pytest
from asgiref.sync import async_to_sync
from django.core.cache import cache

from tests.web.front.asgi import Answer, Client
from tidesched_web.celery import broker_url
from tidesched_web.common import alive
from tidesched_web.front import health
from tidesched_web.front.application import Front


async def nothing(scope, receive, send) -> None:
    raise AssertionError("a probe went further than the front")


def ask(method: str, path: str) -> Answer:
    async def asked() -> Answer:
        return await Client(Front(nothing)).ask(method, path)

    return async_to_sync(asked)()


@pytest.fixture
def all_alive():
    for role in alive.ROLES:
        alive.mark(role)
    yield
    cache.clear()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "PATIENCE_SECONDS", 10.0)


def missing() -> dict[str, str]:
    answer = ask("GET", "/readyz")
    body = json.loads(answer.body)
    assert (answer.status == 200) is (not body["missing"])
    return body["missing"]


def test_healthz_asks_nobody() -> None:
    answer = ask("GET", "/healthz")
    assert answer.status == 200
    assert answer.json()["status"] == "alive"


@pytest.mark.django_db
def test_ready_when_all_have_spoken(all_alive: None) -> None:
    assert missing() == {}


@pytest.mark.django_db
@pytest.mark.parametrize("role", alive.ROLES)
def test_a_silent_role_is_named(all_alive: None, role: str) -> None:
    cache.delete(f"alive:{role}")
    assert missing() == {"processes": f"no sign of life from: {role}"}


@pytest.mark.django_db
def test_the_demo_needs_a_session(all_alive: None, settings) -> None:
    settings.DEMO = True
    assert missing() == {"demo": "the demo cluster has not had a session yet"}


@pytest.mark.django_db
def test_redis_away_is_named_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.cache.backends.redis import RedisCache
    from redis import ConnectionError as RedisAway

    def away(*_: object, **__: object) -> None:
        raise RedisAway("gone")

    monkeypatch.setattr(RedisCache, "get", away)
    monkeypatch.setattr(RedisCache, "get_many", away)
    assert missing() == {
        "redis": "Redis does not answer: ConnectionError",
        "processes": "unknown while Redis does not answer",
    }


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_probes_are_only_read(method: str) -> None:
    assert ask(method.upper(), "/healthz").status == 405
    assert ask(method.upper(), "/readyz").status == 405


@pytest.mark.django_db
def test_checks_that_hang_are_an_answer_too(all_alive: None, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(health, "PATIENCE_SECONDS", 0.15)
    monkeypatch.setattr(health.Checks, "_database", lambda _self: over.wait(30) and "")
    try:
        assert missing() == {"checks": "database and Redis have not answered within 150 ms"}
    finally:
        over.set()


@pytest.mark.parametrize(
    ("redis", "broker"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("rediss://user:pw@host/1", "rediss://user:pw@host/1"),
        ("unix:///run/valkey.sock?db=0", "redis+socket:///run/valkey.sock?virtual_host=0"),
        ("unix:///run/valkey.sock", "redis+socket:///run/valkey.sock"),
    ],
)
def test_the_broker_is_the_redis_of_the_settings(redis: str, broker: str) -> None:
    assert broker_url(redis) == broker
