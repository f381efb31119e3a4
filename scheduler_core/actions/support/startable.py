"""Which gangs could start now: a dry run over the room that is free.

Each gang's minimum is put on the first nodes by name that have room for it; what one gang takes, the next one does not
find. Room is what is free once all that leaves has left; for a gang that may take back, what training holds in
reclaimable queues counts as free too. A rehearsal, not a decision: allocate places by score, pod by pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from itertools import groupby

import numpy as np

from scheduler_core.actions.support.dry_room import DryRoom, Shape
from scheduler_core.framework.session import Session
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, MEMORY, PODS
from scheduler_core.state.status import CHARGED

Needs = Sequence[tuple[Shape, int]]


class Startable:
    """The dry run of one session; O(R x N + cards) for a gang that has room and for each new shape that has none."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # Shape, with or without what could be taken back -> how many had room when it was last counted: never more
        # than that have it later, since room only shrinks.
        self._most: dict[tuple[Hashable, bool], int] = {}
        self._shapes: dict[Hashable, Shape] = {}
        self._needs_of: dict[int, Needs | None] = {}

    def could(self, gang: int) -> bool:
        """True when there is room for all of the gang's minimum."""
        return self._try(gang, keep=False)

    def take(self, gang: int) -> bool:
        """The same, and the room is used up."""
        return self._try(gang, keep=True)

    def _try(self, gang: int, *, keep: bool) -> bool:
        if gang not in self._needs_of:
            self._needs_of[gang] = self._needs(gang)
        needs = self._needs_of[gang]
        if needs is None:
            return False
        if self._fit(self._free, needs, back=False, keep=keep):
            return True
        if not self._takes_back(gang):
            return False
        free, held = self._free, self._held
        both = DryRoom(self._session.cards, free.nodes + held.nodes, free.cards + held.cards)
        if not self._fit(both, needs, back=True, keep=keep):
            return False
        if keep:
            free.nodes, free.cards = np.minimum(free.nodes, both.nodes), np.minimum(free.cards, both.cards)
            held.nodes, held.cards = both.nodes - free.nodes, both.cards - free.cards
        return True

    def _takes_back(self, gang: int) -> bool:
        session = self._session
        return "reclaim" in session.policy.actions and session.hooks.refusal("reclaimer", gang) is None

    def _fit(self, room: DryRoom, needs: Needs, *, back: bool, keep: bool) -> bool:
        """Whether all pods have room together; it is used up if they have and ``keep`` says so."""
        if any(count > self._most.get((shape.key, back), count) for shape, count in needs):
            return False
        if not keep and len(needs) > 1:
            room = room.copy()
        before = room.copy() if keep and len(needs) > 1 else room
        for number, (shape, count) in enumerate(needs):
            slots = room.slots(shape)
            total = int(slots.sum())
            if number == 0:
                self._most[shape.key, back] = total
            if total < count:
                room.nodes, room.cards = before.nodes, before.cards
                return False
            if keep or len(needs) > 1:
                room.use(shape, count, slots)
        return True

    @cached_property
    def _free(self) -> DryRoom:
        """What is free once all that leaves has left."""
        cards = self._session.cards
        left = MILLI - cards.used + cards.releasing - cards.pipelined
        return DryRoom(cards, self._session.nodes.future.copy(), left)

    @cached_property
    def _held(self) -> DryRoom:
        """What training holds in queues that let it go. O(tasks)."""
        session = self._session
        tasks, classes = session.tasks, session.cluster.classes
        room = DryRoom(session.cards, np.zeros_like(self._free.nodes), np.zeros_like(self._free.cards))
        lets_go = [q.reclaimable and q.service_type != ServiceType.INFERENCE.value for q in session.ledger.queues]
        goes = tasks.live & CHARGED[tasks.status] & (tasks.gang >= 0) & (tasks.node >= 0)
        at = np.flatnonzero(goes)
        # A gang whose queue does not exist has queue -1: the last entry.
        at = at[np.array([*lets_go, False], dtype=np.bool_)[session.gangs.queue[tasks.gang[at]]]]
        if not at.size:
            return room
        requests = np.stack([cls.request for cls in classes.classes], axis=1)
        for row in range(room.nodes.shape[0]):
            np.add.at(room.nodes[row], tasks.node[at], requests[row, tasks.cls[at]])
        for task in at[tasks.card[at] >= 0].tolist():
            first = session.cards.start_list[int(tasks.card[task])][int(tasks.node[task])]
            each = classes[int(tasks.cls[task])].share or MILLI
            for index in tasks.indices[task]:
                room.cards[first + index] += each
        return room

    # What a gang needs ------------------------------------------------------------------------------------------

    def _needs(self, gang: int) -> Needs | None:
        """The pods that make its minimum in their order, equal ones that follow each other as one shape and a number.

        None when no node will ever have room for one of them.
        """
        session = self._session
        count = session.needed(gang)
        if not count:
            return ()
        alike = session.columns.waiting_class(gang)
        if alike is not None and alike[1] >= count:
            cls = session.cluster.classes[alike[0]]
            return None if cls.missing or cls.oversize_share else [(self._shape_of_class(alike[0]), count)]
        tasks = session.pending_tasks(gang)
        group = session.group(gang)
        if len(tasks) < count and (group.min_resources is not None or group.card_request):
            return self._declared(gang, count)
        runs = [(index, len(list(run))) for index, run in groupby(session.tasks.cls[tasks[:count]].tolist())]
        classes = session.cluster.classes
        if any(classes[index].missing or classes[index].oversize_share for index, _ in runs):
            return None
        return [(self._shape_of_class(index), number) for index, number in runs]

    def _shape_of_class(self, index: int) -> Shape:
        known = self._shapes.get(index)
        if known is None:
            cls = self._session.cluster.classes[index]
            allowed = self._session.candidates.view(cls).allowed
            known = Shape(index, cls.request, cls.cards if cls.milli else (), cls.whole, cls.share, allowed)
            self._shapes[index] = known
        return known

    def _declared(self, gang: int, count: int) -> Needs | None:
        """A Job whose pods are not made yet: what its PodGroup asks for, in ``count`` equal parts, rounded up.

        A card type of which it asks for fewer cards than it has pods is for that many pods alone.
        """
        session = self._session
        group, axes = session.group(gang), session.axes
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
        return [(self._shape(cpu, memory, cards, each), pods) for cards, each, pods in parts or [((), 0, count)]]

    def _shape(self, cpu: int, memory: int, cards: tuple[int, ...], milli: int) -> Shape:
        key = (cpu, memory, cards, milli)
        known = self._shapes.get(key)
        if known is None:
            request = np.zeros(self._session.axes.resource_rows, dtype=np.int64)
            request[CPU], request[MEMORY], request[PODS] = cpu, memory, 1
            whole, share = (0, milli) if milli % MILLI else (milli // MILLI, 0)
            known = self._shapes[key] = Shape(key, request, cards, whole, share)
        return known
