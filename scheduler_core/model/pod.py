"""Pods as the scheduler sees them (a pod in a gang is a task)."""

import enum

import msgspec

from scheduler_core.model.cards import CardRequest
from scheduler_core.model.relations import Relations
from scheduler_core.model.selector import NodeSelectorRequirement as NodeSelectorRequirement  # noqa: PLC0414 - a part of pods too
from scheduler_core.model.selector import NodeSelectorTerm as NodeSelectorTerm  # noqa: PLC0414


class ServiceType(enum.StrEnum):
    """What a workload is for; it decides who may take whose cards."""

    INFERENCE = "inference"
    TRAINING = "training"
    UNKNOWN = "unknown"


class PodPhase(enum.StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class Toleration(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """As in ``spec.tolerations``; an empty key with ``Exists`` tolerates everything."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class PreferredNodeTerm(msgspec.Struct, frozen=True, gc=False):
    """``preferredDuringSchedulingIgnoredDuringExecution`` of node affinity."""

    weight: int
    term: NodeSelectorTerm


class HostPort(msgspec.Struct, frozen=True, gc=False):
    port: int
    protocol: str = "TCP"
    host_ip: str = "0.0.0.0"  # noqa: S104 - what Kubernetes means by none


class OwnerReference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    kind: str
    name: str
    uid: str = ""
    api_version: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One pod, immutable.

    Attributes:
        created, started, deleted: seconds since the epoch; ``deleted`` is the deletion timestamp (the pod is
            leaving), ``started`` when it began to run.
        scheduled: when it was bound, as far as a cool-down asks for it; None = not known.
        nominated_node: ``status.nominatedNodeName``: where preemption makes room for it.
        cpu_milli, memory_mib: effective request (sum of containers, at least the largest init container, overhead).
        scalars: other extended resources that are not cards, in whole units. card: what it asks of cards, or None.
        card_indices: which cards of its node (row numbers within the node and card type) it holds, when known.
        group: name of its PodGroup in the same namespace; the serde fills it in for pods without one (see 5.3 of
            the semantics), so it is never empty for a pod that is to be scheduled.
        preemptable: what the pod itself says; None = unset. gated: has scheduling gates.
        relations: what it says of other pods; None = nothing.
        claims: names of the volume claims that it mounts, in its own namespace, those of ephemeral volumes included.
        images: of its containers, with their tag.
        numa_policy: annotation ``volcano.sh/numa-topology-policy``; empty = none.
        whole_cpus: CPUs that each container has to itself; only given where there is a ``numa_policy``, and empty
            unless the pod is of QoS class Guaranteed."""

    namespace: str
    name: str
    uid: str = ""
    created: float = 0.0
    started: float | None = None
    scheduled: float | None = None
    deleted: float | None = None
    node: str = ""
    nominated_node: str = ""
    phase: PodPhase = PodPhase.PENDING
    scheduler: str = ""
    priority: int = 0
    priority_class: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    cpu_milli: int = 0
    memory_mib: int = 0
    scalars: dict[str, int] = {}
    card: CardRequest | None = None
    card_indices: tuple[int, ...] = ()
    group: str = ""
    role: str = ""
    preemptable: bool | None = None
    gated: bool = False
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    required_nodes: tuple[NodeSelectorTerm, ...] | None = None
    preferred_nodes: tuple[PreferredNodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    owner: OwnerReference | None = None
    relations: Relations | None = None
    claims: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    numa_policy: str = ""
    whole_cpus: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def group_key(self) -> str:
        """``namespace/name`` of its PodGroup, or an empty string."""
        return f"{self.namespace}/{self.group}" if self.group else ""

    @property
    def finished(self) -> bool:
        """Succeeded or failed: takes no room any more."""
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)
