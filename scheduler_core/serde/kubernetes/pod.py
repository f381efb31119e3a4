"""Pod: what it asks for, where it is, to which gang it belongs."""

from collections.abc import Mapping
from typing import Any

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.pod import HostPort, Pod, PodPhase
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.affinity import preferred_terms, required_terms, tolerations
from scheduler_core.serde.kubernetes.decode import decode, time_at
from scheduler_core.serde.kubernetes.metadata import (
    RawMeta,
    RawOwner,
    created,
    namespace_of,
    owner_of,
    owner_reference,
    parse_bool,
    texts,
    whole_number,
    wrong_bool,
)
from scheduler_core.serde.kubernetes.node import image_name
from scheduler_core.serde.kubernetes.pod_spec import RawPodSpec
from scheduler_core.serde.kubernetes.podgroup import MEMBERS, flowing, read_notes
from scheduler_core.serde.kubernetes.quantities import card_names
from scheduler_core.serde.kubernetes.relations import relations
from scheduler_core.serde.kubernetes.requests import effective_request, whole_cpus
from scheduler_core.serde.kubernetes.unsupported import of_marks, of_pod_spec

_PHASES = {phase.value: phase for phase in PodPhase}
# Volcano's default where neither the pod nor a class says anything.
DEFAULT_SCHEDULER = "default-scheduler"
VOLCANO_BATCH = "batch.volcano.sh/"


class RawPodStatus(msgspec.Struct, rename="camel"):
    phase: str | None = None
    start_time: str | None = None
    nominated_node_name: str | None = None


class RawPod(msgspec.Struct):
    metadata: RawMeta
    spec: RawPodSpec | None = None
    status: RawPodStatus | None = None


class PodRecord(msgspec.Struct, frozen=True):
    """A pod as far as its own object describes it.

    Attributes:
        pod: without its card request; ``priority`` is final only if ``has_priority``, ``preemption_policy`` only if
            ``has_preemption_policy``: else its class has the say.
        devices: extended resources that it asks for, in whole units (cards are separated from the rest at build time).
        names: card types of ``volcano.sh/card.name``. share: milli-cards of ``tidesched.io/card-milli``, or 0.
        owner: its controller with the API version. problem: what of it cannot be read. unsized: so that nobody can say
            what it takes.
        job: namespace/name of the Volcano Job that owns it, where it names no PodGroup: it belongs to that of the Job.
        unsupported: path of the first field that asks for what the scheduler does not do. latest: its latest time."""

    pod: Pod
    has_priority: bool
    has_preemption_policy: bool
    devices: dict[str, int]
    names: tuple[str, ...]
    share: int
    owner: RawOwner | None
    job: str
    problem: str
    latest: float
    unsupported: str = ""
    unsized: bool = False


