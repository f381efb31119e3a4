"""Queue (``scheduling.volcano.sh``) and PriorityClass."""

from collections.abc import Iterable, Mapping

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.finding import Finding, Severity
from scheduler_core.model.pod import ServiceType
from scheduler_core.model.queue import NodeGroups, PriorityClass, Queue, QueueState
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.decode import Int32, decode
from scheduler_core.serde.kubernetes.metadata import RawMeta, created, texts, wrong_mark
from scheduler_core.serde.kubernetes.podgroup import at_least
from scheduler_core.serde.kubernetes.quantities import RawResources, read_card_counts, read_resources
from scheduler_core.serde.pointers import child

MAX_WEIGHT = 65535
ROOT_QUEUE = "root"
_STATES = {state.value: state for state in QueueState}
_SERVICE_TYPES = (ServiceType.INFERENCE.value, ServiceType.TRAINING.value)


class RawGuarantee(msgspec.Struct):
    resource: RawResources | None = None


class RawGroupAffinity(msgspec.Struct):
    """``nodeGroupAffinity`` or ``nodeGroupAntiAffinity``."""

    required: list[str] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[str] | None = msgspec.field(default=None, name="preferredDuringSchedulingIgnoredDuringExecution")


class RawQueueAffinity(msgspec.Struct, rename="camel"):
    node_group_affinity: RawGroupAffinity | None = None
    node_group_anti_affinity: RawGroupAffinity | None = None


class RawQueueSpec(msgspec.Struct):
    weight: Int32 | None = None
    priority: Int32 | None = None
    reclaimable: bool | None = None
    capability: RawResources | None = None
    deserved: RawResources | None = None
    guarantee: RawGuarantee | None = None
    parent: str | None = None
    affinity: RawQueueAffinity | None = None


class RawQueueStatus(msgspec.Struct):
    state: str | None = None


class RawQueue(msgspec.Struct):
    metadata: RawMeta
    spec: RawQueueSpec | None = None
    status: RawQueueStatus | None = None


class RawPriorityClass(msgspec.Struct, rename="camel"):
    metadata: RawMeta
    value: Int32
    global_default: bool | None = None
    preemption_policy: str | None = None


def read_queue(obj: object) -> Queue:
    """Decode one Queue. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawQueue)
    spec, status = raw.spec or RawQueueSpec(), raw.status or RawQueueStatus()
    notes = texts(raw.metadata.annotations)
    weight = at_least(1, 1 if spec.weight is None else spec.weight, ".spec.weight")
    if weight > MAX_WEIGHT:
        raise BadInput(
            "bad_value", f"{weight} is above {MAX_WEIGHT}", path=".spec.weight", value=weight, hint=f"1 to {MAX_WEIGHT}"
        )
    # Scalars in thousandths; a ceiling beyond the largest amount is out of reach just the same.
    cpu, memory, scalars = read_resources(
        spec.capability, ".spec.capability", capacity=True, thousandths=True, excess=[]
    )
    service_type = notes.get(keys.OWN_SERVICE_TYPE, "")
    if service_type and service_type not in _SERVICE_TYPES:
        known = f"one of {', '.join(_SERVICE_TYPES)}"
        raise wrong_mark(keys.OWN_SERVICE_TYPE, service_type, f"not {known}", known)
    return Queue(
        name=raw.metadata.name,
        uid=raw.metadata.uid,
        created=created(raw.metadata),
        weight=weight,
        priority=at_least(0, spec.priority or 0, ".spec.priority"),
        reclaimable=spec.reclaimable is not False,
        state=_STATES.get(status.state, QueueState.UNKNOWN) if status.state else QueueState.OPEN,
        cpu_milli=cpu,
        memory_mib=memory,
        card_quota=read_card_counts(notes[keys.CARD_QUOTA], keys.CARD_QUOTA) if keys.CARD_QUOTA in notes else None,
        scalars=scalars,
        deserved=_flat(spec.deserved, ".spec.deserved"),
        guarantee=_flat(spec.guarantee.resource if spec.guarantee else None, ".spec.guarantee.resource"),
        parent=spec.parent or "",
        service_type=service_type,
        namespaces=_namespaces(notes),
        node_groups=_node_groups(spec.affinity),
        annotations=notes,
    )


def read_priority_class(obj: object) -> PriorityClass:
    """Decode one PriorityClass. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawPriorityClass)
    return PriorityClass(
        name=raw.metadata.name,
        value=raw.value,
        global_default=bool(raw.global_default),
        preemption_policy=raw.preemption_policy or "PreemptLowerPriority",
    )


