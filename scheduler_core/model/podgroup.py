"""Gangs (PodGroups): pods that run together or not at all."""

import enum

import msgspec

from scheduler_core.model.pod import Pod
from scheduler_core.model.resources import Amount

# As ``backing_off``: another profile of the same session decides about the gang.
ELSEWHERE = "another scheduler profile decides about it"


class GangPhase(enum.StrEnum):
    """``status.phase`` of a PodGroup in Volcano's words."""

    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"


class EvictedPolicy(enum.StrEnum):
    """What the job's controller does when one of its pods is evicted."""

    NONE = ""
    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    TERMINATE_JOB = "TerminateJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"

    @property
    def fells_gang(self) -> bool:
        """True when losing one member ends or restarts the whole job."""
        return self in (EvictedPolicy.ABORT_JOB, EvictedPolicy.RESTART_JOB, EvictedPolicy.TERMINATE_JOB)


class GangCondition(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    type: str
    status: str = "True"
    reason: str = ""
    message: str = ""


class RolePods(msgspec.Struct, frozen=True, gc=False):
    """Pods of one role that a controller makes once the gang is admitted. ``count``: how many. ``least``: how many of
    them are among the fewest pods with which the gang may start. ``pod``: each of them; its name lacks the index."""

    role: str
    count: int
    least: int
    pod: Pod


class PodGroup(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One gang, immutable.

    Attributes:
        created: seconds since the epoch. ``submitted`` keeps the place in the queue over a restart that made a new
            PodGroup (annotation ``tidesched.io/submitted-at``); None = ``created``.
        min_resources: ``spec.minResources`` (cpu and memory; cards come from ``card_request``), None = unset.
        min_scalars: its other entries in whole units by resource name (cards by the resource that counts them).
        card_request: annotation ``volcano.sh/card.request`` in milli-cards; names may be a choice ``A|B``.
        service_type: annotation ``volcano.sh/service.type``; empty = unset.
        last_restart: evicting it fails its Job, since it has been restarted as often as it may be.
        preemptable: annotation or label ``volcano.sh/preemptable`` of the PodGroup; None = unset.
        spared: why it is no victim for now, as the host that carries decisions out has found; empty = nothing known.
        backing_off: why it is not tried for now, of the same origin.
        made: True when the snapshot had no such object and it is what a controller would make.
        problem: why it cannot be scheduled as written (bad annotation, unknown card), for reason Misconfigured.
        unsupported: path of the first field, its own or a member's, that asks for what the scheduler does not do.
        owner_uid: of the object that owns it; empty = not known.
        owner_created: when the Job that owns it was made, seconds since the epoch; None = not known.
        replicas: how many pods the owner wants (Job tasks, ReplicaSet), 0 = unknown (then the pods that exist).
        waits_for_admission: a Job whose pods are made only once the gang is admitted.
        to_come: these pods, as long as it has none and the Job says what they will be; a session does not ask for them.
    """

    namespace: str
    name: str
    uid: str = ""
    created: float = 0.0
    submitted: float | None = None
    queue: str = "default"
    min_member: int = 1
    min_task_member: dict[str, int] = {}
    min_resources: Amount | None = None
    min_scalars: dict[str, int] = {}
    card_request: dict[str, int] = {}
    priority: int = 0
    priority_class: str = ""
    phase: GangPhase = GangPhase.PENDING
    conditions: tuple[GangCondition, ...] = ()
    service_type: str = ""
    owner_kind: str = ""
    owner_name: str = ""
    owner_uid: str = ""
    owner_created: float | None = None
    evicted_policy: EvictedPolicy = EvictedPolicy.NONE
    last_restart: bool = False
    preemptable: bool | None = None
    spared: str = ""
    backing_off: str = ""
    suspended: bool = False
    waits_for_admission: bool = False
    to_come: tuple[RolePods, ...] = ()
    replicas: int = 0
    made: bool = False
    problem: str = ""
    unsupported: str = ""
    annotations: dict[str, str] = {}

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def elsewhere(self) -> bool:
        """Another profile of the same session decides about it."""
        return self.backing_off == ELSEWHERE

    @property
    def waiting_since(self) -> float:
        """The time that counts for its place in the queue."""
        return self.created if self.submitted is None else self.submitted