def read_pod(obj: object) -> PodRecord:
    """Decode one Pod. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawPod)
    meta, spec, status = raw.metadata, raw.spec or RawPodSpec(), raw.status or RawPodStatus()
    notes, labels = texts(meta.annotations), texts(meta.labels)
    cpu, memory, devices = effective_request(spec, ".spec")
    owner = owner_of(meta)
    phase = _PHASES.get(status.phase or "Pending")
    if phase is None:
        raise BadInput(
            "bad_value", f"{status.phase!r} is not a pod phase", path=".status.phase", value=status.phase,
            hint=f"one of {', '.join(_PHASES)}",
        )  # fmt: skip
    born = created(meta)
    deleted = time_at(meta.deletion_timestamp, ".metadata.deletionTimestamp")
    started = time_at(status.start_time, ".status.startTime")
    noted = whole_number(notes, keys.TASK_PRIORITY, (-(2**31), 2**31 - 1), "a whole number of 32 bits")
    priority = spec.priority if noted is None else noted
    share = whole_number(notes, keys.CARD_MILLI, (1, 999), "a share of one card in thousandths") or 0
    affinity, namespace = spec.affinity, namespace_of(meta)
    between = None
    if spec.topology_spread_constraints or (affinity and (affinity.pod_affinity or affinity.pod_anti_affinity)):
        own, others = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else (None, None)
        between = relations(own, others, spec.topology_spread_constraints, namespace, labels)
    job = "" if named_group(labels, notes) or owner is None else _job_of(owner, namespace)
    _check_notes(notes, labels, alone=not named_group(labels, notes) and not job)
    numa = notes.get(keys.NUMA_POLICY, "")
    pod = Pod(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid,
        created=born,
        started=started if phase is not PodPhase.PENDING else None,
        scheduled=_scheduled(obj) if keys.COOLDOWN in notes or keys.COOLDOWN in labels else None,
        deleted=deleted,
        node=spec.node_name or "",
        phase=phase,
        nominated_node=(raw.status.nominated_node_name if raw.status else None) or "",
        scheduler=spec.scheduler_name or DEFAULT_SCHEDULER,
        priority=priority or 0,
        priority_class=spec.priority_class_name or "",
        preemption_policy=spec.preemption_policy or "PreemptLowerPriority",
        cpu_milli=cpu,
        memory_mib=memory,
        card_indices=_indices(notes.get(keys.CARD_INDICES)) if spec.node_name else (),
        group=group_name(meta, labels, notes, owner),
        role=notes.get(keys.TASK_SPEC, labels.get(keys.TASK_SPEC, "")),
        preemptable=parse_bool(notes.get(keys.PREEMPTABLE, labels.get(keys.PREEMPTABLE))),
        gated=bool(spec.scheduling_gates),
        labels=labels,
        annotations=notes,
        node_selector=texts(spec.node_selector),
        required_nodes=required_terms(affinity.node_affinity) if affinity else None,
        preferred_nodes=preferred_terms(affinity.node_affinity) if affinity else (),
        tolerations=tolerations(spec.tolerations),
        host_ports=_host_ports(spec),
        owner=owner_reference(owner),
        relations=between,
        claims=_claims(spec, meta.name),
        images=tuple(
            image_name(container.image)
            for container in (*(spec.init_containers or ()), *(spec.containers or ()))
            if container.image
        ),
        numa_policy="" if numa == "none" else numa,
        whole_cpus=whole_cpus(spec) if numa else (),
    )
    return PodRecord(
        pod,
        priority is not None,
        spec.preemption_policy is not None,
        devices,
        card_names(notes[keys.CARD_NAME]) if keys.CARD_NAME in notes else (),
        share,
        owner,
        job,
        "",
        max(born, deleted or 0.0, started or 0.0),
        of_pod_spec(spec) or of_marks(labels, notes),
    )


def _scheduled(obj: Any) -> float | None:
    """When the pod was bound, by its conditions: only looked at for the few pods that have a cool-down."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return time_at(condition.get("lastTransitionTime"), ".status.conditions")
    return None


def group_name(meta: RawMeta, labels: Mapping[str, str], notes: Mapping[str, str], owner: RawOwner | None) -> str:
    """Name of the PodGroup that the pod belongs to: as it says, else as a controller would call it."""
    named = named_group(labels, notes)
    if named:
        return named
    if owner is not None:
        return f"podgroup-{owner.uid or owner.name}"
    return f"podgroup-{meta.uid or meta.name}"


def named_group(labels: Mapping[str, str], notes: Mapping[str, str]) -> str:
    """The PodGroup that a pod names; empty for none."""
    return notes.get(keys.GROUP_NAME) or notes.get(keys.GROUP_NAME_VOLCANO) or labels.get(keys.POD_GROUP_LABEL) or ""


def _job_of(owner: RawOwner, namespace: str) -> str:
    volcano = owner.kind == "Job" and owner.api_version.startswith(VOLCANO_BATCH)
    return f"{namespace}/{owner.name}" if volcano else ""


def _check_notes(notes: Mapping[str, str], labels: Mapping[str, str], *, alone: bool) -> None:
    """Refuse what the pod says of its gang and cannot be read. ``alone``: no PodGroup says more than it does. Raises
    BadInput: ``bad_value``, ``bad_quantity``."""
    wrong = read_notes(flowing(notes), labels).wrong if alone else wrong_bool(notes, labels, keys.PREEMPTABLE)
    if wrong is not None:
        raise wrong
    if keys.POD_GROUP_LABEL in labels:
        whole_number(labels, keys.MIN_AVAILABLE_LABEL, MEMBERS, "a whole number above zero", "labels")


def _indices(text: str | None) -> tuple[int, ...]:
    if not text:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        # Only TideSched writes it; a foreign value says nothing about the cards, so they are assigned anew.
        return ()


def _host_ports(spec: RawPodSpec) -> tuple[HostPort, ...]:
    return tuple(
        HostPort(port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")  # noqa: S104 as Kubernetes
        for container in spec.containers or ()
        if container.ports
        for port in container.ports
        if port.host_port
    )


def _claims(spec: RawPodSpec, pod: str) -> tuple[str, ...]:
    """Names of the claims that the pod mounts; that of an ephemeral volume is called after the pod and the volume."""
    names = dict.fromkeys(
        volume.persistent_volume_claim.claim_name if volume.persistent_volume_claim else f"{pod}-{volume.name}"
        for volume in spec.volumes or ()
        if volume.persistent_volume_claim or volume.ephemeral is not None
    )
    return tuple(sorted(names))
