"""Task classes: tasks with equal needs, so that masks and scores are computed once for all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from scheduler_core.model.pod import HostPort, NodeSelectorTerm, Pod, PreferredNodeTerm, Toleration
from scheduler_core.model.pod_notes import Likeness, marks_of
from scheduler_core.model.relations import Relations
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, MEMORY, PODS, Axes
from scheduler_core.state.relation_table import RelationTable
from scheduler_core.state.status import Bools, Index, Ints

# How much of a device a pod wants; what has devices counts those, so no node needs to count these.
_OF_DEVICES = frozenset({"volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"})


class TaskClass:
    """What a task needs, without who it is.

    Attributes:
        index: position in :class:`ClassTable`. request: int64 (R,), the rows of the node table.
        rows: the rows of ``request`` that are not zero.
        cards: positions on the card axis that will do, the preferred first; empty = asks for no card.
        milli: milli-cards in all. whole: cards that must be entirely free. share: milli-cards of one card.
        names: card names as written. implied: those that follow from the pod's nodes; both
            empty for a request that names no card.
        resource: extended resource of the request; empty for a share.
        scalars: other resources that are asked for, by name.
        missing: resources that no node has (cards by name, scalars), so that nothing will ever fit.
        oversize_share: asks for more than one card as a share, which nothing can give.
        best_effort: asks for nothing but a place.
        marks: the pods' annotations (or labels) among
            :data:`scheduler_core.model.pod_notes.MARKS`.
        relations: what its pods say of others, None = nothing.
        matched: numbers of the subjects (see RelationTable) that its pods match: those of its own terms, and those
            that others' anti-affinity and preferences have.
        namespace, claims: of its pods, where they mount volume claims; else empty.
        images: of its containers, as far as some node has them; containers: how many there are then.
        numa_policy, whole_cpus: as in :class:`Pod`.
        where: what static predicates and preferences depend on, hashable."""

    def __init__(
        self, index: int, pod: Pod, axes: Axes, between: tuple[Relations | None, tuple[int, ...]] | None = None
    ) -> None:
        self.index = index
        request = np.zeros(axes.resource_rows, dtype=np.int64)
        request[CPU], request[MEMORY], request[PODS] = pod.cpu_milli, pod.memory_mib, 1
        missing = []
        self.scalars: dict[str, int] = dict(pod.scalars)
        for name, count in sorted(pod.scalars.items()):
            row = axes.scalar_index.get(name)
            if row is not None:
                request[row] = count
            elif count > 0 and name not in _OF_DEVICES:
                missing.append(name)
        self.request: Ints = request
        self.rows: tuple[int, ...] = tuple(int(row) for row in np.flatnonzero(request))
        self.cpu_milli, self.memory_mib = pod.cpu_milli, pod.memory_mib
        self.names: tuple[str, ...] = ()
        self.implied: tuple[str, ...] = ()
        self.resource = ""
        self.cards: tuple[int, ...] = ()
        self.milli = self.whole = self.share = 0
        if pod.card is not None and pod.card.milli > 0:
            card = pod.card
            self.names, self.implied = (card.names, ()) if card.written else ((), card.names)
            self.resource, self.milli = card.resource, card.milli
            if card.names:
                self.cards = tuple(axes.card_index[name] for name in card.names if name in axes.card_index)
            else:
                self.cards = axes.cards_of_resource.get(card.resource, ())
            if not self.cards:
                missing.append(card.key or card.resource)
            if card.milli % MILLI:
                self.share = card.milli
            else:
                self.whole = card.milli // MILLI
        self.oversize_share = self.share > MILLI
        self.missing = tuple(missing)
        self.best_effort = not self.milli and self.rows == (PODS,) and not missing
        self.selector: tuple[tuple[str, str], ...] = tuple(sorted(pod.node_selector.items()))
        self.required: tuple[NodeSelectorTerm, ...] | None = pod.required_nodes
        self.preferred: tuple[PreferredNodeTerm, ...] = pod.preferred_nodes
        self.tolerations: tuple[Toleration, ...] = pod.tolerations
        self.ports: tuple[HostPort, ...] = pod.host_ports
        self.marks: dict[str, str] = dict(marks_of(pod))
        self.relations, self.matched = between or (None, ())
        self.claims = pod.claims
        self.namespace = pod.namespace if pod.claims else ""
        self.images = _known_images(pod, axes)
        self.containers = len(pod.images) if self.images else 0
        self.numa_policy, self.whole_cpus = pod.numa_policy, pod.whole_cpus
        self.where: Hashable = (self.selector, self.required, self.preferred, self.tolerations)

    @property
    def card_key(self) -> str:
        """The card request as it is shown: ``A|B``, the resource where no card is named, or empty."""
        return "|".join(self.names or self.implied) or self.resource


class ClassColumns(NamedTuple):
    """Classes as arrays, one row a class and at least one row.

    ``request`` int64 (K, R); ``whole``, ``share``, ``milli`` int64 (K,); ``option`` int32, the card types that will do,
    those of class k at ``option_start[k]:option_start[k + 1]``; ``first_card`` int32 (K,), the first of these, -1 =
    none; ``best_effort`` bool (K,); ``amounts`` int64 (3, K): cpu (milli), memory (MiB), milli-cards."""

    request: Ints
    whole: Ints
    share: Ints
    milli: Ints
    option_start: Index
    option: Index
    first_card: Index
    best_effort: Bools
    amounts: Ints


def _columns(classes: list[TaskClass], rows: int) -> ClassColumns:
    size = max(1, len(classes))
    start: Index = np.zeros(size + 1, dtype=np.int32)
    start[1 : len(classes) + 1] = np.cumsum([len(cls.cards) for cls in classes], dtype=np.int32)

    def column(values: Iterable[int]) -> Ints:
        return np.fromiter(values, dtype=np.int64) if classes else np.zeros(1, dtype=np.int64)

    milli = column(cls.milli for cls in classes)
    cpu, memory = column(cls.cpu_milli for cls in classes), column(cls.memory_mib for cls in classes)
    return ClassColumns(
        request=np.stack([cls.request for cls in classes]) if classes else np.zeros((1, rows), dtype=np.int64),
        whole=column(cls.whole for cls in classes),
        share=column(cls.share for cls in classes),
        milli=milli,
        option_start=start,
        option=np.array([card for cls in classes for card in cls.cards] or [-1], dtype=np.int32),
        first_card=column(cls.cards[0] if cls.cards else -1 for cls in classes).astype(np.int32),
        best_effort=column(cls.best_effort for cls in classes).astype(np.bool_),
        amounts=np.stack([cpu, memory, milli]),
    )


class ClassTable:
    """Interned task classes; grows while pods are read."""

    def __init__(self, axes: Axes, relations: RelationTable | None = None) -> None:
        self._axes = axes
        self.relations = relations or RelationTable()
        self._by_key: dict[Hashable, int] = {}
        # As long as no pod says anything of others, and no node lists its images.
        self._by_like: dict[Likeness, int] = {}
        self.classes: list[TaskClass] = []
        # Those whose pods say something of other pods.
        self.related: list[TaskClass] = []
        self._columns: ClassColumns | None = None
        self._columns_of = 0

    def __len__(self) -> int:
        return len(self.classes)

    def fork(self, relations: RelationTable) -> ClassTable:
        """The same classes with a future of their own."""
        other = object.__new__(ClassTable)
        other.__dict__.update(self.__dict__)
        other.relations = relations
        other._by_key, other._by_like = dict(self._by_key), dict(self._by_like)
        other.classes, other.related = list(self.classes), list(self.related)
        return other

    @property
    def columns(self) -> ClassColumns:
        """The classes as arrays; made anew when classes have come."""
        if self._columns is None or self._columns_of != len(self.classes):
            self._columns_of = len(self.classes)
            self._columns = _columns(self.classes, self._axes.resource_rows)
        return self._columns

    @property
    def amounts(self) -> Ints:
        """int64 (3, classes): cpu milli, memory MiB, milli-cards of each class; at least one column."""
        return self.columns.amounts

    @property
    def first_card(self) -> Index:
        """int32 (classes,): the first card type that will do, -1 = none; at least one entry."""
        return self.columns.first_card

    def __getitem__(self, index: int) -> TaskClass:
        return self.classes[index]

    def intern(self, pod: Pod, like: Likeness) -> int:
        """Index of the class of ``pod``, O(size of its spec). The terms of all pods must have been learnt before."""
        images = _known_images(pod, self._axes)
        if images or self.relations.subjects:
            further = (self.relations.of_class(pod), images, len(pod.images) if images else 0)
            return self._index((like.key, *further), pod, further[0])
        index = self._by_like.get(like)
        if index is None:
            if len(self._by_like) > 2 * len(self.classes) + 1000:
                self._by_like.clear()
            index = self._by_like[like] = self._index((like.key, None, (), 0), pod, None)
        return index

    def intern_all(self, pods: Sequence[Pod], likes: Sequence[Likeness]) -> list[int]:
        if self._axes.images or self.relations.subjects:
            return [self.intern(pod, like) for pod, like in zip(pods, likes, strict=True)]
        known = list(map(self._by_like.get, likes))
        return [self.intern(pods[at], likes[at]) if index is None else index for at, index in enumerate(known)]

    def _index(self, key: Hashable, pod: Pod, between: tuple[Relations | None, tuple[int, ...]] | None) -> int:
        index = self._by_key.get(key)
        if index is None:
            index = self._by_key[key] = len(self.classes)
            cls = TaskClass(index, pod, self._axes, between)
            self.classes.append(cls)
            if cls.relations is not None:
                self.related.append(cls)
        return index


def _known_images(pod: Pod, axes: Axes) -> tuple[str, ...]:
    """The pod's images that some node has; usually no node lists them, and then none."""
    known = axes.images
    return tuple(sorted(name for name in pod.images if name in known)) if known else ()
