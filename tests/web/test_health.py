"""`/healthz`, `/readyz`, the signs of life behind them, and the broker's address."""

import json

import pytest
from django.core.cache import cache
from django.test import Client

from tidesched_web.celery import broker_url
from tidesched_web.common import alive


@pytest.fixture
def all_alive():
    for role in alive.ROLES:
        alive.mark(role)
    yield
    cache.clear()


def missing(client: Client) -> dict[str, str]:
    answer = client.get("/readyz")
    body = json.loads(answer.content)
    assert (answer.status_code == 200) is (not body["missing"])
    return body["missing"]


def test_healthz_asks_nobody(client: Client) -> None:
    answer = client.get("/healthz")  # without a database: the fixture `db` is not asked for
    assert answer.status_code == 200
    assert json.loads(answer.content)["status"] == "alive"


@pytest.mark.django_db
def test_ready_when_all_have_spoken(client: Client, all_alive: None) -> None:
    assert missing(client) == {}


@pytest.mark.django_db
@pytest.mark.parametrize("role", alive.ROLES)
def test_a_silent_role_is_named(client: Client, all_alive: None, role: str) -> None:
    cache.delete(f"alive:{role}")
    assert missing(client) == {"processes": f"no sign of life from: {role}"}


@pytest.mark.django_db
def test_the_demo_needs_a_session(client: Client, all_alive: None, settings) -> None:
    settings.DEMO = True
    assert missing(client) == {"demo": "the demo cluster has not had a session yet"}


@pytest.mark.django_db
def test_redis_away_is_named_and_no_error(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from redis import ConnectionError as RedisAway

    def away(*_: object, **__: object) -> None:
        raise RedisAway("gone")

    monkeypatch.setattr(cache, "get", away)
    monkeypatch.setattr(cache, "get_many", away)
    assert missing(client) == {
        "redis": "Redis does not answer: ConnectionError",
        "processes": "unknown while Redis does not answer",
    }


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_probes_are_only_read(client: Client, method: str) -> None:
    assert getattr(client, method)("/healthz").status_code == 405
    assert getattr(client, method)("/readyz").status_code == 405


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
