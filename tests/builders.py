"""Concise builders of Kubernetes objects, and of snapshots and policies made of them by the real readers.

Times are seconds after ``EPOCH``; cards are counts; everything else is what a Volcano cluster would hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler_core.model.policy import Policy
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.serde.kubernetes import SnapshotBuilder

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
Object = dict[str, Any]

INFERENCE = {"priority": 80000, "reclaimable": False}
TRAINING = {"priority": 20000, "reclaimable": True}


def at(seconds: float) -> str:
    """RFC 3339 time of ``seconds`` after the epoch of the tests."""
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def now(seconds: float) -> float:
    """The same as seconds since 1970."""
    return EPOCH.timestamp() + seconds


def node(
    name: str,
    card: str | None = None,
    count: int = 8,
    *,
    cpu: str | int = 64,
    memory: str = "512Gi",
    pods: int = 110,
    mig: Mapping[str, int] | None = None,
    shares: int = 0,
    shares_per_card: int = 4,
    card_memory_mb: int = 81920,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
    unschedulable: bool = False,
    created: float = 0,
    extended: Mapping[str, int] | None = None,
) -> Object:
    """A node with ``count`` whole cards of type ``card``, or MIG slices by profile, or MPS ``shares`` of it."""
    allocatable: Object = {"cpu": cpu, "memory": memory, "pods": pods, **(extended or {})}
    marks: dict[str, str] = {"kubernetes.io/hostname": name}
    if card:
        marks["nvidia.com/gpu.product"] = card
        if mig:
            allocatable.update({f"nvidia.com/mig-{profile}": n for profile, n in mig.items()})
        elif shares:
            allocatable["nvidia.com/gpu.shared"] = shares
            marks |= {"nvidia.com/gpu.memory": str(card_memory_mb), "nvidia.com/gpu.replicas": str(shares_per_card)}
        else:
            allocatable["nvidia.com/gpu"] = count
    spec: Object = {}
    if taints:
        spec["taints"] = list(taints)
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**marks, **(labels or {})}, "creationTimestamp": at(created)},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def nodes(name: str, numbers: int, **of_each: Any) -> list[Object]:
    """Equal nodes ``name-0000``, ``name-0001`` and so on."""
    return [node(f"{name}-{i:04}", **of_each) for i in range(numbers)]


def queue(
    name: str,
    quota: Mapping[str, float] | None = None,
    *,
    priority: int = 0,
    reclaimable: bool = True,
    cpu: str | int | None = None,
    memory: str | None = None,
    state: str = "Open",
    service_type: str = "",
    parent: str = "",
    weight: int = 1,
    created: float = 0,
    capability: Mapping[str, Any] | None = None,
    deserved: Mapping[str, Any] | None = None,
    guarantee: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """A Queue; ``queue("q", {"A": 8}, **INFERENCE)``."""
    notes: dict[str, str] = dict(annotations or {})
    if quota is not None:
        notes["volcano.sh/card.quota"] = json.dumps(quota)
    if service_type:
        notes["tidesched.io/service-type"] = service_type
    spec: Object = {"weight": weight, "priority": priority, "reclaimable": reclaimable}
    most = {k: v for k, v in (("cpu", cpu), ("memory", memory)) if v is not None} | dict(capability or {})
    if most:
        spec["capability"] = most
    if deserved is not None:
        spec["deserved"] = dict(deserved)
    if guarantee is not None:
        spec["guarantee"] = {"resource": dict(guarantee)}
    if parent:
        spec["parent"] = parent
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "annotations": notes, "creationTimestamp": at(created)},
        "spec": spec,
        "status": {"state": state},
    }


def priority_class(name: str, value: int, *, default: bool = False) -> Object:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": default,
    }


def priority_classes() -> list[Object]:
    """The four levels of the founding document."""
    levels = (("pc-high", 80000), ("pc-medium", 60000), ("pc-normal", 40000), ("pc-low", 20000))
    return [priority_class(name, value) for name, value in levels]


def pod_group(
    name: str,
    queue: str,
    min_member: int = 1,
    *,
    namespace: str = "default",
    service_type: str = "",
    priority: str = "",
    phase: str = "Pending",
    created: float = 0,
    card_request: Mapping[str, float] | None = None,
    preemptable: str | None = None,
    min_resources: Mapping[str, Any] | None = None,
    owner: Object | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """A PodGroup."""
    notes = dict(annotations or {})
    if service_type:
        notes["volcano.sh/service.type"] = service_type
    if card_request is not None:
        notes["volcano.sh/card.request"] = json.dumps(card_request)
    if preemptable is not None:
        notes["volcano.sh/preemptable"] = preemptable
    meta: Object = {"name": name, "namespace": namespace, "annotations": notes, "creationTimestamp": at(created)}
    if owner:
        meta["ownerReferences"] = [owner]
    spec: Object = {"minMember": min_member, "queue": queue}
    if priority:
        spec["priorityClassName"] = priority
    if min_resources:
        spec["minResources"] = dict(min_resources)
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": phase},
    }


def resource_of(card: str) -> str:
    """The extended resource that counts a card type, told from its name."""
    first = card.split("|", maxsplit=1)[0]
    if "/mig-" in first:
        return "nvidia.com/mig-" + first.split("/mig-")[1].removesuffix("-mixed")
    return "nvidia.com/gpu.shared" if "/mps-" in first else "nvidia.com/gpu"


def pod(
    name: str,
    group: str | None = None,
    *,
    namespace: str = "default",
    node: str = "",
    phase: str | None = None,
    card: str | None = None,
    count: int = 1,
    milli: int = 0,
    cpu: str | int = "100m",
    memory: str = "100Mi",
    priority: str = "",
    scheduler: str = "volcano",
    owner: Object | None = None,
    created: float = 0,
    started: float | None = None,
    deleted: float | None = None,
    preemptable: str | None = None,
    role: str = "",
    spec: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, Any] | None = None,
) -> Object:
    """A pod; with a ``node`` it runs there (``phase`` says otherwise)."""
    notes = dict(annotations or {})
    amounts: Object = {"cpu": cpu, "memory": memory, **(resources or {})}
    if group:
        notes["scheduling.k8s.io/group-name"] = group
    if card:
        notes["volcano.sh/card.name"] = card
        if milli:
            notes["tidesched.io/card-milli"] = str(milli)
        else:
            amounts[resource_of(card)] = count
    if preemptable is not None:
        notes["volcano.sh/preemptable"] = preemptable
    if role:
        notes["volcano.sh/task-spec"] = role
    meta: Object = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "annotations": notes,
        "labels": dict(labels or {}),
        "creationTimestamp": at(created),
    }
    if owner:
        meta["ownerReferences"] = [owner]
    if deleted is not None:
        meta["deletionTimestamp"] = at(deleted)
    body: Object = {
        "schedulerName": scheduler,
        "containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}],
        **(spec or {}),
    }
    if priority:
        body["priorityClassName"] = priority
    if node:
        body["nodeName"] = node
    status: Object = {"phase": phase or ("Running" if node else "Pending")}
    if status["phase"] == "Running":
        status["startTime"] = at(created if started is None else started)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body, "status": status}


def job(
    name: str,
    queue: str,
    replicas: int,
    *,
    namespace: str = "default",
    evicted: str = "",
    min_available: int | None = None,
    created: float = 0,
    annotations: Mapping[str, str] | None = None,
    template: Mapping[str, Any] | None = None,
) -> Object:
    """A Volcano Job of one role; ``evicted`` is its PodEvicted policy."""
    spec: Object = {
        "schedulerName": "volcano",
        "queue": queue,
        "minAvailable": replicas if min_available is None else min_available,
        "tasks": [{"name": "worker", "replicas": replicas, "template": dict(template or {})}],
    }
    if evicted:
        spec["policies"] = [{"event": "PodEvicted", "action": evicted}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "creationTimestamp": at(created),
            "annotations": dict(annotations or {}),
        },
        "spec": spec,
    }


def owned_by(kind: str, name: str) -> Object:
    """An owner reference as a controller writes it."""
    versions = {"Job": "batch.volcano.sh/v1alpha1", "ReplicaSet": "apps/v1"}
    return {
        "apiVersion": versions.get(kind, "v1"),
        "kind": kind,
        "name": name,
        "uid": f"uid-{name}",
        "controller": True,
    }


def training(
    name: str,
    queue: str,
    pods: int,
    card: str | None = None,
    count: int = 1,
    *,
    nodes: Sequence[str] = (),
    evicted: str = "AbortJob",
    min_member: int | None = None,
    priority: str = "pc-low",
    created: float = 0,
    started: float | None = None,
    preemptable: str | None = None,
    service_type: str = "",
    phase: str | None = None,
    **of_pod: Any,
) -> list[Object]:
    """A gang of a Volcano Job with its pods; ``nodes`` are where they run, one for each pod (or one for all)."""
    owner = owned_by("Job", name)
    least = pods if min_member is None else min_member
    where = [nodes[i % len(nodes)] if nodes else "" for i in range(pods)]
    return [
        job(name, queue, pods, evicted=evicted, min_available=least, created=created),
        pod_group(
            name,
            queue,
            least,
            priority=priority,
            created=created,
            owner=owner,
            preemptable=preemptable,
            service_type=service_type,
            phase=phase or ("Running" if nodes else "Inqueue"),
        ),
        *(
            pod(
                f"{name}-{i}",
                name,
                node=where[i],
                card=card,
                count=count,
                priority=priority,
                owner=owner,
                created=created,
                started=started,
                role="worker",
                **of_pod,
            )
            for i in range(pods)
        ),
    ]


def inference(
    name: str,
    queue: str,
    pods: int,
    card: str | None = None,
    count: int = 1,
    *,
    nodes: Sequence[str] = (),
    min_member: int = 1,
    priority: str = "pc-high",
    created: float = 0,
    service_type: str = "",
    phase: str | None = None,
    **of_pod: Any,
) -> list[Object]:
    """A service: a ReplicaSet's pods under one PodGroup; the first ``len(nodes)`` of them run."""
    owner = owned_by("ReplicaSet", name)
    return [
        pod_group(
            name,
            queue,
            min_member,
            priority=priority,
            created=created,
            owner=owner,
            service_type=service_type,
            phase=phase or ("Running" if nodes else "Pending"),
        ),
        *(
            pod(
                f"{name}-{i}",
                name,
                node=nodes[i] if i < len(nodes) else "",
                card=card,
                count=count,
                priority=priority,
                owner=owner,
                created=created,
                **of_pod,
            )
            for i in range(pods)
        ),
    ]


