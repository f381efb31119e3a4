"""The immutable input of a session."""

from collections.abc import Sequence

import msgspec

from scheduler_core.model.cards import CardType
from scheduler_core.model.disruption import DisruptionBudget
from scheduler_core.model.finding import Finding
from scheduler_core.model.node import Node
from scheduler_core.model.observed import Namespace, NodeMetrics, NumaTopology
from scheduler_core.model.pod import Pod
from scheduler_core.model.podgroup import PodGroup
from scheduler_core.model.queue import PriorityClass, Queue
from scheduler_core.model.resource_quota import ResourceQuota
from scheduler_core.model.storage import StorageClass, Volume, VolumeClaim


class Snapshot(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A cluster at one moment. Every list is sorted by its key (name, or namespace/name).

    ``nodes``, ``pods`` and ``pod_groups`` of a builder know how they differ from those of the builder's earlier
    snapshots (:mod:`scheduler_core.model.edition`).

    Attributes:
        nodes, queues, priority_classes: by name.
        pods: by namespace/name; those of other schedulers too, they take room.
        pod_groups: by namespace/name, the made ones included. card_types: discovered from the nodes, by name.
        namespaces: those that are known with their labels, by name.
        claims, volumes, storage_classes: by namespace/name, name, name.
        resource_quotas, disruption_budgets: by namespace/name.
        numa, metrics: what agents report of nodes, by name of the node.
        schedulers: pods with one of these ``schedulerName`` are to be scheduled.
        latest: the latest timestamp seen in the input, seconds since the epoch (the default of ``now``).
        passed_over: kinds that were in the input and are not read, with their count.
        warnings: what in the input could not be used as meant and was left aside, one sentence each, sorted.
        findings: objects that could not be read, or only in part."""

    nodes: Sequence[Node] = ()
    pods: Sequence[Pod] = ()
    pod_groups: Sequence[PodGroup] = ()
    queues: tuple[Queue, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    card_types: tuple[CardType, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    claims: tuple[VolumeClaim, ...] = ()
    volumes: tuple[Volume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    resource_quotas: tuple[ResourceQuota, ...] = ()
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    numa: tuple[NumaTopology, ...] = ()
    metrics: tuple[NodeMetrics, ...] = ()
    schedulers: tuple[str, ...] = ("tidesched", "volcano")
    latest: float = 0.0
    passed_over: dict[str, int] = {}
    warnings: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        """What was read from bytes comes as lists; values are tuples, or editions that equal them."""
        for name in ("nodes", "pods", "pod_groups"):
            value = getattr(self, name)
            if type(value) is list:
                msgspec.structs.force_setattr(self, name, tuple(value))
