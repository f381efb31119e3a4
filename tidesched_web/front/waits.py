"""What requests wait for that have given their turn back: each work on a thread of its own, bounded in all ways.

So many requests wait at a time, so many of one person, and so many for one subject, such as a cluster that does not
answer: those beyond that go on without what they wanted to wait for. Requests that wait for the same work share it. A
work that is not over after all keeps its place, as its thread does, although no request waits for it any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter

from tidesched_web.common.off_turn import REFUSED, Answer, Wait

# Every work ends by itself before; a thread that does not is left alone, and counted.
LONGEST_SECONDS = 45.0


class Waits:
    """All methods run on one event loop."""

    def __init__(self, *, at_once: int, by_person: int, by_subject: int) -> None:
        self._at_once, self._by_person, self._by_subject = at_once, by_person, by_subject
        self._shared: dict[str, asyncio.Future[Answer]] = {}
        self._persons: Counter[str] = Counter()
        self._subjects: Counter[str] = Counter()
        self._works: Counter[str] = Counter()  # by subject
        self.waiting = self.working = 0

    async def answer(self, wait: Wait, person: str) -> Answer:
        """What the work ends with; refused where as many wait already as may."""
        if self._is_full(wait, person):
            return REFUSED
        done = self._shared.get(wait.key) or self._begin(wait)
        if done is None:
            return REFUSED
        self._count(wait, person, 1)
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return await asyncio.shield(done)
        except TimeoutError:
            return REFUSED
        finally:
            self._count(wait, person, -1)

    def _is_full(self, wait: Wait, person: str) -> bool:
        return (
            self.waiting >= self._at_once
            or self._persons[person] >= self._by_person
            or (bool(wait.subject) and self._subjects[wait.subject] >= self._by_subject)
        )

    def _count(self, wait: Wait, person: str, more: int) -> None:
        self.waiting += more
        for counter, name in ((self._persons, person), (self._subjects, wait.subject)):
            counter[name] += more
            if not counter[name]:
                del counter[name]

    def _begin(self, wait: Wait) -> asyncio.Future[Answer] | None:
        """Begin the work; None where as many run already as may, or the machine gives no thread."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Answer] = loop.create_future()
        if self.working >= self._at_once or (wait.subject and self._works[wait.subject] >= self._by_subject):
            return None

        def end(answer: Answer) -> None:
            self._count_work(wait, -1)
            del self._shared[wait.key]
            done.set_result(answer)

        def work() -> None:
            answer = REFUSED
            try:
                answer = Answer(wait.work())
            except Exception as error:  # noqa: BLE001 - the view raises it again, where its kinds are known
                answer = Answer(error=error)
            finally:
                with contextlib.suppress(RuntimeError):  # the process is ending
                    loop.call_soon_threadsafe(end, answer)

        # A daemon: the end of the process waits for no cluster.
        thread = threading.Thread(target=work, name=f"wait-{wait.key[:40]}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return None
        self._shared[wait.key] = done
        self._count_work(wait, 1)
        return done

    def _count_work(self, wait: Wait, more: int) -> None:
        self.working += more
        self._works[wait.subject] += more
        if not self._works[wait.subject]:
            del self._works[wait.subject]
