"""The world as a session's input, straight from its structs."""

import bisect
from typing import Any, Generic, TypeVar

from scheduler_core.model.cards import CardKind, CardType
from scheduler_core.model.node import Node
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.simulator.changes import Change
from scheduler_core.simulator.world import World

_Value = TypeVar("_Value")


class _Sorted(Generic[_Value]):
    """The values of a dict in the order of its keys, repaired for the keys that changed; O(k log n) and one copy."""

    def __init__(self, source: dict[str, _Value]) -> None:
        self._source = source
        self._stale: dict[str, None] = dict.fromkeys(source)
        self._keys: list[str] = []
        self._values: list[_Value] = []
        self._taken: tuple[_Value, ...] = ()

    def touch(self, key: str) -> None:
        self._stale[key] = None

    def take(self) -> tuple[_Value, ...]:
        if self._stale:
            if len(self._stale) * 8 > len(self._source):
                self._keys = sorted(self._source)
                self._values = [self._source[key] for key in self._keys]
            else:
                for key in self._stale:
                    self._repair(key)
            self._stale.clear()
            self._taken = tuple(self._values)
        return self._taken

    def _repair(self, key: str) -> None:
        at = bisect.bisect_left(self._keys, key)
        known = at < len(self._keys) and self._keys[at] == key
        value = self._source.get(key)
        if value is None:
            if known:
                del self._keys[at], self._values[at]
        elif known:
            self._values[at] = value
        else:
            self._keys.insert(at, key)
            self._values.insert(at, value)


class SnapshotView:
    """Snapshots of one world; what did not change since the last one is the very same tuple."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._pods, self._pod_groups = _Sorted(world.pods), _Sorted(world.pod_groups)
        self._nodes, self._queues = _Sorted(world.nodes), _Sorted(world.queues)
        self._priority_classes = _Sorted(world.priority_classes)
        self._parts: dict[str, _Sorted[Any]] = {
            "Pod": self._pods,
            "PodGroup": self._pod_groups,
            "Node": self._nodes,
            "Queue": self._queues,
            "PriorityClass": self._priority_classes,
        }
        self._typed: tuple[Node, ...] = ()
        self._card_types: tuple[CardType, ...] = ()
        world.subscribe(self._heard)

    def _heard(self, change: Change) -> None:
        part = self._parts.get(change.kind)
        if part is not None:
            part.touch(change.key)

    def take(self) -> Snapshot:
        nodes = self._nodes.take()
        if nodes is not self._typed:
            self._typed, self._card_types = nodes, card_types(nodes)
        return Snapshot(
            nodes=nodes, pods=self._pods.take(), pod_groups=self._pod_groups.take(), queues=self._queues.take(),
            priority_classes=self._priority_classes.take(), card_types=self._card_types, latest=self._world.t,
        )  # fmt: skip


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
