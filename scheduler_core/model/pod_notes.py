"""What the tables want to know of a pod beyond what it says, worked out once, when it is decoded."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import NamedTuple

from scheduler_core.model.pod import Pod

# What a pod says of itself, as an annotation or else a label, that some plugin reads to tell where it may be.
MARKS = (
    "tidesched.io/card-model",
    "tidesched.io/card-model-mode",
    "tidesched.io/machine-group",
    "volcano.sh/preemptable",
    "volcano.sh/revocable-zone",
)
_MARKS = frozenset(MARKS)


class Likeness:
    """What pods have in common that go to the same places, as far as their own specs tell.

    One object stands for all pods of equal ``key`` that one :class:`Likenesses` has met: it is found faster than a key.
    """

    __slots__ = ("key",)

    def __init__(self, key: Hashable) -> None:
        self.key = key


class PodNotes(NamedTuple):
    """``like``, see :class:`Likeness`; ``rank``, its place among the members of its gang: the number that its name ends
    in (infinity = none), creation, namespace/name; ``gang``, namespace/name of its PodGroup, or empty; ``owner_kind``,
    empty for none."""

    like: Likeness
    rank: tuple[float, float, str]
    gang: str
    owner_kind: str


class Likenesses:
    """Makes notes of pods."""

    # Different likenesses that are kept apart; beyond that they are made anew, at no harm but to speed.
    _MOST = 50_000

    def __init__(self) -> None:
        self._known: dict[Hashable, Likeness] = {}

    def notes_of(self, pod: Pod) -> PodNotes:
        """The notes of one pod. O(size of its spec)."""
        key = _key(pod)
        like = self._known.get(key)
        if like is None:
            if len(self._known) >= self._MOST:
                self._known.clear()
            like = self._known[key] = Likeness(key)
        owner = pod.owner
        return PodNotes(
            like, (number_of(pod.name), pod.created, pod.key), pod.group_key, "" if owner is None else owner.kind
        )


def _key(pod: Pod) -> Hashable:
    card = pod.card
    return (
        pod.cpu_milli,
        pod.memory_mib,
        None if card is None else (card.names, card.resource, card.milli),
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
