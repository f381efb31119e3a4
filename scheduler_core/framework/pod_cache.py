"""What the scheduler believes of a pod that it has placed, until the cluster says so itself.

A bind that was decided is *assumed*: the pod holds its place although the snapshot still shows it waiting. The clock
starts when binding is finished; if nothing is heard in time the belief expires and the room is free again. Forgetting
an assumed pod is not removing an added one: the first takes back a belief, the second follows the cluster.

Source: document 001, 3.1.2; kube-scheduler's cache.

=========  ==============  =========  =========  =========  =========  =========
from       assume          finish     forget     add        remove     expire
=========  ==============  =========  =========  =========  =========  =========
Initial    Assumed         --         --         Added      --         --
Assumed    --              Assumed    Initial    Added      --         Expired
Added      --              --         --         Added      Deleted    --
Expired    Assumed         --         --         Added      --         --
Deleted    Assumed         --         --         Added      --         --
=========  ==============  =========  =========  =========  =========  =========
"""

import enum
from collections.abc import Iterable

import msgspec

from scheduler_core.model.errors import BrokenInvariant
from scheduler_core.model.memory import AssumedPod


class PodState(enum.StrEnum):
    """Where a pod is in the scheduler's eyes."""

    INITIAL = "Initial"
    ASSUMED = "Assumed"
    ADDED = "Added"
    DELETED = "Deleted"
    EXPIRED = "Expired"


class PodEvent(enum.StrEnum):
    """What happens to it."""

    ASSUME = "assume"
    FINISH_BINDING = "finish"
    FORGET = "forget"
    ADD = "add"
    REMOVE = "remove"
    EXPIRE = "expire"


_S, _E = PodState, PodEvent

TRANSITIONS: dict[tuple[PodState, PodEvent], PodState] = {
    (_S.INITIAL, _E.ASSUME): _S.ASSUMED,
    (_S.INITIAL, _E.ADD): _S.ADDED,
    (_S.ASSUMED, _E.FINISH_BINDING): _S.ASSUMED,
    (_S.ASSUMED, _E.FORGET): _S.INITIAL,
    (_S.ASSUMED, _E.ADD): _S.ADDED,
    (_S.ASSUMED, _E.EXPIRE): _S.EXPIRED,
    (_S.ADDED, _E.ADD): _S.ADDED,
    (_S.ADDED, _E.REMOVE): _S.DELETED,
    (_S.EXPIRED, _E.ASSUME): _S.ASSUMED,
    (_S.EXPIRED, _E.ADD): _S.ADDED,
    (_S.DELETED, _E.ASSUME): _S.ASSUMED,
    (_S.DELETED, _E.ADD): _S.ADDED,
}


def after(state: PodState, event: PodEvent, pod: str) -> PodState:
    """The state that follows. Raises BrokenInvariant: the event cannot happen in that state."""
    found = TRANSITIONS.get((state, event))
    if found is None:
        raise BrokenInvariant(f"pod {pod} is {state.value}: {event.value} cannot happen to it")
    return found


class PodCache:
    """Assumed pods by name; everything else is what the snapshot says. ``assumed``: what an earlier session left."""

    def __init__(self, assumed: Iterable[AssumedPod] = ()) -> None:
        self._pods: dict[str, AssumedPod] = {entry.pod: entry for entry in assumed}
        self._states: dict[str, PodState] = dict.fromkeys(self._pods, PodState.ASSUMED)

    def __contains__(self, pod: str) -> bool:
        return pod in self._pods

    def state(self, pod: str) -> PodState:
        """Where the pod is; Initial for one that is not known."""
        return self._states.get(pod, PodState.INITIAL)

    def assume(self, entry: AssumedPod) -> None:
        """A bind is decided; the clock does not run yet."""
        self._move(entry.pod, PodEvent.ASSUME)
        self._pods[entry.pod] = msgspec.structs.replace(entry, expires=None)

    def finish_binding(self, pod: str, now: float, seconds: float) -> None:
        """The bind was sent: the belief holds for so many seconds from now on."""
        self._move(pod, PodEvent.FINISH_BINDING)
        self._pods[pod] = msgspec.structs.replace(self._pods[pod], expires=now + seconds)

    def forget(self, pod: str) -> None:
        """The bind came to nothing."""
        self._move(pod, PodEvent.FORGET)
        self._pods.pop(pod)

    def add(self, pod: str) -> None:
        """The cluster shows the pod on a node: confirmed, or heard of anew after it expired."""
        self._move(pod, PodEvent.ADD)
        self._pods.pop(pod, None)

    def remove(self, pod: str) -> None:
        """The cluster shows an added pod no more."""
        self._move(pod, PodEvent.REMOVE)

    def expire(self, now: float) -> list[str]:
        """Names of those whose time is over; they are believed no more."""
        gone = sorted(p for p, entry in self._pods.items() if entry.expires is not None and entry.expires <= now)
        for pod in gone:
            self._move(pod, PodEvent.EXPIRE)
            self._pods.pop(pod)
        return gone

    def dump(self) -> tuple[AssumedPod, ...]:
        """All assumed pods, by name."""
        return tuple(self._pods[pod] for pod in sorted(self._pods))

    def _move(self, pod: str, event: PodEvent) -> None:
        self._states[pod] = after(self.state(pod), event, pod)
