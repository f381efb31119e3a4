"""What the tables want to know of a pod beyond what it says, worked out once, when it is decoded."""

import math
from collections.abc import Hashable
from struct import Struct
from typing import NamedTuple

from scheduler_core.model.pod import Pod, PodPhase

# What a pod says of itself, as an annotation or else a label, that some plugin reads to find where it may be.
MARKS = (
    "tidesched.io/card-model", "tidesched.io/card-model-mode", "tidesched.io/machine-group", "volcano.sh/preemptable",
    "volcano.sh/revocable-zone",
)  # fmt: skip
_MARKS = frozenset(MARKS)


class Likeness:
    """What pods have in common that go to the same places, as far as their own specs say. One object serves all pods of
    equal ``key`` that one :class:`Likenesses` has met: it is found faster than a key."""

    __slots__ = ("key",)

    def __init__(self, key: Hashable) -> None:
        self.key = key


class Standing:
    """The stage of a pod by its own account; :data:`ROW` holds it as a number."""

    PENDING, GATED, BOUND, RUNNING, UNKNOWN, RELEASING, SUCCEEDED, FAILED, GONE = range(9)


# What columns hold of a pod, packed: priority, when it began to run (NaN = unknown), creation, the number at the end of
# its name, its standing, whether it protects itself, and whether there is more to look at in the pod itself: a node, or
# what it says of other pods.
ROW = Struct("<qdddb???")


class PodNotes(NamedTuple):
    """``like``, see :class:`Likeness`; ``rank``, its place among the members of its gang: the number that its name ends
    in (infinity = none), creation, namespace/name; ``gang``, namespace/name of its PodGroup, or empty; ``owner_kind``,
    empty for none; ``scheduler``; ``row``, see :data:`ROW`: many of them make columns at once."""

    like: Likeness
    rank: tuple[float, float, str]
    gang: str
    owner_kind: str
    scheduler: str
    row: bytes


class Likenesses:
    # Different likenesses that are kept apart; beyond that they are made anew, at no harm but to speed.
    _MOST = 50_000

    def __init__(self) -> None:
        self._known: dict[Hashable, Likeness] = {}

    def notes_of(self, pod: Pod) -> PodNotes:
        key = _key(pod)
        like = self._known.get(key)
        if like is None:
            if len(self._known) >= self._MOST:
                self._known.clear()
            like = self._known[key] = Likeness(key)
        owner, number = pod.owner, number_of(pod.name)
        started = math.nan if pod.started is None else pod.started
        row = ROW.pack(
            pod.priority, started, pod.created, number, _standing(pod), pod.preemptable is False, bool(pod.node),
            pod.relations is not None,
        )  # fmt: skip
        kind = "" if owner is None else owner.kind
        return PodNotes(like, (number, pod.created, pod.key), pod.group_key, kind, pod.scheduler, row)


def _standing(pod: Pod) -> int:
    """Semantics 2.1."""
    phase = pod.phase
    if phase is PodPhase.SUCCEEDED:
        return Standing.SUCCEEDED
    if phase is PodPhase.FAILED:
        return Standing.FAILED
    if pod.deleted is not None:
        return Standing.RELEASING if pod.node else Standing.GONE
    if not pod.node:
        return Standing.GATED if pod.gated else Standing.PENDING
    if phase is PodPhase.RUNNING:
        return Standing.RUNNING
    return Standing.BOUND if phase is PodPhase.PENDING else Standing.UNKNOWN


def _key(pod: Pod) -> Hashable:
    card = pod.card
    return (
        pod.cpu_milli,
        pod.memory_mib,
        None if card is None else (card.names, card.resource, card.milli, card.written),
        tuple(sorted(pod.scalars.items())) if pod.scalars else None,
        tuple(sorted(pod.node_selector.items())) if pod.node_selector else None,
        pod.required_nodes,
        pod.preferred_nodes,
        pod.tolerations,
        pod.host_ports,
        marks_of(pod),
        (pod.namespace, pod.claims) if pod.claims else None,
        (pod.numa_policy, pod.whole_cpus) if pod.numa_policy else None,
    )


def marks_of(pod: Pod) -> tuple[tuple[str, str], ...]:
    """The marks of a pod, in the order of :data:`MARKS`."""
    notes, labels = pod.annotations, pod.labels
    if _MARKS.isdisjoint(notes) and _MARKS.isdisjoint(labels):
        return ()
    return tuple((key, notes.get(key, labels.get(key, ""))) for key in MARKS if key in notes or key in labels)


def number_of(name: str) -> float:
    """The number at the end of a pod's name such as ``job-worker-12``; infinity where it has none (semantics 1.4)."""
    head, _, tail = name.rpartition("-")
    return float(tail) if "-" in head and tail.isdecimal() else math.inf
