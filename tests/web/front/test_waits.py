"""A request that waits for a cluster or a worker has no turn meanwhile; how many wait is bounded in all ways."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from tests.waiting import until_async
from tests.web.front.asgi import Answer, Client
from tidesched_web.common import off_turn
from tidesched_web.front import waits as waits_module
from tidesched_web.front.application import Front
from tidesched_web.front.waits import Waits


class Views:
    """Stand where Django stands: each path is a view that runs on the thread of its turn."""

    def __init__(self, **views: Callable[[], str]) -> None:
        self.views, self.runs = views, Counter[str]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        name = scope["path"].strip("/")
        self.runs[name] += 1
        text = await sync_to_async(self.views[name], thread_sensitive=True)()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": text.encode()})


@pytest.fixture(autouse=True)
def limits(settings) -> None:
    settings.WEB_REQUESTS_AT_ONCE = settings.WEB_REQUESTS_OF_ONE = 1


def run(story: Callable[[], Any]) -> None:
    async_to_sync(story)()


def test_a_request_that_waits_leaves_its_turn_to_others_and_goes_on_with_what_came() -> None:
    answered, made = threading.Event(), list[int]()

    def slow() -> str:
        number = off_turn.once("row", lambda: made.append(1) or len(made))  # type: ignore[func-returns-value]  # counts
        came = off_turn.wait_for("cluster", lambda: answered.wait(60) and "an answer", otherwise="none")
        return f"{came} for row {number}"

    async def story() -> None:
        views = Views(slow=slow, fast=lambda: "at once")
        client = Client(Front(views))
        waiting, connection = client.open("GET", "/slow")
        await until_async(lambda: views.runs["slow"] == 1)
        assert [(await client.ask("GET", "/fast")).body for _ in range(3)] == [b"at once"] * 3
        assert not waiting.begun.is_set()
        answered.set()
        await connection.task
        assert (waiting.status, waiting.body) == (200, b"an answer for row 1")
        assert (views.runs["slow"], made) == (2, [1]), "the view ran twice, and made its row once"

    run(story)


def test_what_the_work_raises_is_raised_in_the_view() -> None:
    def refused() -> str:
        raise ValueError("no such cluster")

    def view() -> str:
        try:
            return off_turn.wait_for("cluster", refused, otherwise="none")
        except ValueError as error:
            return str(error)

    async def story() -> None:
        assert (await Client(Front(Views(view=view))).ask("GET", "/view")).body == b"no such cluster"

    run(story)


def test_a_request_does_not_wait_for_ever() -> None:
    def view() -> str:
        return ",".join(off_turn.wait_for(f"part {number}", lambda: "x", otherwise="-") for number in range(9))

    async def story() -> None:
        views = Views(view=view)
        assert (await Client(Front(views)).ask("GET", "/view")).body == b"x,x,x,x,x,x,-,-,-"
        assert views.runs["view"] == off_turn.MOST_WAITS + 1

    run(story)


def asked(waits: Waits, key: str, person: str, subject: str, work: Callable[[], Any]) -> asyncio.Future[Any]:
    return asyncio.ensure_future(waits.answer(off_turn.Wait(key, work, subject), person))


@pytest.mark.parametrize(
    ("person", "subject"),
    [("ann", "other"), ("bob", "cluster 1")],
    ids=["as many of one person", "as many for one cluster"],
)
def test_one_more_than_may_wait_goes_on_without(person: str, subject: str) -> None:
    answered = threading.Event()

    async def story() -> None:
        waits = Waits(at_once=10, by_person=2, by_subject=2)
        work = lambda: answered.wait(60)  # noqa: E731 - named once, asked twice
        some = [asked(waits, f"dry run {number}", "ann", "cluster 1", work) for number in range(2)]
        await until_async(lambda: waits.waiting == 2)
        assert await asked(waits, "one more", person, subject, work) == off_turn.REFUSED
        answered.set()
        assert [one.value for one in await asyncio.gather(*some)] == [True, True]
        assert (await asked(waits, "one more", person, subject, work)).value is True, "places are free again"
        assert waits.waiting == 0

    run(story)


def test_all_together_are_bounded_and_the_same_question_is_asked_once() -> None:
    answered, asks = threading.Event(), list[int]()

    def work() -> int:
        asks.append(1)
        answered.wait(60)
        return 7

    async def story() -> None:
        waits = Waits(at_once=3, by_person=2, by_subject=9)
        some = [asked(waits, "dry run", person, "cluster 1", work) for person in ("ann", "bob", "eve")]
        await until_async(lambda: waits.waiting == 3)
        assert (await asked(waits, "other", "zoe", "cluster 2", work)).refused
        answered.set()
        assert [one.value for one in await asyncio.gather(*some)] == [7, 7, 7]
        assert len(asks) == 1

    run(story)


def test_a_work_that_does_not_end_keeps_its_place_when_nothing_waits_for_it_any_more(monkeypatch) -> None:
    """A server that sends a byte now and then could hold one thread more with each question."""
    monkeypatch.setattr(waits_module, "LONGEST_SECONDS", 0.05)
    ended, begun = threading.Event(), list[int]()

    def work() -> int:
        begun.append(1)
        ended.wait(60)
        return 7

    async def story() -> None:
        waits = Waits(at_once=3, by_person=9, by_subject=2)
        for number in range(4):
            assert (await asked(waits, f"dry run {number}", "ann", "cluster 1", work)).refused
        assert (waits.waiting, len(begun)) == (0, 2), "two for this cluster"
        for number in range(2):
            assert (await asked(waits, f"other {number}", "ann", "", work)).refused
        assert len(begun) == 3, "three in all"
        ended.set()
        await until_async(lambda: waits.working == 0)
        assert (await asked(waits, "dry run 3", "ann", "cluster 1", lambda: 8)).value == 8

    run(story)


def test_where_the_machine_gives_no_thread_the_next_one_asks_again(monkeypatch) -> None:
    async def story() -> None:
        waits = Waits(at_once=3, by_person=2, by_subject=2)
        with monkeypatch.context() as poor:
            poor.setattr(threading.Thread, "start", no_thread)
            assert (await asked(waits, "dry run", "ann", "cluster 1", lambda: 7)).refused
        assert (await asked(waits, "dry run", "ann", "cluster 1", lambda: 7)).value == 7

    def no_thread(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    run(story)


def test_outside_of_the_front_the_wait_is_in_place() -> None:
    assert off_turn.wait_for("cluster", lambda: 7, otherwise=None) == 7
    assert not off_turn.is_possible()


def test_a_client_that_has_left_ends_nothing_of_others() -> None:
    answered = threading.Event()

    async def story() -> None:
        views = Views(slow=lambda: str(off_turn.wait_for("cluster", lambda: answered.wait(60), otherwise=None)))
        client = Client(Front(views))
        connections = [client.open("GET", "/slow") for _ in range(2)]
        await until_async(lambda: views.runs["slow"] == 2)
        connections[0][1].left.set()
        answered.set()
        await asyncio.gather(*(connection.task for _answer, connection in connections))
        answers: list[Answer] = [answer for answer, _connection in connections]
        assert answers[1].body == b"True"

    run(story)


def test_a_view_that_finds_much_to_do_goes_on_in_a_turn_of_the_large_works(settings) -> None:
    settings.WEB_REQUESTS_AT_ONCE = settings.WEB_REQUESTS_OF_ONE = 3
    settings.WEB_DEAR_REQUESTS = 1
    go_on, running = threading.Event(), list[str]()

    def large() -> str:
        off_turn.need_dear_turn()
        running.append("large")
        assert go_on.wait(60)
        return off_turn.wait_for("cluster", lambda: "an answer", otherwise="none")

    async def story() -> None:
        views = Views(large=large, small=lambda: "at once")
        client = Client(Front(views))
        asked = [client.open("GET", "/large") for _ in range(3)]
        await until_async(lambda: views.runs["large"] == 4)  # each finds it out once, and the first goes on
        assert [(await client.ask("GET", "/small")).body for _ in range(3)] == [b"at once"] * 3
        assert running == ["large"], "one at a time"
        go_on.set()
        for answer, connection in asked:
            await connection.task
            assert (answer.status, answer.body) == (200, b"an answer")
        assert views.runs["large"] == 3 * 3, "found out, waited, and answered"
        assert (await client.ask("GET", "/large")).body == b"an answer"
        assert views.runs["large"] == 3 * 3 + 2, "it is known now, and not found out anew"
        other = Client(client.application, "10.0.0.2")
        assert (await other.ask("GET", "/large")).body == b"an answer"
        assert views.runs["large"] == 3 * 3 + 2 + 3, "known of who met it, since others may have a small one there"

    run(story)
