"""Which changes of an object may change what a session decides: only these wake one."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def signature(kind: str, obj: Json) -> object:
    """A small value that differs when a session should look again; status counts and heartbeats are left out."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    match kind:
        case "Pod":
            return hash(
                (
                    metadata["uid"],
                    spec.get("nodeName"),
                    status.get("phase"),
                    bool(metadata.get("deletionTimestamp")),
                    bool(spec.get("schedulingGates")),
                )
            )
        case "Node":
            allocatable = status.get("allocatable") or {}
            return hash(
                (
                    bool(spec.get("unschedulable")),
                    str(spec.get("taints")),
                    _pairs(allocatable),
                    _pairs(metadata.get("labels")),
                )
            )
        case "Namespace":
            return hash((_pairs(metadata.get("labels")), _pairs(metadata.get("annotations"))))
        case "Queue":
            return hash((str(spec), _pairs(metadata.get("annotations")))), status.get("state")
        case "PodGroup":
            return hash((metadata["uid"], str(spec)))
        case "ReplicaSet" | "Deployment" | "StatefulSet" | "DaemonSet" | "BatchJob":
            notes = {key: text for key, text in (metadata.get("annotations") or {}).items() if "volcano.sh/" in key}
            return hash((metadata["uid"], spec.get("replicas"), _pairs(notes)))
        case _:
            # A priority class has no spec; the controllers' objects count by what they want.
            return hash((metadata["uid"], str(spec), obj.get("value")))


def has_state(mark: object) -> bool:
    """Whether the queue of this signature is open, closing or closed as far as its status says."""
    return isinstance(mark, tuple) and bool(mark[1])


def _pairs(values: Json | None) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((values or {}).items()))
