"""Task slots of pods, kept from one snapshot to the next and repaired for what changed."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from operator import itemgetter

import numpy as np

from scheduler_core.model.pod import Pod, PodPhase
from scheduler_core.model.pod_notes import Likeness, Likenesses, PodNotes
from scheduler_core.state.card_sets import CardSets
from scheduler_core.state.gang_rows import GangRows
from scheduler_core.state.status import (
    BOUND,
    FAILED,
    FOREIGN,
    GATED,
    HOLDS,
    PENDING,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    UNKNOWN,
    Ints,
)
from scheduler_core.state.task_class import ClassTable
from scheduler_core.state.task_table import TaskTable

_PENDING, _RUNNING, _SUCCEEDED, _FAILED = PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED
_HOLDS: list[bool] = HOLDS.tolist()
_NOTHING = PodNotes(Likeness(()), (0.0, 0.0, ""), "", "")
_FIRST = itemgetter(0)


class PodRows:
    """The task table of a workspace and where everybody is.

    Attributes:
        tasks: the table. slot_of: slot by namespace/name of the pod.
        gang_number: int64 (slots,), number of the gang as in :class:`GangRows`, -1 = none.
        wanted: the cards that each pod says it holds.
        dirty: positions of nodes whose pods have changed.
    """

    def __init__(
        self, capacity: int, words: int, nodes: Mapping[str, int], schedulers: tuple[str, ...], classes: ClassTable,
        gangs: GangRows,
    ) -> None:  # fmt: skip
        self.tasks = TaskTable(capacity, words)
        self.slot_of: dict[str, int] = {}
        self.gang_number: Ints = np.full(capacity, -1, dtype=np.int64)
        self.wanted = CardSets(capacity, words)
        self.dirty: dict[int, None] = {}
        self._nodes, self._schedulers, self._classes, self._gangs = nodes, frozenset(schedulers), classes, gangs
        self._free = list(range(capacity - 1, -1, -1))
        self._notes: list[PodNotes] = [_NOTHING] * capacity
        self._likenesses = Likenesses()
        self._on_node: list[list[int]] = [[] for _ in nodes]

    def fork(self, classes: ClassTable, gangs: GangRows) -> PodRows:
        """The same rows, independent. O(slots)."""
        other = object.__new__(PodRows)
        other.__dict__.update(self.__dict__)
        other._classes, other._gangs = classes, gangs
        other.tasks, other.wanted = self.tasks.fork(), self.wanted.copy()
        other.slot_of, other.dirty = dict(self.slot_of), dict(self.dirty)
        other.gang_number, other._free, other._notes = self.gang_number.copy(), list(self._free), list(self._notes)
        other._likenesses = Likenesses()
        other._on_node = [slots.copy() for slots in self._on_node]
        return other

    def change(self, pods: Mapping[str, Pod | None], noted: Mapping[str, PodNotes]) -> None:
        """Take pods in, in the place of what stood under their names; None takes one out. O(changes).

        Args:
            noted: notes of pods, as far as somebody has made them already.
        """
        gone: list[int] = []
        fresh: list[tuple[str, Pod]] = []
        slot_of, known = self.slot_of, self.tasks.pods
        for key, pod in pods.items():
            slot = slot_of.get(key)
            if slot is not None:
                if known[slot] is pod:
                    continue
                gone.append(slot)
                del slot_of[key]
            if pod is not None:
                fresh.append((key, pod))
        # By name, so that slots and classes come out the same for the same history.
        fresh.sort(key=_FIRST)
        self._learn(gone, fresh)
        left = self._remove(gone)
        come = self._add(fresh, [noted.get(key) or self._likenesses.notes_of(pod) for key, pod in fresh])
        slots, places = self._gangs.change_members(left, come, self._notes)
        self.tasks.place[slots] = places

    def slots_on(self, node: int) -> list[int]:
        """Slots of the pods that hold something of a node, by name."""
        return self._on_node[node]

    def _learn(self, gone: list[int], fresh: list[tuple[str, Pod]]) -> None:
        """Take in what new pods say of others; if that is news, everybody is matched with it again."""
        relations = self._classes.relations
        if relations.learn(pod for _, pod in fresh):
            leaving = set(gone)
            staying = [
                (slot, pod) for slot, pod in enumerate(self.tasks.pods) if pod is not None and slot not in leaving
            ]
            relations.set_profiles([slot for slot, _ in staying], [pod for _, pod in staying])
            for slot, pod in staying:
                self.tasks.cls[slot] = self._classes.intern(pod, self._notes[slot].like)

    def _remove(self, gone: list[int]) -> dict[int, list[int]]:
        """Empty slots; returns them by number of their gang."""
        tasks = self.tasks
        left: dict[int, list[int]] = {}
        if not gone:
            return left
        slots = np.array(gone, dtype=np.int64)
        for slot, node, number in zip(gone, tasks.node[slots].tolist(), self.gang_number[slots].tolist(), strict=True):
            if node >= 0:
                self._on_node[node].remove(slot)
                self.dirty[node] = None
            if number >= 0:
                left.setdefault(number, []).append(slot)
            tasks.pods[slot], tasks.keys[slot] = None, ""
        self._free += gone
        self.gang_number[slots] = tasks.node[slots] = tasks.card[slots] = -1
        tasks.live[slots] = False
        tasks.indices.words[slots] = self.wanted.words[slots] = 0
        return left

    def _add(self, fresh: list[tuple[str, Pod]], notes: list[PodNotes]) -> dict[int, list[int]]:
        """Fill slots; returns them by number of their gang."""
        while len(self._free) < len(fresh):
            self._grow()
        come: dict[int, list[int]] = {}
        if not fresh:
            return come
        tasks, intern, free = self.tasks, self._classes.intern, self._free
        slots = free[-1 : -1 - len(fresh) : -1]
        del free[len(free) - len(fresh) :]
        self._classes.relations.set_profiles(slots, (pod for _, pod in fresh))
        kept, keys, slot_of, noted = tasks.pods, tasks.keys, self.slot_of, self._notes
        statuses, classes, nodes, cards, numbers = [], [], list[int](), list[int](), []
        # Members of a gang mostly come one after the other.
        last, number, mates = "", -1, list[int]()
        for slot, (key, pod), note in zip(slots, fresh, notes, strict=True):
            kept[slot], keys[slot], slot_of[key], noted[slot] = pod, key, slot, note
            ours = pod.scheduler in self._schedulers
            status = _status(pod, ours)
            cls = intern(pod, note.like)
            node, card = (-1, -1) if not (pod.node and _HOLDS[status]) else self._place(slot, pod, cls)
            gang = note.gang if ours else ""
            if gang != last:
                last, number = gang, self._gangs.number_of(gang) if gang else -1
                mates = come.setdefault(number, []) if gang else []
            mates.append(slot)
            statuses.append(status)
            classes.append(cls)
            nodes.append(node)
            cards.append(card)
            numbers.append(number)
        pods = [pod for _, pod in fresh]
        at = np.array(slots, dtype=np.int64)
        tasks.live[at] = True
        tasks.status[at], tasks.cls[at], tasks.node[at], tasks.card[at] = statuses, classes, nodes, cards
        self.gang_number[at], tasks.priority[at] = numbers, [pod.priority for pod in pods]
        tasks.started[at] = [np.nan if pod.started is None else pod.started for pod in pods]
        tasks.number[at], tasks.created[at] = [note.rank[0] for note in notes], [pod.created for pod in pods]
        tasks.protected[at] = [pod.preemptable is False for pod in pods]
        return come

    def _place(self, slot: int, pod: Pod, cls: int) -> tuple[int, int]:
        """Node and card type of a pod that holds something."""
        node = self._nodes.get(pod.node, -1)
        if node >= 0:
            insort(self._on_node[node], slot, key=self.tasks.keys.__getitem__)
            self.dirty[node] = None
            if pod.card_indices:
                self._want(slot, pod.card_indices)
            return node, -1
        # Its node is gone from the snapshot: it counts for its queue, at the first card that it may have.
        choice = self._classes[cls].cards
        return -1, choice[0] if choice else -1

    def _want(self, slot: int, cards: tuple[int, ...]) -> None:
        """Note which cards the pod says it holds, unless no node could have them."""
        most = self.wanted.most
        if len(set(cards)) == len(cards) and min(cards) >= 0 and max(cards) < most:
            self.wanted[slot] = cards

    def _grow(self) -> None:
        size = len(self.tasks)
        self.tasks.grow()
        self.wanted.grow(size)
        self._notes += [_NOTHING] * size
        self.gang_number = np.concatenate([self.gang_number, np.full(size, -1, dtype=np.int64)])
        self._free = [*range(2 * size - 1, size - 1, -1), *self._free]


def _status(pod: Pod, ours: bool) -> int:
    """Semantics 2.1; pods of other schedulers that have no node yet are nothing to us."""
    phase = pod.phase
    if phase is _SUCCEEDED:
        return SUCCEEDED
    if phase is _FAILED:
        return FAILED
    if pod.deleted is not None:
        return RELEASING
    if pod.node:
        return RUNNING if phase is _RUNNING else BOUND if phase is _PENDING else UNKNOWN
    if not ours:
        return FOREIGN
    return GATED if pod.gated else PENDING
