import re
from typing import Any

from tidesched_web.simcluster.errors import ApiError, bad_request, invalid
from tidesched_web.simcluster.resources import (
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    REPLICA_SETS,
    ResourceType,
)
from tidesched_web.simcluster.store import Store

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_POD_GROUP_PHASES = ("Pending", "Running", "Unknown", "Inqueue", "Completed")
_QUEUE_STATES = ("Open", "Closed", "Closing", "Unknown")

Object = dict[str, Any]


def check_identity(kind: ResourceType, namespace: str, name: str, obj: Object) -> None:
    if "volcano" in kind.group and not (obj.get("kind") and obj.get("apiVersion")):
        # What Kubernetes knows by itself may leave them out; what a definition brought may not.
        raise bad_request("the object provided is unrecognized (must be of type Object): Object 'Kind' is missing")
    said_kind, said_version = obj.get("kind", kind.kind), obj.get("apiVersion", kind.group_version)
    if (said_kind, said_version) != (kind.kind, kind.group_version):
        raise bad_request(
            f"the API version in the data ({said_version}, Kind={said_kind}) does not match the expected API version"
            f" ({kind.group_version}, Kind={kind.kind})"
        )
    metadata = obj.get("metadata") or {}
    if metadata.get("namespace", namespace) != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if metadata.get("name", name) != name:
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    if len(name) > 253 or not _NAME.fullmatch(name):
        raise invalid(kind, name, "metadata.name", "a lowercase RFC 1123 subdomain is needed, for example 'my-name'")


def prepare_new(store: Store, kind: ResourceType, obj: Object) -> None:
    if kind.has_status and kind is not NODES:  # a kubelet brings its node's status along
        obj.pop("status", None)
    if kind is PODS:
        _prepare_pod(store, obj)
    elif kind is NAMESPACES:
        obj["status"] = {"phase": "Active"}
    elif kind is QUEUES:
        obj.setdefault("spec", {}).setdefault("weight", 1)


def _prepare_pod(store: Store, pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    pod["status"] = {"phase": "Pending"}
    name = spec.get("priorityClassName")
    if name and name not in _SYSTEM_PRIORITIES:
        found = store.get(PRIORITY_CLASSES, "", name)
        if found is None:
            message = f'pods "{pod["metadata"]["name"]}" is forbidden: no PriorityClass with name {name} was found'
            raise ApiError(403, "Forbidden", message, kind=PODS, name=pod["metadata"]["name"])
        spec["priority"] = found["value"]
        spec["preemptionPolicy"] = found.get("preemptionPolicy", "PreemptLowerPriority")
    else:
        spec["priority"] = _SYSTEM_PRIORITIES.get(name or "", spec.get("priority", 0))


def validate(kind: ResourceType, obj: Object, old: Object | None) -> None:
    name = obj["metadata"]["name"]
    if kind is PRIORITY_CLASSES:
        _validate_priority_class(obj, old, name)
    elif kind is QUEUES:
        _validate_queue(obj, name)
    elif kind is POD_GROUPS:
        _one_of(kind, name, "status.phase", obj.get("status", {}).get("phase", "Pending"), _POD_GROUP_PHASES)
    elif kind in (DEPLOYMENTS, REPLICA_SETS):
        replicas = (obj.get("spec") or {}).get("replicas", 1)
        if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
            raise invalid(kind, name, "spec.replicas", f"Invalid value: {replicas!r}: a whole number is needed")
    elif kind is PODS and old is not None and _node_of(obj) != _node_of(old):
        raise invalid(kind, name, "spec.nodeName", "may not be changed by an update; a pod is bound by its binding")


def _node_of(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _validate_priority_class(obj: Object, old: Object | None, name: str) -> None:
    if not isinstance(obj.get("value"), int):
        raise invalid(PRIORITY_CLASSES, name, "value", "a whole number is needed")
    if obj["value"] > 1_000_000_000:
        raise invalid(PRIORITY_CLASSES, name, "value", "maximum allowed value of a user defined priority is 1000000000")
    policy = obj.get("preemptionPolicy", "PreemptLowerPriority")
    _one_of(PRIORITY_CLASSES, name, "preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
    if old is None:
        return
    if obj["value"] != old["value"]:
        raise invalid(PRIORITY_CLASSES, name, "value", "Forbidden: may not be changed in an update.")
    if policy != old.get("preemptionPolicy", "PreemptLowerPriority"):
        raise invalid(PRIORITY_CLASSES, name, "preemptionPolicy", "field is immutable")


def _validate_queue(obj: Object, name: str) -> None:
    spec = obj.get("spec") or {}
    weight, priority = spec.get("weight", 1), spec.get("priority", 0)
    if not isinstance(weight, int) or not 1 <= weight <= 65535:
        raise invalid(QUEUES, name, "spec.weight", f"Invalid value: {weight!r}: should be from 1 to 65535")
    if not isinstance(priority, int) or not 0 <= priority < 2**31:
        raise invalid(QUEUES, name, "spec.priority", f"Invalid value: {priority!r}: should be zero or more")
    if not isinstance(spec.get("reclaimable", True), bool):
        raise invalid(QUEUES, name, "spec.reclaimable", "true or false is needed")
    state = (obj.get("status") or {}).get("state", "Open")
    _one_of(QUEUES, name, "status.state", state, _QUEUE_STATES)


def _one_of(kind: ResourceType, name: str, field: str, value: Any, supported: tuple[str, ...]) -> None:
    if value not in supported:
        raise invalid(kind, name, field, f"Unsupported value: {value!r}: supported values: {', '.join(supported)}")
