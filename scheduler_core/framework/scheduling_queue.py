"""The scheduling queue of the per-pod cycle: active, backing off, unschedulable.

A pod that found no place waits until something happens that may help it, and after that for a time that doubles with
each attempt. Times are arguments; the queue itself is plain data that :class:`Memory` carries between sessions.

Source: document 001, 3.1.1; kube-scheduler's queue of the same names.

====================  =========================================  ==================================================
method                what happens                               goes to
====================  =========================================  ==================================================
add                   a pod that is not known                    active
pop                   the head of active; the cycle counts on    (being scheduled)
add_unschedulable     no place; moved since its cycle began      backing off
add_unschedulable     no place; nothing has happened since       unschedulable
update                the pod changed: in active or backing off  stays (case 1)
update                the pod changed: unschedulable             active, or backing off until its time (case 2)
update                the pod is in no queue                     active (case 3)
move_all              something happened that may help           active, or backing off until its time
put_back              its place is taken from it                 backing off
rest                  its group ran out of time                  backing off
flush                 time passed                                active
====================  =========================================  ==================================================
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from scheduler_core.model.queued_pod import QueuedPod, Where


class SchedulingQueue:
    """Three queues with their moves; every pod is in exactly one of them, or being scheduled.

    Args:
        initial, most: seconds of the first and of the longest wait; each attempt doubles it.
        leftover: seconds after which an unschedulable pod is tried again whatever happened.
        entries, cycle, move_cycle: what an earlier session left."""

    def __init__(
        self, *, initial: float = 1.0, most: float = 10.0, leftover: float = 300.0, entries: Iterable[QueuedPod] = (),
        cycle: int = 0, move_cycle: int = -1,
    ) -> None:  # fmt: skip
        self.initial, self.most, self.leftover = initial, most, leftover
        self.cycle, self.move_cycle = cycle, move_cycle
        self._pods: dict[str, QueuedPod] = {entry.pod: entry for entry in entries}
        self._popped: dict[str, QueuedPod] = {}

    def __contains__(self, pod: str) -> bool:
        return pod in self._pods

    def __getitem__(self, pod: str) -> QueuedPod:
        return self._pods[pod]

    def entries(self) -> tuple[QueuedPod, ...]:
        return tuple(self._pods[pod] for pod in sorted(self._pods))

    def pending(self, where: Where) -> list[str]:
        return sorted(pod for pod, entry in self._pods.items() if entry.where is where)

    def wait(self, entry: QueuedPod) -> float:
        """Seconds that a pod backs off after its last attempt: initial x 2^(attempts - 1), at most ``most``."""
        if not entry.attempts:
            return 0.0
        return min(self.most, self.initial * 2.0 ** min(entry.attempts - 1, 60))

    def ready_at(self, pod: str) -> float:
        """When the pod has backed off long enough."""
        entry = self._pods[pod]
        return entry.tried + self.wait(entry)

    def add(self, pod: str, digest: str = "") -> None:
        """A new pod; one that is known already stays where it is."""
        if pod not in self._pods:
            self._pods[pod] = QueuedPod(pod=pod, digest=digest)

    def pop(self, key: Callable[[str], Any]) -> str | None:
        """Take the head of the active queue by ``key`` (ties: the first name); None when it is empty."""
        active = self.pending(Where.ACTIVE)
        if not active:
            return None
        head = min(active, key=lambda pod: (key(pod), pod))
        return self.take(head)

    def take(self, pod: str) -> str:
        """Take one pod out to be scheduled; the cycle counts on."""
        self.cycle += 1
        self._popped[pod] = self._pods.pop(pod)
        return pod

    def attempts(self, pod: str) -> int:
        """How often a pod was tried, that which is under way included."""
        entry = self._popped.get(pod)
        return entry.attempts + 1 if entry else self._pods[pod].attempts if pod in self._pods else 0

    def add_unschedulable(
        self, pod: str, cycle: int, now: float, *, nominated: str = "", digest: str = "", timed_out: str = ""
    ) -> None:
        """Put a pod aside that found no place in its cycle; nothing if it is in a queue already."""
        if pod in self._pods:
            return
        before = self._popped.pop(pod, QueuedPod(pod=pod))
        where = Where.BACKING_OFF if self.move_cycle >= cycle else Where.UNSCHEDULABLE
        self._pods[pod] = QueuedPod(
            pod=pod, where=where, attempts=before.attempts + 1, tried=now, digest=digest or before.digest,
            nominated=nominated or before.nominated, timed_out=timed_out,
        )  # fmt: skip

    def put_back(self, pod: str, attempts: int, now: float, *, timed_out: str = "") -> None:
        """A pod that kept a place has lost it, which is what has happened since its cycle: it backs off."""
        if pod not in self._pods:
            self._pods[pod] = QueuedPod(
                pod=pod, where=Where.BACKING_OFF, attempts=max(1, attempts), tried=now, timed_out=timed_out
            )

    def active(self, pod: str) -> bool:
        return pod in self._pods and self._pods[pod].where is Where.ACTIVE

    def rest(self, pod: str, now: float, timed_out: str) -> None:
        """Its group ran out of time: it backs off, whatever it waited for."""
        entry = self._pods.get(pod)
        if entry is not None and (entry.where is not Where.BACKING_OFF or entry.tried < now):
            self._pods[pod] = msgspec.structs.replace(
                entry, where=Where.BACKING_OFF, attempts=entry.attempts + 1, tried=now, timed_out=timed_out
            )

    def update(self, pod: str, digest: str, now: float) -> None:
        """The pod is another one than when it was put aside."""
        entry = self._pods.get(pod)
        if entry is None:
            self._pods[pod] = QueuedPod(pod=pod, digest=digest)
            return
        entry = msgspec.structs.replace(entry, digest=digest)
        self._pods[pod] = self._moved(entry, now) if entry.where is Where.UNSCHEDULABLE else entry

    def delete(self, pod: str) -> None:
        """The pod is gone or has its place."""
        self._pods.pop(pod, None)
        self._popped.pop(pod, None)

    def move_all(self, now: float, helps: Callable[[str], bool] | None = None) -> None:
        """Something happened that may help pods, those of which ``helps`` says so."""
        self.move_cycle = self.cycle
        for pod, entry in self._pods.items():
            if entry.where is Where.UNSCHEDULABLE and (helps is None or helps(pod)):
                self._pods[pod] = self._moved(entry, now)

    def flush(self, now: float) -> None:
        """Time passed: a pod that has backed off long enough is active, and so is one that was left over for long."""
        for pod, entry in self._pods.items():
            due = entry.where is Where.BACKING_OFF and now >= entry.tried + self.wait(entry)
            if due or (entry.where is Where.UNSCHEDULABLE and now >= entry.tried + self.leftover):
                self._pods[pod] = msgspec.structs.replace(entry, where=Where.ACTIVE)

    def _moved(self, entry: QueuedPod, now: float) -> QueuedPod:
        due = now >= entry.tried + self.wait(entry)
        return msgspec.structs.replace(entry, where=Where.ACTIVE if due else Where.BACKING_OFF)
