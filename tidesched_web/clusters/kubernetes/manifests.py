import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from tidesched_web.clusters.kubernetes.paths import EVENT, POD_GROUP, PRIORITY_CLASS, QUEUE
from tidesched_web.engine.quantities import scalar

CARD_QUOTA = "volcano.sh/card.quota"
SERVICE_TYPE = "tidesched.io/service-type"
NAMESPACES = "tidesched.io/namespaces"
TENANT, PROJECT, BUSINESS_LINE = "tidesched.io/tenant", "tidesched.io/project", "tidesched.io/business-line"
# On a Queue: which installation of TideSched keeps it.
INSTALLATION = "tidesched.io/installation"
CARD_INDICES = "tidesched.io/card-indices"
CARD_TYPE = "tidesched.io/card-type"
# On a PodGroup that TideSched made: the workload that it stands for.
MADE_FOR = "tidesched.io/made-for"
SUBMITTED_AT = "tidesched.io/submitted-at"
GROUP_NAME = "scheduling.k8s.io/group-name"

Json = dict[str, Any]


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def queue(
    name: str,
    *,
    service_type: str,
    weight: int,
    priority: int,
    reclaimable: bool,
    card_quota: Mapping[str, int],
    cpu_milli: int | None = None,
    memory_mib: int | None = None,
    limits: Mapping[str, int] | None = None,
    parent: str = "",
    deserved: Mapping[str, str] | None = None,
    guarantee: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    namespaces: Iterable[str] | None = None,
) -> Json:
    """Only the fields that TideSched owns. ``limits``: other resources; ``namespaces``: who may use it."""
    annotations = {
        CARD_QUOTA: json.dumps(dict(sorted(card_quota.items())), separators=(",", ":")),
        SERVICE_TYPE: service_type,
    }
    if namespaces is not None:
        annotations[NAMESPACES] = ",".join(sorted(namespaces))
    spec: Json = {"weight": weight, "priority": priority, "reclaimable": reclaimable}
    capability = {resource: str(count) for resource, count in sorted((limits or {}).items())}
    if cpu_milli is not None:
        capability["cpu"] = f"{cpu_milli}m"
    if memory_mib is not None:
        capability["memory"] = f"{memory_mib}Mi"
    if capability:
        spec["capability"] = capability
    if parent:
        spec["parent"] = parent
    if deserved:
        spec["deserved"] = dict(deserved)
    if guarantee:
        spec["guarantee"] = {"resource": dict(guarantee)}
    return {
        "apiVersion": QUEUE.group_version,
        "kind": QUEUE.name,
        "metadata": {
            "name": name,
            "labels": {key: value for key, value in sorted((labels or {}).items()) if value},
            "annotations": annotations,
        },
        "spec": spec,
    }


def priority_class(
    name: str, *, value: int, global_default: bool, preemption_policy: str, description: str = ""
) -> Json:
    manifest: Json = {
        "apiVersion": PRIORITY_CLASS.group_version,
        "kind": PRIORITY_CLASS.name,
        "metadata": {"name": name},
        "value": value,
        "globalDefault": global_default,
        "preemptionPolicy": preemption_policy,
    }
    if description:
        manifest["description"] = description
    return manifest


def pod_group(
    namespace: str,
    name: str,
    *,
    owner: tuple[str, str, str, str],
    min_member: int,
    queue: str,
    priority_class: str,
    cpu_milli: int,
    memory_mib: int,
    scalars: Mapping[str, int],
    annotations: Mapping[str, str],
    submitted: float,
) -> Json:
    """It keeps the place that its first pod had in the queue."""
    api_version, kind, owner_name, uid = owner
    resources: Json = {}
    if cpu_milli:
        resources["cpu"] = f"{cpu_milli}m"
    if memory_mib:
        resources["memory"] = f"{memory_mib}Mi"
    resources |= {resource: scalar(resource, count) for resource, count in sorted(scalars.items())}
    metadata: Json = {
        "name": name,
        "namespace": namespace,
        "annotations": {SUBMITTED_AT: rfc3339(submitted), **annotations, MADE_FOR: f"{kind}/{owner_name}"},
    }
    if api_version and uid:
        metadata["ownerReferences"] = [
            {"apiVersion": api_version, "kind": kind, "name": owner_name, "uid": uid, "controller": True}
        ]
    spec: Json = {"minMember": min_member, "queue": queue}
    if priority_class:
        spec["priorityClassName"] = priority_class
    if resources:
        spec["minResources"] = resources
    return {"apiVersion": POD_GROUP.group_version, "kind": POD_GROUP.name, "metadata": metadata, "spec": spec}


def binding(
    name: str, namespace: str, *, uid: str, node: str, card: str, card_indices: tuple[int, ...], group: str = ""
) -> Json:
    annotations = {}
    if group:
        annotations[GROUP_NAME] = group
    if card:
        annotations[CARD_TYPE] = card
    if card_indices:
        annotations[CARD_INDICES] = ",".join(str(index) for index in card_indices)
    metadata: Json = {"name": name, "namespace": namespace, "uid": uid}
    if annotations:
        metadata["annotations"] = annotations
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def eviction(name: str, namespace: str, *, uid: str) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }


def delete_options(uid: str, version: str = "") -> Json:
    """DeleteOptions for exactly the object with ``uid``, with a ``version`` only as long as it is of that."""
    preconditions = {"uid": uid} | ({"resourceVersion": version} if version else {})
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}


def event(
    *,
    kind: str,
    api_version: str,
    namespace: str,
    name: str,
    uid: str,
    type_: str,
    reason: str,
    message: str,
    first: float,
    now: float,
    count: int,
) -> Json:
    """Its name says object and reason, so the next one of the same reason is the same Event, counted on."""
    mark = hashlib.sha256(f"{uid}/{reason}".encode()).hexdigest()[:16]
    return {
        "apiVersion": EVENT.group_version,
        "kind": EVENT.name,
        "metadata": {"name": f"{name[:200]}.{mark}", "namespace": namespace},
        "involvedObject": {"kind": kind, "apiVersion": api_version, "namespace": namespace, "name": name, "uid": uid},
        "type": type_,
        "reason": reason,
        "message": message[:1024],
        "firstTimestamp": rfc3339(first),
        "lastTimestamp": rfc3339(now),
        "count": count,
        "source": {"component": "tidesched"},
        "reportingComponent": "tidesched",
        "reportingInstance": "tidesched",
    }
