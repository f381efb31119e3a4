"""The simulated cluster: objects, room and time; what an API server, its controllers and its kubelets would do. No wall
clock and no I/O: time passes only in :meth:`World.advance`. Each change is reported to the listeners."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from scheduler_core.model.node import Node
from scheduler_core.model.pod import Pod, PodPhase
from scheduler_core.model.podgroup import GangCondition, GangPhase, PodGroup
from scheduler_core.model.queue import PriorityClass, Queue
from scheduler_core.simulator.changes import Cause, Change, Listener
from scheduler_core.simulator.errors import Refusal, WorldError
from scheduler_core.simulator.events import EventKind, EventQueue, ScheduledEvent
from scheduler_core.simulator.lifecycle import Controllers
from scheduler_core.simulator.node_use import NodeUse
from scheduler_core.simulator.objects import CARD_INDICES, CARD_TYPE
from scheduler_core.simulator.workload import OwnerKind, Workload, WorkloadState

_Value = TypeVar("_Value")
_Object = TypeVar("_Object", Node, Queue)
DEFAULT_GRACE_SECONDS = 30.0
DEFAULT_CONTROLLER_DELAY = 2.0
# A kubelet needs this long to start a pod, and up to as much again.
DEFAULT_START_DELAY = 1.0


class _Saved(msgspec.Struct, frozen=True, kw_only=True):
    t: float
    seed: int
    grace_seconds: float
    controller_delay: float
    start_delay: float
    serial: int
    last_event: int
    nodes: list[Node]
    queues: list[Queue]
    priority_classes: list[PriorityClass]
    pods: list[Pod]
    pod_groups: list[PodGroup]
    states: list[WorkloadState]
    placements: dict[str, tuple[str, tuple[int, ...]]]
    events: tuple[ScheduledEvent, ...]


class World:
    """Nodes, queues, workloads, gangs and pods in virtual time.

    Attributes:
        t: now, seconds since the epoch.
        nodes, queues, priority_classes, pods, pod_groups, workloads: what exists, by key; read only for callers.
        placements: bound pod -> (card type, indices of the cards on its node).
        changes: counts every change, so that a reader knows whether anything happened."""

    def __init__(
        self, nodes: Iterable[Node] = (), queues: Iterable[Queue] = (), priority_classes: Iterable[PriorityClass] = (),
        *, seed: int = 0, start: float = 0.0, grace_seconds: float = DEFAULT_GRACE_SECONDS,
        controller_delay: float = DEFAULT_CONTROLLER_DELAY, start_delay: float = DEFAULT_START_DELAY,
    ) -> None:  # fmt: skip
        self.t = start
        self.seed = seed
        self.grace_seconds, self.controller_delay, self.start_delay = grace_seconds, controller_delay, start_delay
        self.nodes: dict[str, Node] = {}
        self.queues: dict[str, Queue] = {}
        self.priority_classes: dict[str, PriorityClass] = {}
        self.pods: dict[str, Pod] = {}
        self.pod_groups: dict[str, PodGroup] = {}
        self.workloads: dict[str, WorkloadState] = {}
        self.placements: dict[str, tuple[str, tuple[int, ...]]] = {}
        self.changes = 0
        self._serial = 0
        self._events = EventQueue()
        self._use: dict[str, NodeUse] = {}
        self._listeners: list[Listener] = []
        self._controllers = Controllers(self)
        self._handlers: dict[EventKind, Callable[[str, str], None]] = {
            EventKind.START: self._start,
            EventKind.GONE: self._gone,
            EventKind.FINISH: self._controllers.finish,
            EventKind.REACT: self._controllers.react,
            EventKind.MAKE: self._controllers.make,
            EventKind.EXPIRE: self._controllers.expire,
        }
        for node in nodes:
            self.upsert_node(node)
        for queue in queues:
            self.upsert_queue(queue)
        for priority_class in priority_classes:
            self.upsert_priority_class(priority_class)

    # --- listening and time -------------------------------------------------------------------------------------------

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener`` with each :class:`Change`, at once and in order."""
        self._listeners.append(listener)

    @property
    def next_event(self) -> float | None:
        """When something happens next by itself; None when nothing will."""
        return self._events.next_time

    def advance(self, until: float) -> None:
        """Let everything happen that is due up to ``until`` (inclusive). O(k log n) for k events."""
        while (event := self._events.pop_due(until)) is not None:
            self.t = max(self.t, event.time)
            self._handlers[event.kind](event.key, event.token)
        self.t = max(self.t, until)

    # --- nodes, queues, priority classes ------------------------------------------------------------------------------

    def upsert_node(self, node: Node) -> None:
        """Add a node or change it; pods that it holds stay, even where it shrank below them."""
        use = NodeUse(node)
        for key in [] if (old := self._use.get(node.name)) is None else sorted(old.held):
            pod = self.pods[key]
            card, indices = self.placements.get(key, ("", ()))
            use.take(pod, card, indices)
        self._use[node.name] = use
        node = self._identified(node, self.nodes.get(node.name))
        self.nodes[node.name] = node
        self.emit("upsert", "Node", node.name, Cause.UPDATED, node)

    def remove_node(self, name: str) -> None:
        """Lose a node with all that runs on it; the controllers see its pods deleted. Raises WorldError:
        ``NOT_FOUND``."""
        node = _found(self.nodes, "node", name)
        for key in sorted(self._use[name].held):
            self.remove_pod(key, Cause.GONE)
        del self.nodes[name], self._use[name]
        self.emit("delete", "Node", name, Cause.DELETED, node)

    def upsert_queue(self, queue: Queue) -> None:
        queue = self._identified(queue, self.queues.get(queue.name))
        self.queues[queue.name] = queue
        self.emit("upsert", "Queue", queue.name, Cause.UPDATED, queue)

    def upsert_priority_class(self, priority_class: PriorityClass) -> None:
        """Add a priority class or change it; live pods keep the value they were made with."""
        self.priority_classes[priority_class.name] = priority_class
        self.emit("upsert", "PriorityClass", priority_class.name, Cause.UPDATED, priority_class)

    # --- workloads ----------------------------------------------------------------------------------------------------

    def submit(self, workload: Workload) -> None:
        """Hand in a Job or a service. Raises WorldError: ``ALREADY_EXISTS``; ``INVALID`` for an unknown priority class
        or impossible numbers."""
        if workload.key in self.workloads:
            raise WorldError(Refusal.ALREADY_EXISTS, f"workload {workload.key} exists")
        if workload.priority_class and workload.priority_class not in self.priority_classes:
            raise WorldError(Refusal.INVALID, f"{workload.key}: no priority class {workload.priority_class!r}")
        if workload.replicas < 0 or workload.min_member < 1:
            raise WorldError(
                Refusal.INVALID, f"{workload.key}: {workload.replicas} replicas, {workload.min_member} at least"
            )
        if workload.owner_kind is OwnerKind.JOB and workload.min_member > workload.replicas:
            raise WorldError(
                Refusal.INVALID, f"{workload.key}: minAvailable {workload.min_member} of {workload.replicas} pods"
            )
        self._controllers.submit(workload)

    def scale(self, namespace: str, name: str, replicas: int) -> None:
        """Set how many pods a service wants. Raises WorldError: ``NOT_FOUND``; ``INVALID`` for a Job or a negative
        number."""
        state = _found(self.workloads, "workload", f"{namespace}/{name}")
        if state.workload.owner_kind is not OwnerKind.REPLICA_SET or replicas < 0:
            raise WorldError(Refusal.INVALID, f"{state.workload.key} cannot be scaled to {replicas}")
        self._controllers.scale(state, replicas)

    def delete_workload(self, namespace: str, name: str) -> None:
        """Delete a workload, its gang and its pods (those that run after the grace). Raises WorldError:
        ``NOT_FOUND``."""
        self._controllers.delete(_found(self.workloads, "workload", f"{namespace}/{name}"))

    # --- what a scheduler writes --------------------------------------------------------------------------------------

    def bind(
        self, key: str, node: str, card: str = "", card_indices: tuple[int, ...] = (), *, uid: str | None = None
    ) -> None:
        """Bind the pod ``key`` (namespace/name) to ``node``, on these cards or on those that the node picks. Raises
        WorldError: ``NOT_FOUND``, ``UID_MISMATCH``, ``ALREADY_BOUND`` (also to the same node, with ``node`` set),
        ``TERMINATING``, ``NODE_FULL``, ``INVALID``; nothing has changed then."""
        pod = self._pod(key, uid)
        if pod.node:
            raise WorldError(Refusal.ALREADY_BOUND, f"pod {key} is bound to {pod.node}", node=pod.node)
        if pod.deleted is not None or pod.finished:
            raise WorldError(Refusal.TERMINATING, f"pod {key} is leaving")
        use = _found(self._use, "node", node)
        card, indices = use.place(pod, card, card_indices)
        annotations = pod.annotations
        if indices:
            annotations = {**annotations, CARD_TYPE: card, CARD_INDICES: ",".join(map(str, indices))}
        bound = msgspec.structs.replace(pod, node=node, card_indices=indices, annotations=annotations)
        use.take(bound, card, indices)
        self.placements[key] = (card, indices)
        self.put_pod(bound, Cause.BOUND)
        # The same pod always takes the same time to start.
        share = zlib.crc32(f"{self.seed}/{pod.uid}".encode()) / 2**32
        self.schedule(self.start_delay * (1.0 + share), EventKind.START, key, pod.uid)

    def evict(self, key: str, *, uid: str | None = None, cause: Cause = Cause.EVICTED) -> None:
        """Ask the pod ``key`` to leave: it is gone after the grace, at once when it was not bound. A pod that is
        leaving already is left alone. Raises WorldError: ``NOT_FOUND``, ``UID_MISMATCH``."""
        pod = self._pod(key, uid)
        if pod.deleted is not None:
            return
        if not pod.node or pod.finished:
            self.remove_pod(key, cause)
            return
        self.put_pod(msgspec.structs.replace(pod, deleted=self.t), cause)
        self.schedule(self.grace_seconds, EventKind.GONE, key, pod.uid)
        self._controllers.leaving(pod, cause)

    def set_group_status(self, key: str, phase: GangPhase, conditions: tuple[GangCondition, ...] = ()) -> None:
        """Write the status of a PodGroup; a Job whose gang is admitted gets its pods. Raises WorldError:
        ``NOT_FOUND``."""
        group = _found(self.pod_groups, "pod group", key)
        if group.phase is phase and group.conditions == conditions:
            return
        self.put_group(msgspec.structs.replace(group, phase=phase, conditions=conditions), Cause.STATUS)
        if phase is not group.phase:
            self._controllers.admitted(key)

    # --- persistence --------------------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        """Everything but the listeners."""
        return msgspec.msgpack.encode(
            _Saved(
                t=self.t, seed=self.seed, grace_seconds=self.grace_seconds, controller_delay=self.controller_delay,
                start_delay=self.start_delay, serial=self._serial, last_event=self._events.last_id,
                nodes=list(self.nodes.values()), queues=list(self.queues.values()),
                priority_classes=list(self.priority_classes.values()), pods=list(self.pods.values()),
                pod_groups=list(self.pod_groups.values()), states=list(self.workloads.values()),
                placements=self.placements, events=self._events.dump(),
            )
        )  # fmt: skip

    @classmethod
    def load(cls, data: bytes) -> World:
        """The world as :meth:`dump` wrote it; it goes on exactly as the first one would have."""
        saved = msgspec.msgpack.decode(data, type=_Saved)
        world = cls(
            saved.nodes, saved.queues, saved.priority_classes, seed=saved.seed, start=saved.t,
            grace_seconds=saved.grace_seconds, controller_delay=saved.controller_delay, start_delay=saved.start_delay,
        )  # fmt: skip
        world.pods = {pod.key: pod for pod in saved.pods}
        world.pod_groups = {group.key: group for group in saved.pod_groups}
        world.workloads = {state.workload.key: state for state in saved.states}
        world.placements = saved.placements
        for key, (card, indices) in saved.placements.items():
            pod = world.pods[key]
            if not pod.finished:
                world._use[pod.node].take(pod, card, indices)
        world._serial = saved.serial
        world._events = EventQueue(saved.events, saved.last_event)
        return world

    # --- for the controllers ------------------------------------------------------------------------------------------

    def new_uid(self) -> str:
        """The next uid; the same history gives the same ones."""
        self._serial += 1
        return f"{self.seed & 0xFFFFFFFF:08x}-0000-4000-8000-{self._serial:012x}"

    def schedule(self, delay: float, kind: EventKind, key: str, token: str) -> None:
        """Let ``kind`` happen to ``key`` after ``delay`` seconds."""
        # Microseconds are what a timestamp can carry; what is read back must be the same moment.
        self._events.push(round(self.t + delay, 6), kind, key, token)

    def emit(self, verb: str, kind: str, key: str, cause: Cause, value: object) -> None:
        self.changes += 1
        if self._listeners:
            change = Change(verb, kind, key, cause, value)
            for listener in self._listeners:
                listener(change)

    def put_pod(self, pod: Pod, cause: Cause) -> None:
        self.pods[pod.key] = pod
        self.emit("upsert", "Pod", pod.key, cause, pod)

    def put_group(self, group: PodGroup, cause: Cause) -> None:
        self.pod_groups[group.key] = group
        self.emit("upsert", "PodGroup", group.key, cause, group)

    def remove_group(self, key: str, cause: Cause) -> None:
        group = self.pod_groups.pop(key, None)
        if group is not None:
            self.emit("delete", "PodGroup", key, cause, group)

    def finish_pod(self, key: str) -> None:
        """Let a running pod end well; it gives its room back and stays as an object."""
        pod = self.pods[key]
        self._release(pod)
        self.put_pod(msgspec.structs.replace(pod, phase=PodPhase.SUCCEEDED), Cause.FINISHED)

    def remove_pod(self, key: str, cause: Cause) -> None:
        """Delete a pod object at once, give back what it held, and let its controller know."""
        pod = self.pods.pop(key)
        if pod.node and not pod.finished:
            self._release(pod)
        self.placements.pop(key, None)
        self.emit("delete", "Pod", key, cause, pod)
        self._controllers.lost(pod, cause)

    # --- what kubelets do ---------------------------------------------------------------------------------------------

    def _start(self, key: str, uid: str) -> None:
        pod = self.pods.get(key)
        if pod is None or pod.uid != uid or pod.deleted is not None:
            return
        started = msgspec.structs.replace(pod, phase=PodPhase.RUNNING, started=self.t)
        self.put_pod(started, Cause.STARTED)
        self._controllers.started(started)

    def _gone(self, key: str, uid: str) -> None:
        pod = self.pods.get(key)
        if pod is not None and pod.uid == uid:
            self.remove_pod(key, Cause.GONE)

    def _release(self, pod: Pod) -> None:
        card, indices = self.placements[pod.key]
        self._use[pod.node].release(pod, card, indices)

    def _identified(self, value: _Object, old: _Object | None) -> _Object:
        """Give an object that came without a uid the one it had before, or a new one."""
        if value.uid:
            return value
        uid, created = (old.uid, old.created) if old is not None else (self.new_uid(), self.t)
        return msgspec.structs.replace(value, uid=uid, created=created)

    def _pod(self, key: str, uid: str | None) -> Pod:
        pod = _found(self.pods, "pod", key)
        if uid is not None and pod.uid != uid:
            raise WorldError(Refusal.UID_MISMATCH, f"pod {key} has uid {pod.uid}, not {uid}")
        return pod


def _found(mapping: dict[str, _Value], what: str, key: str) -> _Value:
    value = mapping.get(key)
    if value is None:
        raise WorldError(Refusal.NOT_FOUND, f"there is no {what} {key}")
    return value
