"""Gangs in the order in which queues and their gangs take turns."""

import heapq
from collections.abc import Iterable
from typing import Any

from scheduler_core.framework.session import Session


class Rotation:
    """The best gang of the best queue, again and again; orders are looked up anew at each turn. A queue's place can
    change with every placement (its share does), so the best queue is searched each time: O(queues) a turn. Gangs of
    one queue lie in a heap."""

    def __init__(self, session: Session, gangs: Iterable[int]) -> None:
        self._session = session
        self._heaps: dict[int, list[tuple[tuple[Any, ...], int]]] = {}
        for gang in gangs:
            self._heaps.setdefault(session.queue_of(gang), []).append((session.job_key(gang), gang))
        for heap in self._heaps.values():
            heapq.heapify(heap)

    def best_queue(self) -> int | None:
        """The queue whose turn it is, None when nothing is left."""
        if not self._heaps:
            return None
        queues: list[int] = list(self._heaps)
        return queues[0] if len(queues) == 1 else min(queues, key=self._key)

    def _key(self, queue: int) -> tuple[Any, ...]:
        return self._session.queue_key(queue)

    def pop(self, queue: int) -> int:
        heap = self._heaps[queue]
        _, gang = heapq.heappop(heap)
        if not heap:
            del self._heaps[queue]
        return gang

    def push(self, gang: int) -> None:
        queue = self._session.queue_of(gang)
        heapq.heappush(self._heaps.setdefault(queue, []), (self._session.job_key(gang), gang))

    def drop(self, queue: int) -> None:
        self._heaps.pop(queue, None)
