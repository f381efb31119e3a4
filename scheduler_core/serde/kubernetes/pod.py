"""Pod: what it asks for, where it is, to which gang it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.pod import HostPort, Pod, PodPhase
from scheduler_core.model.resources import MILLI
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.affinity import (
    RawNodeAffinity,
    RawToleration,
    preferred_terms,
    required_terms,
    tolerations,
)
from scheduler_core.serde.kubernetes.decode import Int32, decode, time_at
from scheduler_core.serde.kubernetes.metadata import (
    RawMeta,
    RawOwner,
    Scalar,
    created,
    namespace_of,
    owner_of,
    owner_reference,
    parse_bool,
    texts,
)
from scheduler_core.serde.kubernetes.node import image_name
from scheduler_core.serde.kubernetes.quantities import RawResources, card_names, read_resources
from scheduler_core.serde.kubernetes.relations import RawPodAffinity, RawSpread, relations

_PHASES = {phase.value: phase for phase in PodPhase}
# Volcano's default where neither the pod nor a class says anything.
DEFAULT_SCHEDULER = "default-scheduler"


class RawRequirements(msgspec.Struct):
    """``resources`` of a container."""

    requests: RawResources | None = None
    limits: RawResources | None = None


class RawPort(msgspec.Struct, rename="camel", gc=False):
    """As in ``ports`` of a container."""

    host_port: Int32 | None = None
    protocol: str | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")


class RawContainer(msgspec.Struct, rename="camel"):
    """A container or an init container (``restartPolicy: Always`` makes the latter a sidecar)."""

    image: str | None = None
    resources: RawRequirements | None = None
    ports: list[RawPort] | None = None
    restart_policy: str | None = None


class RawAffinity(msgspec.Struct, rename="camel"):
    """``affinity``."""

    node_affinity: RawNodeAffinity | None = None
    pod_affinity: RawPodAffinity | None = None
    pod_anti_affinity: RawPodAffinity | None = None


class RawMountedClaim(msgspec.Struct, rename="camel", gc=False):
    """``persistentVolumeClaim`` of a volume."""

    claim_name: str


class RawMount(msgspec.Struct, rename="camel"):
    """One entry of ``volumes``, as far as it stands for a claim."""

    name: str = ""
    persistent_volume_claim: RawMountedClaim | None = None
    ephemeral: dict[str, Any] | None = None


class RawPodSpec(msgspec.Struct, rename="camel"):
    """``spec`` of a pod or of a pod template."""

    containers: list[RawContainer] | None = None
    init_containers: list[RawContainer] | None = None
    overhead: RawResources | None = None
    node_name: str | None = None
    scheduler_name: str | None = None
    priority: Int32 | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    node_selector: dict[str, Scalar] | None = None
    affinity: RawAffinity | None = None
    tolerations: list[RawToleration] | None = None
    scheduling_gates: list[dict[str, Any]] | None = None
    topology_spread_constraints: list[RawSpread] | None = None
    volumes: list[RawMount] | None = None


class RawPodStatus(msgspec.Struct, rename="camel"):
    """``status``."""

    phase: str | None = None
    start_time: str | None = None
    nominated_node_name: str | None = None


class RawPod(msgspec.Struct):
    """A Pod object."""

    metadata: RawMeta
    spec: RawPodSpec | None = None
    status: RawPodStatus | None = None


class PodRecord(msgspec.Struct, frozen=True):
    """A pod as far as it can be told from its own object.

    Attributes:
        pod: without its card request; ``priority`` is final only if ``has_priority``.
        devices: extended resources that it asks for, in whole units (cards are told from the rest at build time).
        names: card types of ``volcano.sh/card.name``. share: milli-cards of ``tidesched.io/card-milli``, or 0.
        owner: its controller with the API version. problem: why it cannot be scheduled as written.
        latest: its latest time.
    """

    pod: Pod
    has_priority: bool
    devices: dict[str, int]
    names: tuple[str, ...]
    share: int
    owner: RawOwner | None
    problem: str
    latest: float


def read_pod(obj: object) -> PodRecord:
    """Decode one Pod.

    Raises:
        BadInput: with the path below the object.
    """
    raw = decode(obj, RawPod)
    meta, spec, status = raw.metadata, raw.spec or RawPodSpec(), raw.status or RawPodStatus()
    notes, labels = texts(meta.annotations), texts(meta.labels)
    cpu, memory, devices = effective_request(spec, ".spec")
    owner = owner_of(meta)
    phase = _PHASES.get(status.phase or "Pending")
    if phase is None:
        raise BadInput(
            "bad_value",
            f"{status.phase!r} is not a pod phase",
            path=".status.phase",
            value=status.phase,
            hint=f"one of {', '.join(_PHASES)}",
        )
    born = created(meta)
    deleted = time_at(meta.deletion_timestamp, ".metadata.deletionTimestamp")
    started = time_at(status.start_time, ".status.startTime")
    priority, problem = _priority(spec, notes)
    share, share_problem = _share(notes)
    affinity, namespace = spec.affinity, namespace_of(meta)
    between = None
    if spec.topology_spread_constraints or (affinity and (affinity.pod_affinity or affinity.pod_anti_affinity)):
        own, others = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else (None, None)
        between = relations(own, others, spec.topology_spread_constraints, namespace, labels)
    numa = notes.get(keys.NUMA_POLICY, "")
    pod = Pod(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid,
        created=born,
        started=started if phase is not PodPhase.PENDING else None,
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
        role=notes.get(keys.TASK_SPEC, ""),
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
        whole_cpus=_whole_cpus(spec) if numa else (),
    )
    return PodRecord(
        pod,
        priority is not None,
        devices,
        card_names(notes[keys.CARD_NAME]) if keys.CARD_NAME in notes else (),
        share,
        owner,
        problem or share_problem,
        max(born, deleted or 0.0, started or 0.0),
    )


def group_name(meta: RawMeta, labels: Mapping[str, str], notes: Mapping[str, str], owner: RawOwner | None) -> str:
    """Name of the PodGroup that the pod belongs to: as it says, else as a controller would call it."""
    named = notes.get(keys.GROUP_NAME) or notes.get(keys.GROUP_NAME_VOLCANO) or labels.get(keys.POD_GROUP_LABEL)
    if named:
        return named
    if owner is not None:
        return f"podgroup-{owner.uid or owner.name}"
    return f"podgroup-{meta.uid or meta.name}"


def effective_request(spec: RawPodSpec, path: str) -> tuple[int, int, dict[str, int]]:
    """CPU, memory and extended resources that the pod needs at its peak.

    The containers and sidecars together, or one init container beside the sidecars started before it, whichever is
    more; plus overhead.

    Raises:
        BadInput: ``bad_quantity`` with the place.
    """
    cpu = memory = 0
    scalars: dict[str, int] = {}
    containers = spec.containers or ()
    for i, container in enumerate(containers):
        c, m, s = _container(container, path, "containers", i)
        cpu, memory = cpu + c, memory + m
        for name, count in s.items():
            scalars[name] = scalars.get(name, 0) + count
    if spec.init_containers:
        cpu, memory, scalars = _with_init(spec.init_containers, path, cpu, memory, scalars)
    if spec.overhead:
        c_over, m_over, s_over = read_resources(spec.overhead, f"{path}.overhead")
        cpu, memory = cpu + (c_over or 0), memory + (m_over or 0)
        for name, count in s_over.items():
            scalars[name] = scalars.get(name, 0) + count
    return cpu, memory, {name: count for name, count in scalars.items() if count} if scalars else scalars


def _with_init(
    init: list[RawContainer], path: str, cpu: int, memory: int, scalars: dict[str, int]
) -> tuple[int, int, dict[str, int]]:
    side_cpu = side_memory = peak_cpu = peak_memory = 0
    side: dict[str, int] = {}
    peak: dict[str, int] = {}
    for i, container in enumerate(init):
        c, m, s = _container(container, path, "initContainers", i)
        with_c, with_m = side_cpu + c, side_memory + m
        with_s = {name: side.get(name, 0) + s.get(name, 0) for name in {**side, **s}}
        if container.restart_policy == "Always":
            side_cpu, side_memory, side = with_c, with_m, with_s
        peak_cpu, peak_memory = max(peak_cpu, with_c), max(peak_memory, with_m)
        peak = {name: max(peak.get(name, 0), with_s.get(name, 0)) for name in {**peak, **with_s}}
    names = {**scalars, **side, **peak}
    return (
        max(cpu + side_cpu, peak_cpu),
        max(memory + side_memory, peak_memory),
        {name: max(scalars.get(name, 0) + side.get(name, 0), peak.get(name, 0)) for name in names},
    )


def _container(container: RawContainer, path: str, field: str, index: int) -> tuple[int, int, dict[str, int]]:
    resources = container.resources
    if resources is None:
        return 0, 0, {}
    place = f"{path}.{field}[{index}].resources"
    cpu, memory, scalars = read_resources(resources.requests, f"{place}.requests")
    if resources.limits:
        # A limit without a request is the request; of extended resources the limit is what counts.
        limit_cpu, limit_memory, limit_scalars = read_resources(resources.limits, f"{place}.limits")
        cpu = limit_cpu if cpu is None else cpu
        memory = limit_memory if memory is None else memory
        if limit_scalars:
            scalars = {**scalars, **limit_scalars}
    return cpu or 0, memory or 0, scalars


def _priority(spec: RawPodSpec, notes: Mapping[str, str]) -> tuple[int | None, str]:
    own = notes.get(keys.TASK_PRIORITY)
    if own is not None:
        try:
            value = int(own)
        except ValueError:
            value = 2**31
        if -(2**31) <= value < 2**31:
            return value, ""
        return spec.priority, f"annotation {keys.TASK_PRIORITY}: {own!r} is not a whole number of 32 bits"
    return spec.priority, ""


def _share(notes: Mapping[str, str]) -> tuple[int, str]:
    text = notes.get(keys.CARD_MILLI)
    if text is None:
        return 0, ""
    problem = f"annotation {keys.CARD_MILLI}: {text!r} is not a share of one card; write thousandths of it, 1 to 999"
    try:
        milli = int(text)
    except ValueError:
        return 0, problem
    return (milli, "") if 0 < milli < 1000 else (0, problem)


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


def _whole_cpus(spec: RawPodSpec) -> tuple[int, ...]:
    """CPUs that each container of a Guaranteed pod has to itself (0 for a fraction); empty for other pods.

    Guaranteed: every container has limits of cpu and memory, and requests nothing else than those.
    """
    counts = []
    for i, container in enumerate(spec.containers or ()):
        resources = container.resources or RawRequirements()
        cpu, memory, _ = read_resources(resources.limits, f".spec.containers[{i}].resources.limits")
        asked_cpu, asked_memory, _ = read_resources(resources.requests, f".spec.containers[{i}].resources.requests")
        if not cpu or not memory or asked_cpu not in (None, cpu) or asked_memory not in (None, memory):
            return ()
        counts.append(0 if cpu % MILLI else cpu // MILLI)
    return tuple(counts)
