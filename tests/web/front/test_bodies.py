"""Bodies: a limit of bytes by kind, announced or not, and a limit of time; the answer names the limit."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import async_to_sync

from tests.waiting import until_async
from tests.web.front.asgi import Answer, Client
from tidesched_web.front import bodies
from tidesched_web.front.application import Front
from tidesched_web.front.persons import Person


async def echo(scope, receive, send) -> None:
    """In the place of Django: answers with what it received."""
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def ask(path: str, body: bytes, hold: bool = False, **headers: str) -> Answer:
    async def asked() -> Answer:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        return await Client(Front(echo)).ask("POST", path, body=body, headers=named, hold=hold)

    return async_to_sync(asked)()


@pytest.fixture(autouse=True)
def limits(settings):
    settings.WEB_BODY_BYTES, settings.WEB_FORM_BYTES, settings.WEB_BODY_SECONDS = 100, 300, 0.05


def test_what_is_within_the_limit_arrives_whole():
    assert ask("/api/v1/queues/", b"x" * 100).body == b"x" * 100
    assert ask("/tree/", b"x" * 300, content_type="multipart/form-data; boundary=b").body == b"x" * 300


@pytest.mark.parametrize("headers", [{}, {"content_length": "101"}])
def test_what_is_over_it_is_refused_by_name(headers):
    answer = ask("/api/v1/queues/", b"x" * 101, **headers)
    assert (answer.status, answer.headers["content-type"]) == (413, "application/problem+json")
    assert (answer.json()["code"], answer.json()["limit"]) == ("body_too_large", 100)
    assert answer.headers["x-request-id"] == answer.json()["request_id"]


def test_a_page_answers_with_a_page():
    answer = ask("/tree/", b"x" * 301, content_type="multipart/form-data; boundary=b")
    assert (answer.status, answer.headers["content-type"]) == (413, "text/html; charset=utf-8")
    page = answer.body.decode()
    assert "300 bytes" in page
    assert "css/console" in page  # the product's look, and a way on
    assert 'href="/"' in page
    assert "Request · 请求编号" in page


def test_a_limit_is_said_as_people_write_it(settings):
    settings.WEB_FORM_BYTES = 2**20
    answer = ask("/tree/", b"x", content_type="multipart/form-data; boundary=b", content_length=str(2**21))
    assert "may have 1 MiB (1048576 bytes) here" in answer.body.decode()


def test_an_announcement_alone_is_enough():
    assert ask("/api/v1/queues/", b"x", hold=True, content_length="9" * 30).status == 413


def test_a_body_that_does_not_end_is_given_up():
    answer = ask("/api/v1/queues/", b"x", hold=True)
    assert (answer.status, answer.json()["code"]) == (408, "body_too_slow")


def test_bodies_that_are_held_leave_room_for_the_people_who_are_signed_in(settings):
    settings.WEB_BODIES_BYTES = 400
    held = bodies.Held()
    strangers = [Person(f"address {number}", stranger=True) for number in range(3)]
    with held.of(strangers[0]) as first, held.of(strangers[1]) as second:
        first(150)
        with pytest.raises(bodies.TooMany):  # strangers have half
            second(51)
        with held.of(Person("account 7", stranger=False)) as mine:
            mine(200)
            with pytest.raises(bodies.TooMany):  # one account has half
                mine(1)
        with held.of(Person("account 8", stranger=False)) as other:
            other(200)
    with held.of(strangers[2]) as again:
        again(200)  # what ended counts no more


def test_a_body_without_room_is_refused_and_what_follows_it_is_taken(settings):
    settings.WEB_BODIES_BYTES = 400

    async def story() -> list[Answer]:
        front = Front(echo)
        client = Client(front)
        slow = [asyncio.create_task(client.ask("POST", "/api/v1/queues/", body=b"x" * 90, hold=True)) for _ in range(2)]
        await until_async(lambda: front._bodies._all == 2 * 90)
        refused = await client.ask("POST", "/api/v1/queues/", body=b"x" * 90)
        await asyncio.gather(*slow)
        return [refused, await client.ask("POST", "/api/v1/queues/", body=b"x" * 90)]

    refused, taken = async_to_sync(story)()
    assert (refused.status, refused.json()["code"], taken.status) == (503, "unavailable", 200)
    assert (refused.json()["limit"], "200 bytes" in refused.json()["detail"]) == (200, True)
    assert refused.headers["retry-after"]


def test_a_large_body_waits_for_others_alike_and_holds_up_nothing_else(settings):
    """Sixteen trees of 20,000 queues at a time held all threads, and the interpreter, of a web process."""
    settings.WEB_BODIES_BYTES, settings.WEB_DEAR_BODY_BYTES, settings.WEB_REQUESTS_AT_ONCE = 10_000, 50, 4
    settings.WEB_REQUESTS_OF_ONE, settings.WEB_DEAR_REQUESTS = 4, 1

    async def story() -> None:
        go_on = asyncio.Event()
        running: list[int] = []

        async def slow(scope, receive, send) -> None:
            message = await receive()
            running.append(len(message["body"]))
            if len(message["body"]) > settings.WEB_DEAR_BODY_BYTES:
                await go_on.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        client = Client(Front(slow))
        dear = [asyncio.create_task(client.ask("POST", "/api/v1/queues/", body=b"x" * 51)) for _ in range(16)]
        await until_async(lambda: running)
        small = [await client.ask("POST", "/api/v1/queues/", body=b"x" * 50) for _ in range(3)]
        assert running == [51, 50, 50, 50]
        assert {one.status for one in small} == {200}
        go_on.set()
        assert {(await one).status for one in dear} == {200}
        assert running.count(51) == 16

    async_to_sync(story)()
