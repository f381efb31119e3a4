"""Rows decoded from a snapshot, kept from one session to the next and repaired for what changed.

The values of a snapshot are immutable, so an object that is still the same object needs no second look, and lists that
say how they differ from the ones before (:mod:`scheduler_core.model.edition`) need not even be compared. What comes out
never depends on what the workspace has seen before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from scheduler_core.algorithms.selectors import NodeIndex
from scheduler_core.model.edition import Edition, Step, key_of, step_between
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.pod_notes import PodNotes
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.state.axes import Axes
from scheduler_core.state.card_sets import words_for
from scheduler_core.state.card_table import CardTable
from scheduler_core.state.gang_rows import GangRows
from scheduler_core.state.group_facts import GroupFacts
from scheduler_core.state.member_rows import MemberRows
from scheduler_core.state.names import Names, name_of
from scheduler_core.state.node_rows import recount
from scheduler_core.state.node_table import NodeTable
from scheduler_core.state.pod_rows import PodRows
from scheduler_core.state.relation_table import RelationTable
from scheduler_core.state.spare_tables import SpareTables
from scheduler_core.state.status import Bools
from scheduler_core.state.task_class import ClassTable
from scheduler_core.state.task_table import TaskTable

# Task classes that no pod may have any more, before everything is built anew.
_MOST_CLASSES = 20_000


class Workspace:
    """Base tables of a cluster; :meth:`load` brings them up to a snapshot.

    Attributes:
        axes, classes: names of rows, interned task classes.
        relations: which pods the affinity terms of the cluster speak of.
        nodes, cards: the base tables; a session works on copies.
        gangs: numbers, names and members of gangs. members: sums over these.
        masks: node masks by what they depend on; dropped when a node changes.
        outcomes: what earlier sessions found out about gangs, see ``framework.gang_outcomes`` and ``service_types``."""

    def __init__(self) -> None:
        self._loaded: Snapshot | None = None
        self._spare = SpareTables()
        self.outcomes: dict[str, object] = {}

    @property
    def tasks(self) -> TaskTable:
        return self._pods.tasks

    @property
    def slot_of(self) -> dict[str, int]:
        return self._pods.slot_of

    @property
    def group_names(self) -> Names:
        return self.gangs.names

    @property
    def lasting_names(self) -> Names:
        """The name that each PodGroup would have too if it were made anew."""
        return self.gangs.lasting

    @property
    def facts(self) -> GroupFacts:
        """What the PodGroups of the snapshot say of themselves."""
        return self.gangs.facts

    def load(self, snapshot: Snapshot) -> None:
        """Bring the tables up to ``snapshot``. O(changes) where the lists of the snapshot know what changed, and a
        comparison of all pods where they do not."""
        before = self._loaded
        if before is snapshot:
            return
        # Nothing is known to be true of the tables until all of it is done.
        self._loaded = None
        if before is None or not self._follow(before, snapshot):
            self._start(snapshot)
        rows = self._pods
        dirty = sorted(rows.dirty)
        rows.dirty.clear()
        self._spare.differ(dirty)
        slots = [rows.slots_on(node) for node in dirty]
        recount(self.nodes, self.cards, rows.tasks, rows.wanted.words, self.classes.columns, dirty, slots)
        if self.gangs.arrange(snapshot.pod_groups) or self.gangs.changed:
            self._arrange_members()
        # A pod that does not say which cards it holds may have got others by what happened to its neighbours.
        again: Bools = np.zeros(self.gangs.size + 1, dtype=np.bool_)
        again[rows.gang_number[[slot for each in slots for slot in each]]] = True
        again[list(self.gangs.changed)] = True
        self.members.count(np.flatnonzero(again[:-1]), rows.tasks, self.classes)
        self.gangs.changed.clear()
        self._loaded = snapshot

    def _arrange_members(self) -> None:
        rows, gangs = self._pods, self.gangs
        # The last entry of the positions is -1, which is where "no gang" points.
        rows.tasks.gang[:] = gangs.position[rows.gang_number]
        self.members.change(gangs.changed, gangs.numbers, gangs.size)

    def lend(self) -> tuple[NodeTable, CardTable]:
        """The tables of nodes and cards for a session, which may change them."""
        return self._spare.lend(self.nodes, self.cards)

    def take_back(self, nodes: NodeTable, cards: CardTable) -> None:
        """Tables that were lent and are not read any more."""
        self._spare.take_back(nodes, cards)

    def fork(self) -> Workspace:
        """An independent workspace with the same rows and without what sessions have left, O(tasks)."""
        other = Workspace()
        if self._loaded is None:
            return other
        other.__dict__.update(self.__dict__)
        other.nodes, other.cards, other.outcomes = self.nodes.copy(), self.cards.copy(), {}
        other._spare = SpareTables()
        # What depends on nodes alone is never changed, only added to.
        other.masks = {key: known for key, known in self.masks.items() if isinstance(known, NodeIndex)}
        other.relations = self.relations.fork()
        other.classes = self.classes.fork(other.relations)
        other.gangs, other.members = self.gangs.fork(), self.members.fork()
        other._pods = self._pods.fork(other.classes, other.gangs)
        return other

    def _start(self, snapshot: Snapshot) -> None:
        self.axes = Axes(snapshot)
        self.relations = RelationTable(snapshot.namespaces)
        self.classes = ClassTable(self.axes, self.relations)
        self.nodes = NodeTable(self.axes, snapshot.nodes)
        self.cards = CardTable(self.axes, snapshot.nodes)
        self.gangs, self.members = GangRows(), MemberRows(len(self.axes.cards))
        self.masks: dict[object, object] = {}
        self.outcomes, self._spare = {}, SpareTables()
        words = words_for(int(self.cards.count.max(initial=0)))
        size = max(64, len(snapshot.pods))
        self._pods = PodRows(size, words, self.axes.node_index, snapshot.schedulers, self.classes, self.gangs)
        self.gangs.apply(Step(added=[(at, key_of(group), group) for at, group in enumerate(snapshot.pod_groups)]))
        self._pods.change({key_of(pod): pod for pod in snapshot.pods}, {})

    def _follow(self, before: Snapshot, snapshot: Snapshot) -> bool:
        """Repair the tables for what changed; False when they have to be built anew."""
        if (
            len(self.classes) > _MOST_CLASSES + len(snapshot.pods)
            or before.schedulers != snapshot.schedulers
            or before.card_types != snapshot.card_types
            or before.namespaces != snapshot.namespaces
        ):
            return False
        steps = _steps(before.pod_groups, snapshot.pod_groups)
        if steps is None or not self._change_nodes(before.nodes, snapshot.nodes):
            return False
        for step in steps:
            self.gangs.apply(step)
        self._pods.change(*_changed_pods(before.pods, snapshot.pods))
        return True

    def _change_nodes(self, before: Sequence[Node], after: Sequence[Node]) -> bool:
        """Take in nodes that say something else of themselves; False when there are others, or with other cards."""
        if before is after:
            return True
        pairs = _replaced(before, after)
        if pairs is None:
            return False
        changed = [(at, old, new) for at, old, new in pairs if old is not new and old != new]
        if not all(self._same_rows(old, new) for _, old, new in changed):
            return False
        self.nodes.nodes = after
        if changed:
            index = self.masks.get("node_index")
            self.masks = {}
            if index is not None and all(NodeIndex.same_for(old, new) for _, old, new in changed):
                self.masks["node_index"] = index
            # Sessions and forks may still look at the old ones.
            self.nodes.allocatable = self.nodes.allocatable.copy()
        for at, _, node in changed:
            self.nodes.describe(at, node, self.axes)
            self._pods.dirty[at] = None
        return True

    def _same_rows(self, old: Node, new: Node) -> bool:
        """The tables have a place for all that the node says now."""
        return (
            old.name == new.name
            and old.cards == new.cards
            and all(name in self.axes.scalar_index for name in new.scalars)
            and self.axes.images.issuperset(new.images)
        )


def _replaced(before: Sequence[Node], after: Sequence[Node]) -> Iterable[tuple[int, Node, Node]] | None:
    """Positions at which there may be another node object now, with both; None when some came or went."""
    if len(before) != len(after):
        return None
    steps = after.steps_since(before) if isinstance(after, Edition) else None
    if steps is None:
        return ((at, old, new) for at, (old, new) in enumerate(zip(before, after, strict=True)))
    if any(step.removed or step.added for step in steps):
        return None
    latest: dict[int, Node] = {at: node for step in steps for at, _, node in step.changed}
    return ((at, before[at], node) for at, node in sorted(latest.items()))


def _steps(before: Sequence[PodGroup], after: Sequence[PodGroup]) -> list[Step] | None:
    """From the PodGroups of one snapshot to those of the next; None when they changed places."""
    steps = after.steps_since(before) if isinstance(after, Edition) else None
    if steps is None:
        step = step_between(before, after, Names(before, name_of))
        steps = None if step is None else [step]
    return steps


def _changed_pods(
    before: Sequence[Pod], after: Sequence[Pod]
) -> tuple[Mapping[str, Pod | None], Mapping[str, PodNotes]]:
    """Pods that came or changed by namespace/name, None for those that went; and notes of them, where there are any."""
    if before is after:
        return {}, {}
    told = after.changes_since(before) if isinstance(after, Edition) else None
    if told is not None:
        return told
    changes: dict[str, Pod | None] = {}
    old, new = dict(zip(map(id, before), before, strict=True)), dict(zip(map(id, after), after, strict=True))
    changes.update((key_of(old[ident]), None) for ident in old.keys() - new.keys())
    changes.update((key_of(new[ident]), new[ident]) for ident in new.keys() - old.keys())
    return changes, {}