def _node_groups(raw: RawQueueAffinity | None) -> NodeGroups | None:
    if raw is None:
        return None
    near, far = raw.node_group_affinity or RawGroupAffinity(), raw.node_group_anti_affinity or RawGroupAffinity()
    groups = NodeGroups(
        required=tuple(dict.fromkeys(near.required or ())), preferred=tuple(dict.fromkeys(near.preferred or ())),
        denied=tuple(dict.fromkeys(far.required or ())), avoided=tuple(dict.fromkeys(far.preferred or ())),
    )  # fmt: skip
    return None if groups == NodeGroups() else groups


def _namespaces(notes: Mapping[str, str]) -> tuple[str, ...] | None:
    """``a,b`` to its names in order; an empty annotation lets none in."""
    text = notes.get(keys.NAMESPACES)
    return None if text is None else tuple(sorted({part.strip() for part in text.split(",")} - {""}))


def _flat(raw: RawResources | None, path: str) -> dict[str, int]:
    cpu, memory, scalars = read_resources(raw, path, capacity=True, thousandths=True)
    amounts = {} if cpu is None else {"cpu": cpu}
    if memory is not None:
        amounts["memory"] = memory
    return {**amounts, **scalars}


def tree_findings(queues: Iterable[Queue]) -> list[Finding]:
    """What queues say of their parents that a policy with a tree cannot do, or cuts."""
    by_name = {queue.name: queue for queue in queues}
    found = []
    for name, queue in sorted(by_name.items()):
        parent = by_name.get(queue.parent)
        if parent is None and queue.parent not in ("", ROOT_QUEUE):
            found.append(
                Finding(
                    severity=Severity.WARNING, code="unknown_parent", object=f"Queue {name}", path="spec.parent",
                    message=f"its parent queue {queue.parent} does not exist; with enableHierarchy its gangs wait",
                    fix="the name of a queue, or no parent",
                )
            )  # fmt: skip
        if parent is None:
            continue
        for field, own, above in (
            ("capability", _ceiling(queue), _ceiling(parent)),
            ("guarantee", queue.guarantee, parent.guarantee),
            ("deserved", queue.deserved, parent.deserved),
        ):
            found += [
                Finding(
                    severity=Severity.WARNING, code="child_above_parent", object=f"Queue {name}",
                    path=child(f"spec.{field}", resource),
                    message=f"more {resource} than its parent {parent.name} has",
                    fix=f"lower it, or raise that of {parent.name}; with enableHierarchy what the parent has is the "
                    "most, of root only its capability",
                )
                for resource in sorted(own)
                if resource in above and own[resource] > above[resource]
            ]  # fmt: skip
    return found


def _ceiling(queue: Queue) -> dict[str, int]:
    """What its capability limits; no cpu or memory there is no limit."""
    named = {"cpu": queue.cpu_milli or 0, "memory": queue.memory_mib or 0}
    return {**queue.scalars, **{resource: most for resource, most in named.items() if most}}


def parent_cycle(queues: Iterable[Queue]) -> tuple[str, ...]:
    """The names along one cycle of parents, starting at the smallest name, or nothing."""
    parents = {queue.name: queue.parent for queue in queues}
    cleared: set[str] = set()
    for name in sorted(parents):
        walk: dict[str, None] = {}
        at = name
        while at and at in parents and at not in cleared:
            if at in walk:
                cycle = list(walk)[list(walk).index(at) :]
                first = cycle.index(min(cycle))
                return tuple(cycle[first:] + cycle[:first])
            walk[at] = None
            at = parents[at]
        cleared.update(walk)
    return ()
