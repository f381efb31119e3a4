"""Which gangs could start now: a dry run over the room that is free.

Each gang's minimum is put on the first nodes by name that have room for it; what one gang takes, the next one does not
find. Room is what is free once all that leaves has left; for a gang that may take back, what training holds in
reclaimable queues counts as free too. A rehearsal, not a decision: allocate places by score, pod by pod."""

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from itertools import groupby

import msgspec
import numpy as np

from scheduler_core.framework.kernels.columns import Bytes
from scheduler_core.framework.kernels.rehearsal import Needs, Room, Shapes, take
from scheduler_core.framework.session import Session
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, MEMORY, PODS
from scheduler_core.state.status import CHARGED, PENDING, PIPELINED, Bools, Index, Ints


class Shape(msgspec.Struct, frozen=True, gc=False):
    """What each of several equal pods needs: int64 (R,), card positions of which any will do (empty = none), entirely
    free cards, milli-cards of one card, and bool (N,), None = every node."""

    request: Ints
    cards: tuple[int, ...] = ()
    whole: int = 0
    share: int = 0
    allowed: Bools | None = None


# Shapes by number, and how many pods of each; None = nothing has room for them, ever.
Parts = Sequence[tuple[int, int]] | None


class Startable:
    """The dry run of one session; O(R x N + cards) for a gang that has room and for each new shape that has none."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._shapes: list[Shape] = []
        self._number_of: dict[Hashable, int] = {}
        self._stacked: Shapes | None = None
        self._span: Ints = np.zeros((len(session.gangs), 2), dtype=np.int64)
        self._known: Bools = np.zeros(len(session.gangs), dtype=np.bool_)
        self._parts: list[Ints] = [np.zeros((0, 2), dtype=np.int64)]
        self._parted = 0
        self._span_of_kind: dict[tuple[int, int], tuple[int, int]] = {}
        self._needs: Needs | None = None

    def take(self, gang: int) -> bool:
        """The same, and the room is used up."""
        return bool(take(gang, *self.tables([gang]), True))

    def which(self, gangs: Index) -> Bools:
        """bool (len(gangs),): which of the gangs could start, each as if it were alone."""
        room, shapes, needs = self.tables(gangs.tolist())
        # Equal needs have one span, and one answer; most of those who wait at a full queue ask for the same.
        key = 2 * (needs.span[gangs, 0] * (self._parted + 1) + needs.span[gangs, 1]) + needs.back[gangs]
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        answers = [bool(take(gang, room, shapes, needs, False)) for gang in gangs[first].tolist()]
        return np.array(answers, dtype=np.bool_)[which]

    def tables(self, gangs: Iterable[int]) -> tuple[Room, Shapes, Needs]:
        """What the compiled dry run reads and uses up, with the needs of at least these gangs."""
        self._learn(gangs)
        shapes = self._stack()
        if self._needs is None or len(self._needs.part) != self._parted or len(self._needs.most) != len(self._shapes):
            most = np.full((len(self._shapes), 2), -1, dtype=np.int64)
            if self._needs is not None:
                most[: len(self._needs.most)] = self._needs.most
            self._needs = Needs(self._span, np.concatenate(self._parts), self._takes_back, most)
        return self._room, shapes, self._needs

    @cached_property
    def _takes_back(self) -> Bytes:
        """int8 (G,): who may take back from others."""
        session = self._session
        if "reclaim" not in session.policy.actions:
            return np.zeros(len(session.gangs), dtype=np.int8)
        return session.columns.may_reclaim.astype(np.int8)

    @cached_property
    def _room(self) -> Room:
        """What is free once all that leaves has left, and what could be taken back."""
        cards, free = self._session.cards, self._session.nodes.future
        held, held_cards = self._held(free.shape)
        nodes = np.stack([free, held])
        left = np.stack([MILLI - cards.used + cards.releasing - cards.pipelined, held_cards])
        return Room(nodes, left, np.stack([cards.start, cards.count]), np.empty_like(nodes), np.empty_like(left))

    def _held(self, shape: tuple[int, ...]) -> tuple[Ints, Ints]:
        """What training holds in queues that let it go, by node and by single card. O(tasks)."""
        session = self._session
        tasks, classes, cards = session.tasks, session.cluster.classes, session.cards
        nodes: Ints = np.zeros(shape, dtype=np.int64)
        single: Ints = np.zeros_like(cards.used)
        if not self._takes_back.any():
            return nodes, single
        lets_go = [q.reclaimable and q.service_type != ServiceType.INFERENCE.value for q in session.ledger.queues]
        goes = tasks.live & CHARGED[tasks.status] & (tasks.gang >= 0) & (tasks.node >= 0)
        at = np.flatnonzero(goes)
        # A gang whose queue does not exist has queue -1: the last entry.
        at = at[np.array([*lets_go, False], dtype=np.bool_)[session.gangs.queue[tasks.gang[at]]]]
        if not at.size:
            return nodes, single
        requests = np.stack([cls.request for cls in classes.classes], axis=1)
        for row in range(shape[0]):
            np.add.at(nodes[row], tasks.node[at], requests[row, tasks.cls[at]])
        for task in at[tasks.card[at] >= 0].tolist():
            first = cards.start_list[int(tasks.card[task])][int(tasks.node[task])]
            each = classes[int(tasks.cls[task])].share or MILLI
            for index in tasks.indices[task]:
                single[first + index] += each
        return nodes, single

    def _learn(self, gangs: Iterable[int]) -> None:
        """Write down the needs of gangs of which they are not known yet; equal ones once."""
        new = [gang for gang in gangs if not self._known[gang]]
        if not new:
            return
        session, at = self._session, np.array(new, dtype=np.int64)
        self._known[at] = True
        table, declaration = session.gangs, session.cluster.workspace.facts.declaration[at]
        needed = np.maximum(0, table.min_member[at] - table.ready_count[at] - table.counts[PIPELINED][at])
        cls, waiting = session.columns.waiting_classes(at)
        alike = (cls >= 0) & (waiting >= needed) & (needed > 0)
        lacking = ~alike & (table.counts[PENDING][at] < needed) & (declaration >= 0)
        key = np.stack([np.where(alike, 2 * cls, 2 * declaration + 1), needed], axis=1)[alike | lacking]
        kinds, which = np.unique(key, axis=0, return_inverse=True)
        spans = np.array([self._span_of(kind, count) for kind, count in kinds.tolist()], dtype=np.int64).reshape(-1, 2)
        self._span[at[alike | lacking]] = spans[which.reshape(-1)]
        for gang in at[~alike & ~lacking & (needed > 0)].tolist():
            self._span[gang] = self._written(self._parts_of(gang))

    def _span_of(self, kind: int, count: int) -> tuple[int, int]:
        """The span of ``count`` pods of a class (twice its index), or as a declaration (the odd numbers) says it."""
        known = self._span_of_kind.get((kind, count))
        if known is None:
            if kind % 2:
                parts = self._declared(self._session.cluster.workspace.gangs.declarations[kind // 2], count)
            else:
                parts = None if self._impossible[kind // 2] else [(self._number_of_class(kind // 2), count)]
            known = self._span_of_kind[kind, count] = self._written(parts)
        return known

    def _written(self, parts: Parts) -> tuple[int, int]:
        if parts is None:
            return (1, 0)
        self._parts.append(np.array(parts, dtype=np.int64).reshape(-1, 2))
        self._parted += len(parts)
        return (self._parted - len(parts), self._parted)

    @cached_property
    def _impossible(self) -> Bools:
        """bool (K + 1,): classes that no node will ever have room for; the last one is of no task."""
        classes = self._session.cluster.classes.classes
        return np.array([*(bool(cls.missing or cls.oversize_share) for cls in classes), False], dtype=np.bool_)

    def _parts_of(self, gang: int) -> Parts:
        """The pods that make its minimum in their order, equal ones that follow each other as one shape and a number.
        None when no node will ever have room for one of them."""
        session = self._session
        tasks, count = session.pending_tasks(gang), session.needed(gang)
        runs = [(index, len(list(run))) for index, run in groupby(session.tasks.cls[tasks[:count]].tolist())]
        if any(self._impossible[index] for index, _ in runs):
            return None
        return [(self._number_of_class(index), number) for index, number in runs]

    def _number_of_class(self, index: int) -> int:
        if index not in self._number_of:
            candidates, cls = self._session.candidates, self._session.cluster.classes[index]
            allowed = candidates.view(cls).allowed if candidates.volatile(cls) else candidates.masks(cls)[1]
            self._add(index, Shape(cls.request, cls.cards if cls.milli else (), cls.whole, cls.share, allowed))
        return self._number_of[index]

    def _declared(self, group: PodGroup, count: int) -> Parts:
        """A Job whose pods are not made yet: what its PodGroup asks for, in ``count`` equal parts, rounded up. A card
        type of which it asks for fewer cards than it has pods is for that many pods alone."""
        axes = self._session.axes
        cpu = memory = 0
        if group.min_resources is not None:
            cpu, memory = -(-group.min_resources.cpu_milli // count), -(-group.min_resources.memory_mib // count)
        parts: list[tuple[tuple[int, ...], int, int]] = []
        for name, milli in sorted(group.card_request.items()):
            cards = tuple(axes.card_index[part] for part in name.split("|") if part in axes.card_index)
            if not cards and milli:
                return None
            if milli >= count * MILLI:
                parts.append((cards, -(-milli // (count * MILLI)) * MILLI, count))
            elif milli % MILLI == 0 and milli:
                parts.append((cards, MILLI, milli // MILLI))
            elif milli:
                parts.append((cards, -(-milli // count), count))
        return [(self._number(cpu, memory, cards, each), pods) for cards, each, pods in parts or [((), 0, count)]]

    def _number(self, cpu: int, memory: int, cards: tuple[int, ...], milli: int) -> int:
        key = (cpu, memory, cards, milli)
        if key not in self._number_of:
            request = np.zeros(self._session.axes.resource_rows, dtype=np.int64)
            request[CPU], request[MEMORY], request[PODS] = cpu, memory, 1
            whole, share = (0, milli) if milli % MILLI else (milli // MILLI, 0)
            self._add(key, Shape(request, cards, whole, share))
        return self._number_of[key]

    def _add(self, key: Hashable, shape: Shape) -> None:
        self._number_of[key] = len(self._shapes)
        self._shapes.append(shape)

    def _stack(self) -> Shapes:
        if self._stacked is None or len(self._stacked.start) - 1 != len(self._shapes):
            session, shapes = self._session, self._shapes
            every: Bools = np.ones(session.nodes.future.shape[1], dtype=np.bool_)
            masks = [every if shape.allowed is None else shape.allowed for shape in shapes]
            rows, nodes = session.axes.resource_rows, len(every)
            start = np.cumsum([0, *(len(shape.cards) for shape in shapes)], dtype=np.int32)
            self._stacked = Shapes(
                np.array([shape.request for shape in shapes], dtype=np.int64).reshape(-1, rows),
                np.array([(shape.whole, shape.share) for shape in shapes], dtype=np.int64).reshape(-1, 2),
                start,
                np.array([card for shape in shapes for card in shape.cards], dtype=np.int32),
                np.array(masks, dtype=np.bool_).reshape(len(shapes), nodes),
            )
        return self._stacked
