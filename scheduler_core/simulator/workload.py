"""What is submitted to the simulated cluster, and what becomes of it."""

import enum

import msgspec

from scheduler_core.model.cards import CardRequest
from scheduler_core.model.podgroup import EvictedPolicy

VOLCANO_BATCH = "batch.volcano.sh/v1alpha1"
APPS = "apps/v1"


class OwnerKind(enum.StrEnum):
    JOB = "Job"
    REPLICA_SET = "ReplicaSet"

    @property
    def api_version(self) -> str:
        """Group and version, as references to the controller name them."""
        return VOLCANO_BATCH if self is OwnerKind.JOB else APPS


class PodTemplate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One pod of a workload.

    Attributes:
        cpu_milli, memory_mib: requests.
        card_names: card types that will do, the preferred one first; empty when it asks for no card.
        resource: extended resource in the limits; empty for a share of a card.
        card_milli: milli-cards in all, 2000 for two whole cards, 460 for a share of one.
        node_selector, labels, annotations: as in the pod's manifest, besides those that the controllers add."""

    cpu_milli: int
    memory_mib: int
    card_names: tuple[str, ...] = ()
    resource: str = ""
    card_milli: int = 0
    node_selector: dict[str, str] = {}
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def card(self) -> CardRequest | None:
        return CardRequest(self.card_names, self.resource, self.card_milli) if self.card_milli else None


class Workload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A training Job or an inference service.

    Attributes:
        min_member: how many pods must run together. evicted_policy: what the job's controller does after an eviction.
        duration: seconds from the moment ``min_member`` pods run until it is done; None = for ever.
        ttl_seconds: how long a finished Job is kept; None = for ever.
        submitted: when it was first handed in, seconds since the epoch; None = the moment of ``submit``.
        annotations: of the workload; those with prefix ``volcano.sh/`` flow on to the PodGroup.
        scheduler: ``schedulerName`` of the pods."""

    namespace: str
    name: str
    queue: str
    service_type: str
    owner_kind: OwnerKind
    template: PodTemplate
    replicas: int = 1
    min_member: int = 1
    priority_class: str = ""
    evicted_policy: EvictedPolicy = EvictedPolicy.NONE
    duration: float | None = None
    ttl_seconds: float | None = 0.0
    submitted: float | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    scheduler: str = "tidesched"

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class WorkloadPhase(enum.StrEnum):
    """``status.state.phase`` of a Volcano Job; a service is Pending or Running."""

    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    COMPLETED = "Completed"

    @property
    def ended(self) -> bool:
        """True when nothing will happen to it any more."""
        return self in (WorkloadPhase.ABORTED, WorkloadPhase.COMPLETED)


class WorkloadState(msgspec.Struct, kw_only=True, gc=False):
    """A workload as the cluster has it; only the world's controllers change it.

    Attributes:
        version: counts restarts. serial: counts the pods that were made. pods: keys of those that exist, in order.
        running: how many of them run. evictions: how often it was evicted. made: its pods of this version were made.
        started: when ``min_member`` pods of this version ran. ended: when it was done."""

    workload: Workload
    uid: str
    created: float
    priority: int = 0
    phase: WorkloadPhase = WorkloadPhase.PENDING
    version: int = 0
    serial: int = 0
    pods: dict[str, None] = {}
    running: int = 0
    succeeded: int = 0
    evictions: int = 0
    made: bool = False
    started: float | None = None
    ended: float | None = None

    @property
    def token(self) -> str:
        """Names this life of the workload, for events that a restart makes stale."""
        return f"{self.uid}/{self.version}"
