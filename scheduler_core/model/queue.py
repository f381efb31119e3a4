"""Queues and priority classes."""

import enum

import msgspec


class QueueState(enum.StrEnum):
    OPEN = "Open"
    CLOSING = "Closing"
    CLOSED = "Closed"
    UNKNOWN = "Unknown"


class NodeGroups(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """``spec.affinity`` of a Queue: names of node groups (label ``volcano.sh/nodegroup-name``), in the order written.
    ``required``, ``preferred``: its gangs may be there. ``denied``: they may not. ``avoided``: they may, but rather
    not."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()


class Queue(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One queue, immutable.

    Attributes:
        weight: 1..65535. priority: higher goes first. reclaimable: others may take back from it.
        cpu_milli, memory_mib: ``spec.capability``; None = no limit.
        card_quota: annotation ``volcano.sh/card.quota`` in milli-cards by card name; a card that is not named is 0.
            None = the annotation is absent (the queue has no card quota of its own).
        service_type: annotation ``tidesched.io/service-type``; empty when the queue is not TideSched's.
        namespaces: annotation ``tidesched.io/namespaces``, whose gangs may use the queue; None = all.
        scalars: other entries of ``spec.capability`` in thousandths.
        deserved, guarantee: as in the spec, by resource name (cpu milli, memory MiB, others in thousandths).
        node_groups: ``spec.affinity``; None = it says nothing.
        made: True for a ``default`` queue that the snapshot lacked.
        problem: why it cannot be used as written, e.g. a broken quota annotation or a parent cycle."""

    name: str
    uid: str = ""
    created: float = 0.0
    weight: int = 1
    priority: int = 0
    reclaimable: bool = True
    state: QueueState = QueueState.OPEN
    cpu_milli: int | None = None
    memory_mib: int | None = None
    card_quota: dict[str, int] | None = None
    scalars: dict[str, int] = {}
    deserved: dict[str, int] = {}
    guarantee: dict[str, int] = {}
    parent: str = ""
    service_type: str = ""
    namespaces: tuple[str, ...] | None = None
    node_groups: NodeGroups | None = None
    made: bool = False
    problem: str = ""
    annotations: dict[str, str] = {}

    def admits(self, namespace: str) -> bool:
        """Whether gangs of the namespace may use the queue."""
        return self.namespaces is None or namespace in self.namespaces


class PriorityClass(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    name: str
    value: int
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
    problem: str = ""  # why its value, or whether it is the default, is not known
