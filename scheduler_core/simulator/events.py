"""The heap of things to come, keyed (time, priority, id) so that ties are stable."""

import enum
import heapq

import msgspec


class EventKind(enum.IntEnum):
    """What is due; the value is the priority among events of one moment: room is given back before it is taken."""

    FINISH = 0
    GONE = 1
    REACT = 2
    MAKE = 3
    START = 4
    EXPIRE = 5


class ScheduledEvent(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """One thing that will happen.

    Attributes:
        time: seconds since the epoch. priority: lower first within one moment. id: order of scheduling.
        kind: what. key: pod or workload (namespace/name).
        token: uid or version that must still hold, else the event is stale and does nothing."""

    time: float
    priority: int
    id: int
    kind: EventKind
    key: str
    token: str


class EventQueue:
    """Events by time. Push and pop are O(log n)."""

    def __init__(self, events: tuple[ScheduledEvent, ...] = (), last_id: int = 0) -> None:
        self._heap = list(events)
        heapq.heapify(self._heap)
        self.last_id = last_id

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, time: float, kind: EventKind, key: str, token: str) -> None:
        self.last_id += 1
        heapq.heappush(self._heap, ScheduledEvent(time, int(kind), self.last_id, kind, key, token))

    def pop_due(self, until: float) -> ScheduledEvent | None:
        if self._heap and self._heap[0].time <= until:
            return heapq.heappop(self._heap)
        return None

    @property
    def next_time(self) -> float | None:
        """When the next event is due; None when there is none."""
        return self._heap[0].time if self._heap else None

    def dump(self) -> tuple[ScheduledEvent, ...]:
        return tuple(sorted(self._heap))
