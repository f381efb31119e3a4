"""Turns: bounded in all and by person, fair between persons, and never more threads than turns."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest
from asgiref.sync import async_to_sync

from tidesched_web.front.turns import Full, TooManyOfOne, Turn, Turns

PATIENCE = 5.0


def turns(**limits: float) -> Turns:
    numbers = {"at_once": 4, "by_person": 2, "waiting_by_person": 3, "waiting": 6, "patience": PATIENCE} | limits
    return Turns(**numbers)  # type: ignore[arg-type]


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
            await some.take("ann")
        third = asyncio.ensure_future(some.take("ann"))
        await asyncio.sleep(0)
        assert not third.done()
        await some.take("bob")  # at once, although somebody waits
        third.cancel()

    run(story)


def test_waiting_persons_take_turns():
    async def story():
        some = turns(at_once=1, by_person=1)
        turn = await some.take("zoe")
        order: list[str] = []

        async def wait(person: str) -> None:
            mine = await some.take(person)
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
        some = turns(at_once=1, patience=0.05)
        await some.take("ann")
        waiting = [asyncio.ensure_future(some.take("bob")) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyOfOne):
            await some.take("bob")
        more = [asyncio.ensure_future(some.take(person)) for person in ("cai", "dee", "eva")]
        await asyncio.sleep(0)
        with pytest.raises(Full):
            await some.take("fay")
        for late in await asyncio.gather(*waiting, *more, return_exceptions=True):
            assert isinstance(late, Full)
        assert some.waiting == 0

    run(story)


def test_a_client_that_left_frees_no_thread_that_still_works():
    async def story():
        some = turns(at_once=1)
        first = await some.take("ann")
        go_on = threading.Event()
        busy = asyncio.get_running_loop().run_in_executor(first.executor, go_on.wait, PATIENCE)
        some.finish(first, lambda: None)  # the request is over for the client
        second = asyncio.ensure_future(some.take("bob"))
        await asyncio.sleep(0.05)
        assert not second.done()
        go_on.set()
        await busy
        assert (await second).person == "bob"

    run(story)


def test_a_hundred_persons_never_have_more_threads_than_turns():
    async def story():
        some = turns(at_once=3, waiting=1000, waiting_by_person=1000)
        at_once: Counter[str] = Counter()
        most = 0

        async def one(person: str) -> None:
            nonlocal most
            mine = await some.take(person)
            at_once["all"] += 1
            most = max(most, at_once["all"])
            await asyncio.get_running_loop().run_in_executor(mine.executor, lambda: None)
            at_once["all"] -= 1
            some.finish(mine, lambda: None)

        await asyncio.gather(*(one(f"person {number % 100}") for number in range(400)))
        assert most == 3

    run(story)
