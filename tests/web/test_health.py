"""`/healthz`, `/readyz`, the signs of life behind them, and the broker's address."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator

import pytest
from asgiref.sync import async_to_sync
from django.core.cache import cache

from tests.web.front.asgi import Answer, Client
from tests.web.left_connections import none_left_open
from tidesched_web.celery import broker_url
from tidesched_web.common import alive
from tidesched_web.front import health
from tidesched_web.front.application import Front

__all__ = ["none_left_open"]


async def nothing(scope, receive, send) -> None:
    raise AssertionError("a probe went further than the front")


def ask(method: str, path: str) -> Answer:
    async def asked() -> Answer:
        return await Client(Front(nothing)).ask(method, path)

    return async_to_sync(asked)()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for happens on a thread
            await asyncio.sleep(0.01)


@pytest.fixture
def all_alive():
    for role in alive.ROLES:
        alive.mark(role)
    yield
    cache.clear()


@pytest.fixture(autouse=True)
def probes(none_left_open: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The thread and the connection of each front end with its test."""
    made: list[health.Probes] = []
    begin = health.Probes.__init__
    monkeypatch.setattr(health.Probes, "__init__", lambda self: begin(self) or made.append(self))
    yield
    for one in made:
        one._executor.shutdown()
        if one._checks._connection is not None:
            one._checks._connection.close()


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


@pytest.mark.django_db
def test_findings_are_made_anew_while_there_are_questions_and_a_late_one_holds_nothing_up(
    all_alive: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, looks = threading.Event(), []
    found = health.Checks.missing
    monkeypatch.setattr(health, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(health.Checks, "missing", lambda self: looks.append(1) or found(self))

    async def story() -> list[int]:
        client = Client(Front(nothing))
        first = (await client.ask("GET", "/readyz")).status
        await until(lambda: len(looks) > 3)
        monkeypatch.setattr(health.Checks, "_database", lambda _self: over.wait(30) and "")
        held = len(looks)
        await until(lambda: len(looks) > held)
        monkeypatch.setattr(health, "PATIENCE_SECONDS", 0.0)
        second = (await client.ask("GET", "/readyz")).status
        monkeypatch.setattr(health, "USABLE_SECONDS", 0.0)
        return [first, second, (await client.ask("GET", "/readyz")).status]

    try:
        assert async_to_sync(story)() == [200, 200, 503]
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
