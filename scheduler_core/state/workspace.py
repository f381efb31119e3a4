"""Rows decoded from a snapshot, kept from one session to the next and repaired for what changed.

The values of a snapshot are immutable, so an object that is still the same object needs no second look: reading
10,000 pods anew costs tens of milliseconds, noticing that 20 of them changed costs two. What comes out never
depends on what the workspace has seen before.
"""

from __future__ import annotations

import msgspec
import numpy as np

from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod, PodPhase
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.state.axes import Axes
from scheduler_core.state.card_sets import words_for
from scheduler_core.state.card_table import CardTable, choose_cards
from scheduler_core.state.gang_table import lasting_name
from scheduler_core.state.group_facts import GroupFacts
from scheduler_core.state.node_table import NodeTable
from scheduler_core.state.relation_table import RelationTable
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
    Index,
    Ints,
)
from scheduler_core.state.task_class import ClassTable, TaskClass
from scheduler_core.state.task_table import TaskTable, number_of

_PENDING, _RUNNING, _SUCCEEDED, _FAILED = PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED
_HOLDS: list[bool] = HOLDS.tolist()

# Names of gangs that may be remembered beyond those that exist, before everything is built anew.
_MOST_FORGOTTEN = 100_000
# The same for task classes that no pod may have any more.
_MOST_CLASSES = 20_000


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What is kept of a PodGroup: its name, its lasting name, and the number that its tasks refer to."""

    group: PodGroup
    name: str
    lasting: str
    number: int


class Workspace:
    """Base tables of a cluster; :meth:`load` brings them up to a snapshot.

    Attributes:
        axes, classes: names of rows, interned task classes.
        relations: which pods the affinity terms of the cluster speak of.
        nodes, cards, tasks: the base tables; a session works on copies.
        group_names, lasting_names: namespace/name of each PodGroup of the snapshot, and the name that a PodGroup made
            anew would have too.
        masks: node masks by what they depend on; dropped when a node changes.
        outcomes: what the last session said of each gang, see ``framework.gang_outcomes``.
    """

    def __init__(self) -> None:
        self._pods: dict[int, tuple[Pod, int]] = {}
        self._groups: tuple[PodGroup, ...] = ()
        self._nodes: tuple[Node, ...] | None = None
        self._schedulers: tuple[str, ...] = ()
        self._card_types: object = None
        self._namespaces: object = None
        self.outcomes: dict[str, object] = {}

    def load(self, snapshot: Snapshot) -> None:
        """Bring the tables up to ``snapshot``; O(changed pods) Python work plus a set difference over all pods."""
        if (
            self._nodes is None
            or len(self._numbers) > _MOST_FORGOTTEN + 4 * len(snapshot.pod_groups)
            or len(self.classes) > _MOST_CLASSES + len(snapshot.pods)
            or self._schedulers != snapshot.schedulers
            or self._card_types != snapshot.card_types
            or self._namespaces != snapshot.namespaces
            or not _same(self._nodes, snapshot.nodes)
        ):
            self._start(snapshot)
        elif self._groups is not snapshot.pod_groups:
            self._load_groups(snapshot.pod_groups)
        self._load_pods(snapshot.pods)
        self._groups = snapshot.pod_groups
        # The last entry of the positions is -1, which is where "no gang" points.
        self.tasks.gang[:] = self._position[self._gang_number]

    def fork(self) -> Workspace:
        """An independent workspace with the same rows and without what sessions have left, O(tasks)."""
        other = Workspace()
        if self._nodes is None:
            return other
        other.__dict__.update(self.__dict__)
        other.nodes, other.cards, other.tasks = self.nodes.copy(), self.cards.copy(), self.tasks.fork()
        other.relations = self.relations.fork()
        other.masks, other.outcomes = {}, {}
        other._pods, other._free, other._dirty = dict(self._pods), list(self._free), dict(self._dirty)
        other._on_node = [dict(tasks) for tasks in self._on_node]
        other._entries, other._numbers = dict(self._entries), dict(self._numbers)
        other._facts = self._facts.at(np.arange(len(self._facts.since)))
        other._gang_number, other._position = self._gang_number.copy(), self._position.copy()
        return other

    def _start(self, snapshot: Snapshot) -> None:
        self.axes = Axes(snapshot)
        self.relations = RelationTable(snapshot.namespaces)
        self.classes = ClassTable(self.axes, self.relations)
        self.nodes = NodeTable(self.axes, snapshot.nodes)
        self.cards = CardTable(self.axes, snapshot.nodes)
        self.tasks = TaskTable(max(64, len(snapshot.pods)), words_for(int(self.cards.count.max(initial=0))))
        self.masks: dict[object, object] = {}
        self._free = list(range(len(self.tasks) - 1, -1, -1))
        self._pods = {}
        self._on_node: list[dict[int, None]] = [{} for _ in snapshot.nodes]
        self._dirty: dict[int, None] = {}
        self._nodes, self._schedulers = snapshot.nodes, snapshot.schedulers
        self._card_types, self._namespaces = snapshot.card_types, snapshot.namespaces
        self._entries: dict[int, Entry] = {}
        self._numbers: dict[str, int] = {}
        self._facts = GroupFacts.empty(len(snapshot.pod_groups))
        self._gang_number: Ints = np.full(len(self.tasks), -1, dtype=np.int64)
        self._load_groups(snapshot.pod_groups)

    def _load_groups(self, groups: tuple[PodGroup, ...]) -> None:
        """Names and positions of the gangs; a gang keeps its number while positions move. O(gangs)."""
        known, numbers = self._entries, self._numbers
        entries: dict[int, Entry] = {}
        for group in groups:
            entry = known.get(id(group))
            if entry is None:
                name = f"{group.namespace}/{group.name}"
                number = numbers.setdefault(name, len(numbers))
                entry = Entry(group, name, lasting_name(group), number)
                if number >= len(self._facts.since):
                    self._facts = self._facts.grown(2 * number + 1)
                self._facts.write(number, group)
            entries[id(group)] = entry
        self._entries = entries
        self.group_names = [entry.name for entry in entries.values()]
        self.lasting_names = [entry.lasting for entry in entries.values()]
        order = np.fromiter((entry.number for entry in entries.values()), dtype=np.int64, count=len(entries))
        self._position: Index = np.full(len(numbers) + 1, -1, dtype=np.int32)
        self._position[order] = np.arange(len(entries), dtype=np.int32)
        self.facts = self._facts.at(order)

    def _number_of(self, key: str) -> int:
        """Number of a gang by name, given out when it is first heard of."""
        number = self._numbers.setdefault(key, len(self._numbers))
        if number >= len(self._position) - 1:
            grown = np.full(2 * len(self._numbers) + 1, -1, dtype=np.int32)
            grown[: len(self._position) - 1] = self._position[:-1]
            self._position = grown
        return number

    def _load_pods(self, pods: tuple[Pod, ...]) -> None:
        known = self._pods
        ids = dict(zip(map(id, pods), pods, strict=True))
        gone = known.keys() - ids.keys()
        new = ids.keys() - known.keys()
        for ident in gone:
            _, slot = known.pop(ident)
            self._remove(slot)
        # By name, so that slots and classes come out the same for the same history.
        fresh = sorted((ids[ident] for ident in new), key=lambda p: (p.namespace, p.name))
        if self.relations.learn(fresh):
            for pod, slot in known.values():
                self.relations.set_profile(slot, pod)
                self.tasks.cls[slot] = self.classes.intern(pod)
        for pod in fresh:
            known[id(pod)] = (pod, self._add(pod))
        for node in self._dirty:
            self._place_cards(node)
            self.nodes.refresh(node)
        self._dirty.clear()
        self.nodes.log.clear()

    def _remove(self, slot: int) -> None:
        tasks = self.tasks
        node = int(tasks.node[slot])
        if node >= 0:
            self._take(slot, node, -1)
            del self._on_node[node][slot]
        self._gang_number[slot] = -1
        tasks.pods[slot], tasks.keys[slot], tasks.indices[slot] = None, "", ()
        tasks.live[slot] = False
        tasks.node[slot] = tasks.card[slot] = -1
        self._free.append(slot)

    def _add(self, pod: Pod) -> int:
        if not self._free:
            size = len(self.tasks)
            self.tasks.grow()
            self._gang_number = np.concatenate([self._gang_number, np.full(size, -1, dtype=np.int64)])
            self._free = list(range(len(self.tasks) - 1, size - 1, -1))
        tasks, slot = self.tasks, self._free.pop()
        ours = pod.scheduler in self._schedulers
        status = _status(pod, ours)
        tasks.pods[slot], tasks.keys[slot] = pod, f"{pod.namespace}/{pod.name}"
        tasks.live[slot] = True
        tasks.status[slot] = status
        self.relations.set_profile(slot, pod)
        tasks.cls[slot] = self.classes.intern(pod)
        tasks.priority[slot] = pod.priority
        tasks.started[slot] = float("nan") if pod.started is None else pod.started
        tasks.protected[slot] = pod.preemptable is False
        tasks.created[slot], tasks.number[slot] = pod.created, number_of(pod.name)
        self._gang_number[slot] = self._number_of(f"{pod.namespace}/{pod.group}") if pod.group and ours else -1
        node = self.axes.node_index.get(pod.node, -1) if pod.node and _HOLDS[status] else -1
        tasks.node[slot] = node
        if node >= 0:
            self._take(slot, node, 1)
            self._on_node[node][slot] = None
        elif pod.node and _HOLDS[status]:
            # Its node is gone from the snapshot: it counts for its queue, at the first card that it may have.
            cards = self.classes[int(tasks.cls[slot])].cards
            tasks.card[slot] = cards[0] if cards else -1
        return slot

    def _take(self, slot: int, node: int, sign: int) -> None:
        tasks = self.tasks
        request = self.classes[int(tasks.cls[slot])].request
        self.nodes.used[:, node] += sign * request
        if tasks.status[slot] == RELEASING:
            self.nodes.releasing[:, node] += sign * request
        self._dirty[node] = None

    def _place_cards(self, node: int) -> None:
        """Say which cards the pods of one node hold: the known ones first, then the others in the order of names."""
        table, tasks = self.cards, self.tasks
        for card in table.types_on[node]:
            rows = table.rows(card, node)
            table.used[rows] = 0
            table.releasing[rows] = 0
        loose = []
        for slot in sorted(self._on_node[node], key=tasks.keys.__getitem__):
            cls = self.classes[int(tasks.cls[slot])]
            if not cls.milli:
                continue
            card = self._card_on(cls, node)
            tasks.card[slot], tasks.indices[slot] = card, ()
            if card < 0:
                continue
            wanted = tasks.pod(slot).card_indices
            if wanted and self._hold(slot, cls, card, node, wanted):
                continue
            loose.append((slot, cls))
        for slot, cls in loose:
            self._place_loose(slot, cls, node)
        for card in table.types_on[node]:
            table.refresh(card, node)

    def _card_on(self, cls: TaskClass, node: int) -> int:
        """The first card type of the request that the node has, -1 when it has none."""
        for card in cls.cards:
            if self.cards.count_list[card][node]:
                return card
        return -1

    def _hold(self, slot: int, cls: TaskClass, card: int, node: int, wanted: tuple[int, ...]) -> bool:
        """Take the cards that the pod says it holds; False when that cannot be true."""
        count = self.cards.count_list[card][node]
        needed = 1 if cls.share else cls.whole
        if len(wanted) != needed or len(set(wanted)) != needed or min(wanted) < 0 or max(wanted) >= count:
            return False
        free = self.cards.free_now(card, node)
        each = cls.share or 1000
        if any(free[i] < each for i in wanted):
            return False
        self._use(slot, card, node, wanted, each)
        return True

    def _place_loose(self, slot: int, cls: TaskClass, node: int) -> None:
        """Place a pod whose cards are not known; where no room is left the emptiest cards are overcommitted."""
        each = cls.share or 1000
        for card in cls.cards:
            if self.cards.count_list[card][node]:
                chosen = choose_cards(self.cards.free_now(card, node), cls.whole, cls.share)
                if chosen is not None:
                    self._use(slot, card, node, chosen, each)
                    return
        card = int(self.tasks.card[slot])
        free = self.cards.free_now(card, node)
        order = sorted(range(len(free)), key=lambda i: (-free[i], i))
        self._use(slot, card, node, tuple(sorted(order[: 1 if cls.share else cls.whole])), each)

    def _use(self, slot: int, card: int, node: int, indices: tuple[int, ...], each: int) -> None:
        tasks, table = self.tasks, self.cards
        tasks.card[slot], tasks.indices[slot] = card, tuple(sorted(indices))
        first = table.start_list[card][node]
        releasing = tasks.status[slot] == RELEASING
        for i in indices:
            table.used[first + i] += each
            if releasing:
                table.releasing[first + i] += each


def _same(old: tuple[Node, ...], new: tuple[Node, ...]) -> bool:
    return old is new or (len(old) == len(new) and all(a is b or a == b for a, b in zip(old, new, strict=True)))


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
