"""Turns at the web process's work: so many requests at once in all and by one person, the rest wait in a fair order.

Strangers, whose account is not known yet, get all turns but one and half of the places to wait: however many come, the
people who are signed in go on.

A request with a large body is dear, and so is one about a change of thousands of figures: to read a tree of thousands
of queues takes the interpreter for seconds, and all threads share it. Few of them run at a time, and of one person half
of these (one of two, with the defaults), so that the large work of one person does not delay that of another. The
others wait in a line of their own, while what costs little passes them by.

A turn is one thread. It ends when the thread is free again, also where the client went away before; so the threads,
and with them the database connections of pages, are bounded whatever is asked of the process.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tidesched_web.common.live_pace import pace
from tidesched_web.front.persons import Person

_spent = threading.local()


def _count_cost() -> None:
    """What the turn that ends on this thread has cost: the thread works for nothing but turns."""
    now = time.thread_time()
    pace.took(now - getattr(_spent, "until", now))
    _spent.until = now


class TooManyOfOne(Exception):
    """One person has as many requests waiting as one may have: ``limit``."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class Full(Exception):
    """Too many requests wait, or this one has waited too long: ``limit`` requests, or seconds."""

    def __init__(self, limit: float, *, waited: bool = False) -> None:
        super().__init__(limit)
        self.limit, self.waited = limit, waited


@dataclass(slots=True, eq=False)
class Turn:
    """The right to use one thread, for one person."""

    person: Person
    executor: ThreadPoolExecutor
    dear: bool = field(default=False)
    over: bool = field(default=False)


# One person's requests that wait, the dear ones apart.
_Line = tuple[Person, bool]


class Turns:
    """Hands out turns, in the order of persons: who has many requests waiting gets one turn, then the next person.

    All methods run on one event loop; ``finish`` leaves it only to wait for the thread.
    """

    def __init__(
        self, *, at_once: int, by_person: int, dear: int, waiting_by_person: int, waiting: int, patience: float
    ) -> None:
        self._free = [ThreadPoolExecutor(1, thread_name_prefix=f"turn-{number}") for number in range(at_once)]
        self._by_person, self._waiting_by_person = by_person, waiting_by_person
        self._most_waiting, self._patience = waiting, patience
        self._of_strangers, self._waiting_of_strangers = max(1, at_once - 1), waiting // 2
        self._running: Counter[str] = Counter()
        self._strangers = 0
        self._most_dear, self._most_dear_of_one = max(1, dear), max(1, dear // 2)
        self._dear: Counter[str] = Counter()
        self._dear_strangers = 0
        self._queues: OrderedDict[_Line, deque[asyncio.Future[Turn]]] = OrderedDict()
        self.waiting = 0

    @property
    def busy(self) -> bool:
        """Whether a dear request runs."""
        return bool(self._dear)

    async def take(self, person: Person, *, dear: bool = False) -> Turn:
        """A turn for this person, at once or when it is due; ``dear``: for a request that takes long to read.

        Raises
        ------
        TooManyOfOne
            when this person has too many requests waiting already.
        Full
            when too many wait in all, or no turn came in time.
        """
        line = (person, dear)
        if self._free and self._may_start(line) and line not in self._queues:
            return self._start(line)
        if sum(len(self._queues.get((person, kind), ())) for kind in (False, True)) >= self._waiting_by_person:
            raise TooManyOfOne(self._waiting_by_person)
        if self.waiting >= self._most_waiting:
            raise Full(self._most_waiting)
        if person.stranger and self._strangers_wait():
            raise Full(self._waiting_of_strangers)
        queue = self._queues.setdefault(line, deque())
        due: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        queue.append(due)
        self.waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                return await asyncio.shield(due)
        except (TimeoutError, asyncio.CancelledError) as error:
            self._leave(line, due)
            if isinstance(error, TimeoutError):
                raise Full(self._patience, waited=True) from None
            raise

    def _may_start(self, line: _Line) -> bool:
        person, dear = line
        if dear and not self._may_start_dear(person):
            return False
        mine = self._running[person.name] < self._by_person
        return mine and not (person.stranger and self._strangers >= self._of_strangers)

    def _may_start_dear(self, person: Person) -> bool:
        """Of one person, and of all strangers, half of them: one of two leaves the other to who is signed in."""
        mine = self._dear_strangers if person.stranger else self._dear[person.name]
        return self._dear.total() < self._most_dear and mine < self._most_dear_of_one

    def _strangers_wait(self) -> bool:
        waiting = sum(len(queue) for (person, _dear), queue in self._queues.items() if person.stranger)
        return waiting >= self._waiting_of_strangers

    def finish(self, turn: Turn, last: Callable[[], object]) -> None:
        """End a turn as soon as its thread is free; ``last`` is what the thread does at the very end."""
        if turn.over:
            return
        turn.over = True
        loop = asyncio.get_running_loop()

        def end() -> None:
            try:
                last()
            finally:
                _count_cost()
                loop.call_soon_threadsafe(self._ended, turn)

        turn.executor.submit(end)

    def _start(self, line: _Line) -> Turn:
        person, dear = line
        self._running[person.name] += 1
        self._strangers += person.stranger
        if dear:
            self._dear[person.name] += 1
            self._dear_strangers += person.stranger
        return Turn(person, self._free.pop(), dear)

    def _leave(self, line: _Line, due: asyncio.Future[Turn]) -> None:
        if due.done() and not due.cancelled():  # it came in the same moment
            self._ended(due.result())
            return
        due.cancel()
        queue = self._queues.get(line)
        if queue is not None and due in queue:
            queue.remove(due)
            self.waiting -= 1
            if not queue:
                del self._queues[line]

    def _ended(self, turn: Turn) -> None:
        person = turn.person
        self._free.append(turn.executor)
        self._strangers -= person.stranger
        self._running[person.name] -= 1
        if not self._running[person.name]:
            del self._running[person.name]
        if turn.dear:
            self._dear[person.name] -= 1
            self._dear_strangers -= person.stranger
            if not self._dear[person.name]:
                del self._dear[person.name]
        while self._free and self._next():
            pass

    def _next(self) -> bool:
        for line, queue in self._queues.items():
            if self._may_start(line):
                due = queue.popleft()
                self.waiting -= 1
                if queue:
                    self._queues.move_to_end(line)
                else:
                    del self._queues[line]
                due.set_result(self._start(line))
                return True
        return False

    def close(self) -> None:
        """Let the threads go."""
        for executor in self._free:
            executor.shutdown(wait=False)
