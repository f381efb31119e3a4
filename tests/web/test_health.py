"""`/healthz`, `/readyz`, the signs of life behind them, and the broker's address."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.core.cache import cache
from django.db import connection, transaction

from tests.waiting import until
from tests.web.front.asgi import Answer, Client
from tests.web.left_connections import none_left_open
from tidesched_web.celery import broker_url
from tidesched_web.common import alive, incidents
from tidesched_web.common.incidents import Ending
from tidesched_web.front import health
from tidesched_web.front.health import Readiness
from tidesched_web.front.limiter import Limiter

__all__ = ["none_left_open"]


async def nothing(scope, receive, send) -> None:
    raise AssertionError("a probe went further than the limiter")


def ask(method: str, path: str) -> Answer:
    async def asked() -> Answer:
        return await Client(Limiter(nothing)).ask(method, path)

    return async_to_sync(asked)()


@asynccontextmanager
async def served() -> AsyncIterator[Client]:
    """A front end between the start and the end of its web process."""
    front, begun, asked = Limiter(nothing), asyncio.Event(), asyncio.Queue()

    async def send(_message) -> None:
        begun.set()

    asked.put_nowait({"type": "lifespan.startup"})
    serving = asyncio.create_task(front({"type": "lifespan"}, asked.get, send))
    await begun.wait()
    yield Client(front)
    asked.put_nowait({"type": "lifespan.shutdown"})
    await serving


@pytest.fixture
def all_alive() -> Iterator[None]:
    for role in alive.ROLES:
        alive.mark(role)
    yield
    cache.clear()


@pytest.fixture(autouse=True)
def connections(none_left_open: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The connection of each front end ends with its test."""
    made: list[psycopg.Connection] = []
    connect = health.connect
    monkeypatch.setattr(health, "connect", lambda: made.append(connect()) or made[-1])
    yield
    until(lambda: all(thread.name != "readiness" for thread in threading.enumerate()))
    for each in made:
        each.close()


def missing() -> dict[str, str]:
    """What the first look of the real checks finds."""
    readiness = Readiness(health.checks())
    readiness.look()
    return readiness.missing


def test_a_check_is_missing_until_it_succeeds_and_again_after_three_failures_in_a_row() -> None:
    reasons = {"database": "away", "redis": ""}
    readiness = Readiness({name: lambda name=name: reasons[name] for name in reasons})
    assert readiness.missing == dict.fromkeys(reasons, "not looked at yet")
    readiness.look()
    assert readiness.missing == {"database": "away"}
    reasons["database"] = ""
    readiness.look()
    assert readiness.missing == {}
    reasons["redis"] = "slow"
    readiness.look()
    readiness.look()
    assert readiness.missing == {}
    reasons["redis"] = "gone"
    readiness.look()
    assert readiness.missing == {"redis": "gone"}
    reasons["redis"] = ""
    readiness.look()
    reasons["redis"] = "slow"
    readiness.look()
    assert readiness.missing == {}, "its failures are counted anew"


def test_a_check_that_breaks_has_failed() -> None:
    readiness = Readiness({"database": lambda: str(1 // 0), "redis": lambda: ""})
    readiness.look()
    assert readiness.missing == {"database": "the check failed: ZeroDivisionError"}


def test_healthz_asks_nobody() -> None:
    answer = ask("GET", "/healthz")
    assert answer.status == 200
    assert answer.json()["status"] == "alive"


@pytest.mark.django_db
def test_readyz_looks_by_itself_and_answers_while_a_look_hangs(
    all_alive: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, hangs, over = [], threading.Event(), threading.Event()

    def redis() -> str:
        looks.append(1)
        if hangs.is_set():
            looks.append("hangs")
            over.wait(60)
        return ""

    monkeypatch.setattr(health, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(health, "_redis", redis)

    async def story() -> list[int]:
        async with served() as client:
            await asyncio.to_thread(until, lambda: len(looks) > 3)
            first = await client.ask("GET", "/readyz")
            hangs.set()
            await asyncio.to_thread(until, lambda: "hangs" in looks)
            second = await client.ask("GET", "/readyz")
            over.set()
        return [first.status, second.status]

    try:
        assert async_to_sync(story)() == [200, 200]
    finally:
        over.set()


def test_readyz_says_before_the_first_look_that_there_was_none() -> None:
    answer = ask("GET", "/readyz")
    assert answer.status == 503
    assert set(json.loads(answer.body)["missing"]) == {"database", "redis", "processes"}


def test_a_check_without_an_answer_has_failed_though_it_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has stopped ends no statement."""
    monkeypatch.setattr(health, "ANSWER_SECONDS", 0.0)
    inside: list[dict[str, str]] = []
    readiness = Readiness({"database": lambda: inside.append(readiness.missing) or ""})
    assert not readiness.is_away("database"), "nobody has looked"
    readiness.look()
    assert not readiness.is_away("database")
    readiness.look()
    assert inside[1] == {"database": "no answer for 0 seconds"}


@pytest.mark.django_db
def test_ready_when_all_have_spoken(all_alive: None) -> None:
    assert missing() == {}


@pytest.mark.django_db
@pytest.mark.parametrize("role", alive.ROLES)
def test_a_silent_role_is_named(all_alive: None, role: str) -> None:
    cache.delete(f"alive:{role}")
    assert missing() == {"processes": f"no sign of life from: {role}"}


@pytest.mark.django_db
def test_a_role_that_ends_each_time_is_named_whatever_it_said_before(
    all_alive: None, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDESCHED_PROGRESS_DIR", str(tmp_path))
    incidents.write_endings(tmp_path, {"work": Ending("work", 22, "PermissionError: [Errno 13] Permission denied")})
    assert missing() == {"processes": "no sign of life from: work (ended at each of 22 starts)"}
    incidents.write_endings(tmp_path, {})
    assert missing() == {}


@pytest.mark.django_db
def test_the_demo_needs_a_session(all_alive: None, settings) -> None:
    settings.DEMO = True
    assert missing() == {"demo": "the demo cluster has not had a session yet"}


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_hangs_is_given_up(all_alive: None, settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DEMO = True
    monkeypatch.setattr(health, "ANSWER_SECONDS", 1.0)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE scheduling_session")
        assert missing()["demo"] == "unknown while the database does not answer"


@pytest.mark.django_db
def test_redis_away_is_named_and_no_error(settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.core.cache.backends.redis import RedisCache
    from redis import ConnectionError as RedisAway

    def away(*_: object, **__: object) -> None:
        raise RedisAway("gone")

    monkeypatch.setattr(RedisCache, "get", away)
    monkeypatch.setattr(RedisCache, "get_many", away)
    settings.REDIS_URL = "redis://:secret@store.example:6380/0"
    assert missing() == {
        "redis": "Redis does not answer: ConnectionError at store.example:6380",
        "processes": "unknown while Redis does not answer",
    }


@pytest.mark.parametrize("method", ["post", "put", "delete"])
def test_probes_are_only_read(method: str) -> None:
    assert ask(method.upper(), "/healthz").status == 405
    assert ask(method.upper(), "/readyz").status == 405


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
