"""Turns at the web process's work: so many requests at once in all and by one person, the rest wait in a fair order.

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

_spent = threading.local()


def _count_cost() -> None:
    """What the turn that ends on this thread has cost: the thread works for nothing but turns."""
    now = time.thread_time()
    pace.took(now - getattr(_spent, "until", now))
    _spent.until = now


class TooManyOfOne(Exception):
    """One person has as many requests waiting as one may have."""


class Full(Exception):
    """Too many requests wait, or this one has waited too long."""


@dataclass(slots=True, eq=False)
class Turn:
    """The right to use one thread, for one person."""

    person: str
    executor: ThreadPoolExecutor
    over: bool = field(default=False)


class Turns:
    """Hands out turns, in the order of persons: who has many requests waiting gets one turn, then the next person.

    All methods run on one event loop; ``finish`` leaves it only to wait for the thread.
    """

    def __init__(self, *, at_once: int, by_person: int, waiting_by_person: int, waiting: int, patience: float) -> None:
        self._free = [ThreadPoolExecutor(1, thread_name_prefix=f"turn-{number}") for number in range(at_once)]
        self._by_person, self._waiting_by_person = by_person, waiting_by_person
        self._most_waiting, self._patience = waiting, patience
        self._running: Counter[str] = Counter()
        self._queues: OrderedDict[str, deque[asyncio.Future[Turn]]] = OrderedDict()
        self.waiting = 0

    async def take(self, person: str) -> Turn:
        """A turn for this person, at once or when it is due.

        Raises
        ------
        TooManyOfOne
            when this person has too many requests waiting already.
        Full
            when too many wait in all, or no turn came in time.
        """
        if self._free and self._running[person] < self._by_person and person not in self._queues:
            return self._start(person)
        queue = self._queues.get(person)
        if queue is not None and len(queue) >= self._waiting_by_person:
            raise TooManyOfOne
        if self.waiting >= self._most_waiting:
            raise Full
        if queue is None:
            queue = self._queues[person] = deque()
        due: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        queue.append(due)
        self.waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                return await asyncio.shield(due)
        except (TimeoutError, asyncio.CancelledError) as error:
            self._leave(person, due)
            if isinstance(error, TimeoutError):
                raise Full from None
            raise

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

    def _start(self, person: str) -> Turn:
        self._running[person] += 1
        return Turn(person, self._free.pop())

    def _leave(self, person: str, due: asyncio.Future[Turn]) -> None:
        if due.done() and not due.cancelled():  # it came in the same moment
            self._ended(due.result())
            return
        due.cancel()
        queue = self._queues.get(person)
        if queue is not None and due in queue:
            queue.remove(due)
            self.waiting -= 1
            if not queue:
                del self._queues[person]

    def _ended(self, turn: Turn) -> None:
        self._free.append(turn.executor)
        self._running[turn.person] -= 1
        if not self._running[turn.person]:
            del self._running[turn.person]
        while self._free and self._next():
            pass

    def _next(self) -> bool:
        for person, queue in self._queues.items():
            if self._running[person] < self._by_person:
                due = queue.popleft()
                self.waiting -= 1
                if queue:
                    self._queues.move_to_end(person)
                else:
                    del self._queues[person]
                due.set_result(self._start(person))
                return True
        return False

    def close(self) -> None:
        """Let the threads go."""
        for executor in self._free:
            executor.shutdown(wait=False)
