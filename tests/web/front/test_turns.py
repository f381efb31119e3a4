"""Turns: bounded in all and by person, fair between persons, and never more threads than turns."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings

from tests.waiting import PATIENCE
from tests.web.front.asgi import Client
from tidesched_web.common import request_context
from tidesched_web.front import application
from tidesched_web.front.persons import SHARES_OF_AN_ADDRESS, Person, Persons, without_quoted_cookies
from tidesched_web.front.turns import Full, TooManyOfOne, Turn, Turns


def turns(**limits: float) -> Turns:
    numbers = {
        "at_once": 4,
        "by_person": 2,
        "dear": 1,
        "waiting_by_person": 3,
        "waiting": 6,
        "patience": PATIENCE,
    } | limits
    return Turns(**numbers)  # type: ignore[arg-type]


def known(name: str) -> Person:
    return Person(name, stranger=False)


async def ended(some: Turns, turn: Turn) -> None:
    """End a turn and wait until its thread is free."""
    some.finish(turn, lambda: None)
    done = asyncio.get_running_loop().run_in_executor(turn.executor, lambda: None)
    await done
    await asyncio.sleep(0)


def run(test):
    async_to_sync(test)()


def test_one_person_has_so_many_and_leaves_room_for_others():
    async def story():
        some = turns()
        for _ in range(2):
            await some.take(known("ann"))
        third = asyncio.ensure_future(some.take(known("ann")))
        await asyncio.sleep(0)
        assert not third.done()
        await some.take(known("bob"))  # at once, although another one waits
        third.cancel()

    run(story)


def test_waiting_persons_take_turns():
    async def story():
        some = turns(at_once=1, by_person=1)
        turn = await some.take(known("zoe"))
        order: list[str] = []

        async def wait(person: str) -> None:
            mine = await some.take(known(person))
            order.append(person)
            await ended(some, mine)

        waiting = [asyncio.ensure_future(wait(person)) for person in ("ann", "ann", "ann", "bob", "cai")]
        await asyncio.sleep(0)
        await ended(some, turn)
        await asyncio.gather(*waiting)
        assert order == ["ann", "bob", "cai", "ann", "ann"]
        assert some.waiting == 0

    run(story)


def test_who_waits_too_often_and_who_waits_too_long_is_refused():
    async def story():
        some = turns(at_once=1, patience=PATIENCE)
        await some.take(known("ann"))
        waiting = [asyncio.ensure_future(some.take(known("bob"))) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyOfOne) as refused:
            await some.take(known("bob"))
        assert refused.value.limit == 3
        more = [asyncio.ensure_future(some.take(known(person))) for person in ("cai", "dee", "eva")]
        await asyncio.sleep(0)
        with pytest.raises(Full) as full:
            await some.take(known("fay"))
        assert (full.value.limit, full.value.waited) == (6, False)
        for waits in (*waiting, *more):
            waits.cancel()
        await asyncio.gather(*waiting, *more, return_exceptions=True)
        assert some.waiting == 0
        some._patience = 0.05
        with pytest.raises(Full) as late:
            await some.take(known("bob"))
        assert (late.value.limit, late.value.waited) == (0.05, True)
        assert some.waiting == 0

    run(story)


def test_a_client_that_left_frees_no_thread_that_still_works():
    async def story():
        some = turns(at_once=1)
        first = await some.take(known("ann"))
        go_on = threading.Event()
        busy = asyncio.get_running_loop().run_in_executor(first.executor, go_on.wait, PATIENCE)
        some.finish(first, lambda: None)  # the request is over for the client
        second = asyncio.ensure_future(some.take(known("bob")))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not second.done()
        go_on.set()
        await busy
        assert (await second).person == known("bob")

    run(story)


def test_a_hundred_persons_never_have_more_threads_than_turns():
    async def story():
        some = turns(at_once=3, waiting=1000, waiting_by_person=1000)
        at_once: Counter[str] = Counter()
        most = 0

        async def one(person: str) -> None:
            nonlocal most
            mine = await some.take(known(person))
            at_once["all"] += 1
            most = max(most, at_once["all"])
            await asyncio.get_running_loop().run_in_executor(mine.executor, lambda: None)
            at_once["all"] -= 1
            some.finish(mine, lambda: None)

        await asyncio.gather(*(one(f"person {number % 100}") for number in range(400)))
        assert most == 3

    run(story)


def test_strangers_leave_a_turn_and_half_of_the_places_to_those_who_are_signed_in():
    async def story():
        some = turns()
        strangers = [Person(f"address {number}", stranger=True) for number in range(8)]
        held = [await some.take(stranger) for stranger in strangers[:3]]
        waiting = [asyncio.ensure_future(some.take(stranger)) for stranger in strangers[3:6]]
        await asyncio.sleep(0)
        with pytest.raises(Full):
            await some.take(strangers[6])
        mine = await some.take(known("ann"))  # at once
        await ended(some, mine)
        assert not any(one.done() for one in waiting)  # the turn that is free is not for them
        await ended(some, held[0])
        assert [one.done() for one in waiting] == [True, False, False]
        for one in waiting:
            one.cancel()

    run(story)


def test_dear_requests_run_one_at_a_time_and_others_pass_them_by():
    async def story():
        some = turns()
        first = await some.take(known("ann"), dear=True)
        waiting = [asyncio.ensure_future(some.take(known(name), dear=True)) for name in ("ann", "bob")]
        await asyncio.sleep(0)
        light = [await some.take(known(name)) for name in ("ann", "bob", "cai")]  # at once
        assert not any(one.done() for one in waiting)
        await ended(some, light[0])
        assert not any(one.done() for one in waiting)  # a thread is free, and not for them
        await ended(some, first)
        assert [one.done() for one in waiting] == [True, False]
        await ended(some, waiting[0].result())
        await ended(some, await waiting[1])
        assert (some.waiting, some._dear.total()) == (0, 0)

    run(story)


def test_dear_requests_of_persons_take_turns_and_count_among_those_that_wait():
    async def story():
        some = turns(dear=2, waiting_by_person=3)
        first = await some.take(known("ann"), dear=True)
        order: list[str] = []

        async def wait(person: str) -> None:
            mine = await some.take(known(person), dear=True)
            order.append(person)
            await ended(some, mine)

        waiting = [asyncio.ensure_future(wait("ann")) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyOfOne):
            await some.take(known("ann"), dear=True)
        await wait("bob")  # one person has half of them
        assert order == ["bob"]
        waiting.append(asyncio.ensure_future(wait("bob")))
        await ended(some, first)
        await asyncio.gather(*waiting)
        assert (order.count("ann"), order.count("bob"), some.waiting) == (3, 2, 0)

    run(story)


def test_made_up_sessions_of_an_address_are_few_persons_and_an_accepted_one_is_its_account():
    persons = Persons()

    def scope(cookie: bytes):
        headers = [(b"cookie", b"theme=dark; sessionid=" + cookie), (b"authorization", b"Bearer made-up-" + cookie)]
        return {"path": "/", "headers": headers, "client": ("192.0.2.7", 1)}

    found = {persons.of(scope(b"made-up-%d" % number)).name for number in range(500)}
    assert len(found) == SHARES_OF_AN_ADDRESS
    mine = persons.of(scope(b"mine"))
    assert mine.stranger
    persons.learn(mine.digest, 7)
    assert persons.of(scope(b"mine")) == Person("account 7", stranger=False)
    # A page is answered by its session, whatever token comes with it; the API by the token.
    other = [scope(b"mine")["headers"][0], (b"authorization", b"Bearer another")]
    assert persons.of(scope(b"mine") | {"headers": other}).name == "account 7"
    assert persons.of(scope(b"mine") | {"headers": other, "path": "/api/v1/queues/"}).stranger


@pytest.mark.parametrize(
    ("reason", "status", "said"),
    [
        (TooManyOfOne(25), 429, "25 of your requests wait already"),
        (Full(1000), 503, "1000 requests wait already"),
        (Full(20.0, waited=True), 503, "waited 20 seconds"),
    ],
)
def test_a_refusal_names_its_limit_and_when_to_come_again(reason, status, said):
    async def story():
        sent: list[dict] = []

        async def send(message) -> None:
            sent.append(message)

        scope = Client(None).scope("GET", "/api/v1/queues/", {})
        await application._refuse(send, request_context.without_foreign_claims(scope), reason)
        body = json.loads(sent[1]["body"])
        assert (sent[0]["status"], body["limit"], said in body["detail"]) == (status, reason.limit, True)
        assert b"retry-after" in dict(sent[0]["headers"])

    run(story)


def test_a_cookie_in_quotes_never_reaches_what_reads_cookies():
    plain = {"headers": [(b"host", b'"'), (b"cookie", b"sessionid=abc; theme=dark")]}
    assert without_quoted_cookies(plain) is plain
    quoted = {"headers": [(b"cookie", b'a="' + b'\\"' * 50 + b'"; sessionid=abc')]}
    assert without_quoted_cookies(quoted)["headers"] == [(b"cookie", b" sessionid=abc")]


def test_ones_large_work_holds_up_no_large_work_of_another():
    """An import of a large tree held the only turn of large works: others waited for 20 s, and were refused then."""

    async def story():
        some = turns(dear=settings.WEB_DEAR_REQUESTS, by_person=3)
        first = await some.take(known("ann"), dear=True)
        second = asyncio.ensure_future(some.take(known("ann"), dear=True))
        await asyncio.sleep(0)
        assert not second.done(), "one of each person"
        other = await asyncio.wait_for(some.take(known("bob"), dear=True), PATIENCE)
        await asyncio.wait_for(some.take(known("ann")), PATIENCE)  # what costs little passes by
        await ended(some, other)
        assert not second.done()
        await ended(some, first)
        await asyncio.wait_for(second, PATIENCE)

    run(story)


def test_strangers_leave_a_turn_of_large_works_to_who_is_signed_in():
    async def story():
        some = turns(dear=2)
        await some.take(Person("address 1", stranger=True), dear=True)
        more = asyncio.ensure_future(some.take(Person("address 2", stranger=True), dear=True))
        await asyncio.sleep(0)
        assert not more.done()
        await asyncio.wait_for(some.take(known("ann"), dear=True), PATIENCE)
        more.cancel()

    run(story)
