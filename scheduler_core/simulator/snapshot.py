"""The world as a session's input, straight from its structs."""

from __future__ import annotations

from scheduler_core.model.cards import CardKind, CardType
from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.queue import PriorityClass, Queue
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.simulator.changes import Change
from scheduler_core.simulator.world import World


class SnapshotView:
    """Snapshots of one world; what did not change since the last one is the very same tuple.

    A snapshot costs O(n log n) in the kinds that changed; sorting nearly sorted keys is close to linear.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._stale = {"Pod", "PodGroup", "Node", "Queue", "PriorityClass"}
        self._pods: tuple[Pod, ...] = ()
        self._pod_groups: tuple[PodGroup, ...] = ()
        self._nodes: tuple[Node, ...] = ()
        self._card_types: tuple[CardType, ...] = ()
        self._queues: tuple[Queue, ...] = ()
        self._priority_classes: tuple[PriorityClass, ...] = ()
        world.subscribe(self._heard)

    def _heard(self, change: Change) -> None:
        self._stale.add(change.kind)

    def take(self) -> Snapshot:
        """The world now."""
        world, stale = self._world, self._stale
        if "Pod" in stale:
            self._pods = tuple(pod for _, pod in sorted(world.pods.items()))
        if "PodGroup" in stale:
            self._pod_groups = tuple(group for _, group in sorted(world.pod_groups.items()))
        if "Node" in stale:
            self._nodes = tuple(node for _, node in sorted(world.nodes.items()))
            self._card_types = card_types(self._nodes)
        if "Queue" in stale:
            self._queues = tuple(queue for _, queue in sorted(world.queues.items()))
        if "PriorityClass" in stale:
            self._priority_classes = tuple(item for _, item in sorted(world.priority_classes.items()))
        stale.clear()
        return Snapshot(
            nodes=self._nodes,
            pods=self._pods,
            pod_groups=self._pod_groups,
            queues=self._queues,
            priority_classes=self._priority_classes,
            card_types=self._card_types,
            latest=world.t,
        )


def card_types(nodes: tuple[Node, ...]) -> tuple[CardType, ...]:
    """The card types that ``nodes`` have, by name; the parent of a slice is the part of its name before the slash."""
    types: dict[str, CardType] = {}
    for node in nodes:
        for group in node.cards:
            parent, slash, cut = group.card.partition("/")
            kind = CardKind.WHOLE if not slash else CardKind.MIG if cut.startswith("mig-") else CardKind.MPS
            types[group.card] = CardType(
                name=group.card, resource=group.resource, kind=kind, parent=parent if slash else None
            )
    return tuple(types[name] for name in sorted(types))