def listing(*objects: Object | Iterable[Object]) -> Object:
    """A Kubernetes List; nested lists of objects are flattened."""
    items: list[Object] = []
    for entry in objects:
        items.extend([entry] if isinstance(entry, dict) else entry)
    return {"apiVersion": "v1", "kind": "List", "items": items}


def snapshot(*objects: Object | Iterable[Object], schedulers: Sequence[str] = ("tidesched", "volcano")) -> Snapshot:
    """The objects as a snapshot, read by the real reader."""
    builder = SnapshotBuilder(schedulers)
    for index, item in enumerate(listing(*objects)["items"]):
        builder.upsert(item, path=f"items[{index}]")
    return builder.build()


def taken(objects: Iterable[Object]) -> Snapshot:
    """The objects as a snapshot; one that cannot be read is a finding."""
    builder = SnapshotBuilder()
    for index, item in enumerate(objects):
        builder.take(item, path=f"items[{index}]")
    return builder.build()


def founding_policy(**arguments: Any) -> Policy:
    """The founding policy; keyword arguments are set on ``capacity-card``."""
    from scheduler_core.serde.policy import parse_policy
    from scheduler_core.serde.policy.founding import FOUNDING_POLICY

    text = FOUNDING_POLICY
    for name, value in arguments.items():
        text = _with_argument(text, name, value)
    return parse_policy(text)


def _with_argument(text: str, name: str, value: Any) -> str:
    kept = [line for line in text.splitlines(keepends=True) if not line.strip().startswith(f"{name}:")]
    return "".join(kept).replace("    arguments:\n", f"    arguments:\n      {name}: {json.dumps(value)}\n")
