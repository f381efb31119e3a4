"""So many requests at once, so many that wait, and what a request may have: what is beyond is refused by name."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from tests.waiting import until_async
from tests.web.front.asgi import Answer, Client
from tidesched_web.common.errors import DomainError
from tidesched_web.front import health, limiter, request_size
from tidesched_web.front.limiter import Limiter


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """In the place of Django: answers with what it received."""
    message = await receive()
    headers = [(b"came-with", dict(scope["headers"]).get(b"content-length", b""))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": message["body"]})


class Gate:
    """In the place of Django: works on a thread until it is opened."""

    def __init__(self, kind: bytes = b"text/plain") -> None:
        self.opened, self.running, self.threads, self.kind = threading.Event(), 0, set(), kind

    def _work(self) -> None:
        self.running += 1
        self.threads.add(threading.current_thread().name)
        self.opened.wait(60)

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": [(b"Content-Type", self.kind)]}
        if self.kind == b"text/event-stream":
            await send(start)
            self.running += 1
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        await sync_to_async(self._work)()
        await send(start)
        await send({"type": "http.response.body", "body": b"done"})


def ask(path: str, body: bytes = b"", hold: bool = False, **headers: str) -> Answer:
    async def asked() -> Answer:
        lines = {name.replace("_", "-"): text for name, text in headers.items()}
        return await Client(Limiter(echo)).ask("POST", path, body=body, headers=lines, hold=hold)

    return async_to_sync(asked)()


def run(story: Callable[[], Awaitable[None]]) -> None:
    async_to_sync(story)()


def test_so_many_run_so_many_wait_and_the_next_is_refused(settings):
    settings.WEB_REQUESTS_AT_ONCE, settings.WEB_WAITING = 2, 3

    async def story() -> None:
        gate = Gate()
        client = Client(Limiter(gate))
        first = [client.open("GET", "/api/v1/clusters/")[1].task for _ in range(5)]
        await until_async(lambda: gate.running == 2)
        refused = await client.ask("GET", "/api/v1/clusters/")
        assert (refused.status, refused.json()["code"], refused.json()["limit"]) == (503, "unavailable", 3)
        assert int(refused.headers["retry-after"]) > 0
        page = await client.ask("GET", "/clusters/")
        assert (page.status, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert (await client.ask("GET", "/healthz")).status == 200
        gate.opened.set()
        await asyncio.gather(*first)
        assert (gate.running, len(gate.threads)) == (5, 2)
        assert (await client.ask("GET", "/clusters/")).status == 200

    run(story)


def test_who_waits_too_long_is_refused(settings, monkeypatch):
    settings.WEB_REQUESTS_AT_ONCE = 1
    monkeypatch.setattr(limiter, "WAITING_SECONDS", 0.05)

    async def story() -> None:
        gate = Gate()
        client = Client(Limiter(gate))
        _answer, first = client.open("GET", "/clusters/")
        await until_async(lambda: gate.running == 1)
        refused = await client.ask("GET", "/api/v1/clusters/")
        assert (refused.status, "has waited for 0.05 seconds" in refused.json()["detail"]) == (503, True)
        gate.opened.set()
        await first.task

    run(story)


@pytest.mark.parametrize(("method", "doubt"), [("GET", False), ("POST", True)])
def test_a_request_whose_thread_hangs_is_answered_and_keeps_its_place(settings, monkeypatch, method, doubt):
    """A database that has stopped: the thread waits for it, and the client does not."""
    settings.WEB_REQUESTS_AT_ONCE = 1
    monkeypatch.setattr(limiter, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(limiter, "WAITING_SECONDS", 0.05)

    async def story() -> None:
        gate = Gate()
        client = Client(Limiter(gate))
        answer = await client.ask(method, "/api/v1/clusters/")
        assert (answer.status, answer.json()["code"]) == (503, "unavailable")
        assert ("not known whether" in answer.json()["detail"]) is doubt
        assert "has waited" in (await client.ask("GET", "/api/v1/clusters/")).json()["detail"]
        gate.opened.set()
        monkeypatch.setattr(limiter, "ANSWER_SECONDS", 60)
        monkeypatch.setattr(limiter, "WAITING_SECONDS", 60)
        assert (await client.ask("GET", "/clusters/")).body == b"done"

    run(story)


def test_an_event_stream_keeps_no_place(settings):
    settings.WEB_REQUESTS_AT_ONCE, settings.WEB_WAITING = 1, 5

    async def story() -> None:
        gate = Gate(b"text/event-stream")
        client = Client(Limiter(gate))
        streams = [client.open("GET", "/api/v1/stream") for _ in range(5)]
        await until_async(lambda: gate.running == 5)
        assert Counter(answer.status for answer, _connection in streams) == {200: 5}
        for _answer, connection in streams:
            await connection.leave()

    run(story)


def test_a_request_is_refused_at_once_while_the_database_is_away(monkeypatch):
    monkeypatch.setattr(health.Readiness, "is_away", lambda _self, name: name == "database")
    answer = ask("/api/v1/queues/")
    assert (answer.status, answer.json()["code"], "database" in answer.json()["detail"]) == (503, "unavailable", True)
    assert int(answer.headers["retry-after"]) > 0
    assert "The database does not answer" in ask("/clusters/").body.decode()
    assert ask("/static/css/console.css").status == 200


# -- what a request may have -------------------------------------------------------------------------------------------

FORM = "multipart/form-data; boundary=b"


@pytest.fixture
def small(settings):
    settings.WEB_BODY_BYTES = 100


def test_what_is_within_the_limit_arrives_whole_and_with_its_length(small):
    answer = ask("/api/v1/queues/", b"x" * 100)
    assert (answer.body, answer.headers["came-with"]) == (b"x" * 100, "100")
    assert ask("/tree/", b"x" * 200, content_type=FORM).body == b"x" * 200


@pytest.mark.parametrize("headers", [{}, {"content_length": "101"}])
def test_what_is_over_it_is_refused_by_name(small, headers):
    answer = ask("/api/v1/queues/", b"x" * 101, **headers)
    assert (answer.status, answer.headers["content-type"]) == (413, "application/problem+json")
    assert (answer.json()["code"], answer.json()["limit"]) == ("body_too_large", 100)
    assert answer.headers["x-request-id"] == answer.json()["request_id"]


def test_an_announcement_alone_is_enough(small):
    assert ask("/api/v1/queues/", b"x", hold=True, content_length="9" * 30).status == 413


def test_a_page_answers_with_a_page(small):
    answer = ask("/tree/", b"x" * 201, content_type=FORM)
    assert (answer.status, answer.headers["content-type"]) == (413, "text/html; charset=utf-8")
    page = answer.body.decode()
    assert "200 bytes" in page
    assert "css/console" in page  # the product's look, and a way on
    assert 'href="/"' in page
    assert "Request · 请求编号" in page


@pytest.mark.parametrize(("name", "limit"), [("cookie", 8192), ("content-type", 256), ("accept", 1024)])
def test_a_header_that_takes_long_to_read_is_bounded(name, limit):
    assert ask("/api/v1/queues/", **{name: "a" * limit}).status == 200
    answer = ask("/api/v1/queues/", **{name: "a" * (limit + 1)})
    assert (answer.status, answer.json()["code"], answer.json()["limit"]) == (431, "head_too_large", limit)


def test_bodies_that_are_held_have_a_bound_together_and_leave_their_room() -> None:
    bodies = request_size.Bodies()
    with bodies.room() as first, bodies.room() as second:
        first(request_size.MOST_HELD - 1)
        second(1)
        with pytest.raises(DomainError) as refused:
            second(1)
        assert (refused.value.code, refused.value.extra["limit"]) == ("unavailable", request_size.MOST_HELD)
    assert bodies.held == 0
