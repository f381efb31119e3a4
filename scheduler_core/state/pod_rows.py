"""Task slots of pods, kept from one snapshot to the next and repaired for what changed."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

from scheduler_core.model.pod import Pod
from scheduler_core.model.pod_notes import ROW, Likeness, Likenesses, PodNotes, Standing
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
from scheduler_core.state.task_table import Codes, TaskTable

_NOTHING = Likeness(())
_RANK = (0.0, 0.0, "")
# The fields of ``pod_notes.ROW``.
_ROWS = np.dtype(
    [
        ("priority", "<i8"), ("started", "<f8"), ("created", "<f8"), ("number", "<f8"), ("standing", "i1"),
        ("protected", "?"), ("placed", "?"), ("says", "?"),
    ]
)  # fmt: skip
assert _ROWS.itemsize == ROW.size
# Status by standing.
_STATUS: Codes = np.zeros(9, dtype=np.int8)
_STATUS[Standing.PENDING], _STATUS[Standing.GATED] = PENDING, GATED
_STATUS[Standing.BOUND], _STATUS[Standing.RUNNING], _STATUS[Standing.UNKNOWN] = BOUND, RUNNING, UNKNOWN
_STATUS[Standing.RELEASING], _STATUS[Standing.SUCCEEDED], _STATUS[Standing.FAILED] = RELEASING, SUCCEEDED, FAILED
_STATUS[Standing.GONE] = FOREIGN


class Fresh:
    """Pods that take slots, and their notes, both by name and side by side; ``rows`` has the fields of ``_ROWS``."""

    def __init__(self, keys: list[str], pods: list[Pod], notes: list[PodNotes]) -> None:
        self.keys, self.pods = keys, pods
        columns = tuple(zip(*notes, strict=True)) or ((),) * len(PodNotes._fields)
        self.likes: Sequence[Likeness] = columns[0]
        self.ranks: Sequence[tuple[float, float, str]] = columns[1]
        self.gangs: Sequence[str] = columns[2]
        self.kinds: Sequence[str] = columns[3]
        self.schedulers: Sequence[str] = columns[4]
        self.rows: npt.NDArray[np.void] = np.frombuffer(b"".join(columns[5]), dtype=_ROWS)


class PodRows:
    """The task table of a workspace and the place of each task. ``tasks``: the table. ``slot_of``: slot by
    namespace/name of the pod. ``gang_number``: int64 (slots,), number of the gang as in :class:`GangRows`, -1 = none.
    ``wanted``: the cards that each pod says it holds. ``dirty``: positions of nodes whose pods have changed."""

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
        # Of each slot's notes.
        self._likes: list[Likeness] = [_NOTHING] * capacity
        self._ranks: list[tuple[float, float, str]] = [_RANK] * capacity
        self._kinds: list[str] = [""] * capacity
        self._likenesses = Likenesses()
        self._on_node: list[list[int]] = [[] for _ in nodes]

    def fork(self, classes: ClassTable, gangs: GangRows) -> PodRows:
        """The same rows, independent. O(slots)."""
        other = object.__new__(PodRows)
        other.__dict__.update(self.__dict__)
        other._classes, other._gangs = classes, gangs
        other.tasks, other.wanted = self.tasks.fork(), self.wanted.copy()
        other.slot_of, other.dirty = dict(self.slot_of), dict(self.dirty)
        other.gang_number, other._free = self.gang_number.copy(), list(self._free)
        other._likes, other._ranks, other._kinds = list(self._likes), list(self._ranks), list(self._kinds)
        other._likenesses = Likenesses()
        other._on_node = [slots.copy() for slots in self._on_node]
        return other

    def change(self, pods: Mapping[str, Pod | None], noted: Mapping[str, PodNotes]) -> None:
        """Write pods under their names; None takes one out. O(changes). ``noted``: notes of pods, as far as they are
        made already."""
        gone: list[int] = []
        come: dict[str, Pod] = {}
        slot_of, known = self.slot_of, self.tasks.pods
        for (key, pod), slot in zip(pods.items(), list(map(slot_of.get, pods)), strict=True):
            if slot is not None:
                if known[slot] is pod:
                    continue
                gone.append(slot)
                del slot_of[key]
            if pod is not None:
                come[key] = pod
        # By name, so that slots and classes come out the same for the same history.
        keys = sorted(come)
        fresh_pods = [come[key] for key in keys]
        notes_of = self._likenesses.notes_of
        fresh = Fresh(
            keys, fresh_pods, [noted.get(key) or notes_of(pod) for key, pod in zip(keys, fresh_pods, strict=True)]
        )
        self._learn(gone, fresh)
        left = self._remove(gone)
        slots, places = self._gangs.change_members(left, self._add(fresh), self._ranks, self._kinds)
        self.tasks.place[slots] = places

    def slots_on(self, node: int) -> list[int]:
        """Slots of the pods that hold something of a node, by name."""
        return self._on_node[node]

    def _learn(self, gone: list[int], fresh: Fresh) -> None:
        """Take in what new pods say of others; if that is news, all pods are matched with it again."""
        relations, says = self._classes.relations, np.flatnonzero(fresh.rows["says"]).tolist()
        if says and relations.learn(fresh.pods[at] for at in says):
            leaving = set(gone)
            staying = [
                (slot, pod) for slot, pod in enumerate(self.tasks.pods) if pod is not None and slot not in leaving
            ]
            relations.set_profiles([slot for slot, _ in staying], [pod for _, pod in staying])
            for slot, pod in staying:
                self.tasks.cls[slot] = self._classes.intern(pod, self._likes[slot])

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

    def _add(self, fresh: Fresh) -> dict[int, list[int]]:
        """Fill slots; returns them by number of their gang."""
        count, rows = len(fresh.keys), fresh.rows
        while len(self._free) < count:
            self._grow()
        come: dict[int, list[int]] = {}
        if not count:
            return come
        tasks, free = self.tasks, self._free
        slots = free[-1 : -1 - count : -1]
        del free[len(free) - count :]
        self._classes.relations.set_profiles(slots, fresh.pods)
        self.slot_of.update(zip(fresh.keys, slots, strict=True))
        kept, keys, likes, ranks, kinds = tasks.pods, tasks.keys, self._likes, self._ranks, self._kinds
        columns = (slots, fresh.keys, fresh.pods, fresh.likes, fresh.ranks, fresh.kinds)
        for slot, key, pod, like, rank, kind in zip(*columns, strict=True):
            kept[slot], keys[slot], likes[slot], ranks[slot], kinds[slot] = pod, key, like, rank, kind
        status, gangs = _STATUS[rows["standing"]], fresh.gangs
        if not self._schedulers.issuperset(fresh.schedulers):
            ours = [scheduler in self._schedulers for scheduler in fresh.schedulers]
            gangs = [gang if mine else "" for gang, mine in zip(gangs, ours, strict=True)]
            # Those that have no node yet are nothing to us.
            status[~np.array(ours) & ((status == PENDING) | (status == GATED))] = FOREIGN
        at = np.array(slots, dtype=np.int64)
        classes = self._classes.intern_all(fresh.pods, fresh.likes)
        tasks.live[at], tasks.status[at], tasks.cls[at], tasks.node[at], tasks.card[at] = True, status, classes, -1, -1
        tasks.priority[at], tasks.started[at], tasks.created[at] = rows["priority"], rows["started"], rows["created"]
        tasks.number[at], tasks.protected[at] = rows["number"], rows["protected"]
        for i in np.flatnonzero(rows["placed"] & HOLDS[status]).tolist():
            slot = slots[i]
            tasks.node[slot], tasks.card[slot] = self._place(slot, fresh.pods[i], classes[i])
        # Members of a gang mostly come one after the other.
        numbers: list[int] = []
        for gang, same in groupby(gangs):
            many, number = sum(1 for _ in same), self._gangs.number_of(gang) if gang else -1
            if gang:
                come.setdefault(number, []).extend(slots[len(numbers) : len(numbers) + many])
            numbers += [number] * many
        self.gang_number[at] = numbers
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
        self._likes += [_NOTHING] * size
        self._ranks += [_RANK] * size
        self._kinds += [""] * size
        self.gang_number = np.concatenate([self.gang_number, np.full(size, -1, dtype=np.int64)])
        self._free = [*range(2 * size - 1, size - 1, -1), *self._free]
