"""What stands for an object that cannot be read: as much of it as can be read without what is wrong.

What depends on it waits, says why, and is no victim, since nobody can say what it is worth: but for a priority class
whose value is known. A disruption budget allows nothing, a volume is nowhere, a claim is lost. Of nodes and storage
classes nothing stands in."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from scheduler_core.model.disruption import DisruptionBudget
from scheduler_core.model.errors import BadInput
from scheduler_core.model.pod import Pod
from scheduler_core.model.queue import PriorityClass, Queue
from scheduler_core.model.resource_quota import ResourceQuota
from scheduler_core.model.storage import Volume, VolumeClaim
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.decode import steps, told
from scheduler_core.serde.kubernetes.founding import FoundingRecord
from scheduler_core.serde.kubernetes.job import JobRecord
from scheduler_core.serde.kubernetes.observed import NamespaceRecord
from scheduler_core.serde.kubernetes.pod import PodRecord
from scheduler_core.serde.kubernetes.podgroup import PodGroupRecord
from scheduler_core.serde.kubernetes.workload import WorkloadRecord

# So many fields of one object are left out one by one; then ``spec.containers`` as a whole, and so on.
_MOST_FIELDS = 20
_BARE = ("name", "namespace", "uid", "labels", "annotations", "ownerReferences", "nodeName", "schedulerName", "phase")
_replace = msgspec.structs.replace


def stand_in(obj: Mapping[str, Any], error: BadInput, read: Callable[[object], Any]) -> Any:
    """What ``read`` makes of the object without the fields that it cannot read, with the first of them as its problem;
    None where nothing can stand in. ``error``: what was found first, with the path below the object."""
    problem, sized = told(error), _is_apart(error)
    left: Any = obj
    for tries in range(2 * _MOST_FIELDS):
        try:
            return _with_problem(read(left), problem, obj, sized=sized)
        except Exception as another:  # noqa: BLE001 a reader with a bug does not say where it stumbles
            place = steps(another.path or "") if isinstance(another, BadInput) else []
            sized = sized and _is_apart(another)
        left = (_without(left, place if tries < _MOST_FIELDS else place[:2]) if place else None) or _bare(obj)
    return None


def node_of(obj: object) -> str:
    """The node of a pod that has no name and has not ended; empty for all else."""
    if not isinstance(obj, Mapping) or obj.get("kind") != "Pod":
        return ""
    parts = _bare(obj)
    node, phase = parts.get("spec", {}).get("nodeName"), parts.get("status", {}).get("phase")
    return node if isinstance(node, str) and phase not in ("Succeeded", "Failed") else ""


def _is_apart(error: Exception) -> bool:
    """Whether it is about an annotation or a label that does not say what a pod takes."""
    match steps(error.path or "") if isinstance(error, BadInput) else ():
        case ["metadata", "annotations" | "labels", key]:
            return key != keys.CARD_MILLI
    return False


def _bare(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Whose it is and where it runs, without all that it asks for."""
    parts = {key: part for key in ("metadata", "spec", "status") if isinstance(part := obj.get(key), Mapping)}
    return {"value": 0} | {key: {k: v for k, v in part.items() if k in _BARE} for key, part in parts.items()}


def _without(value: Any, place: list[str | int]) -> Any:
    """A copy without what is at the place, or without the deepest part of it that is there; None = nothing is left."""
    if not place:
        # Of labels and annotations only those go that are no plain values.
        plain = {k: v for k, v in value.items() if not isinstance(v, dict | list)} if isinstance(value, Mapping) else {}
        return plain if plain and len(plain) < len(value) else None
    step, *rest = place
    if isinstance(value, Mapping) and step in value:
        inner = _without(value[step], rest)
        return {key: inner if key == step else item for key, item in value.items() if key != step or inner is not None}
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        inner = _without(value[step], rest)
        return [*value[:step], *([] if inner is None else [inner]), *value[step + 1 :]]
    return None


def _with_problem(record: Any, problem: str, obj: Mapping[str, Any], *, sized: bool) -> Any:
    match record:
        case PodRecord(pod=pod) if sized:
            return _replace(record, problem=problem, pod=_replace(pod, preemptable=False))
        case PodRecord(pod=pod):
            # What it needs is not known, so nothing of it counts; the builder closes its node.
            bare = Pod(
                namespace=pod.namespace, name=pod.name, uid=pod.uid, node=pod.node, phase=pod.phase, group=pod.group,
                scheduler=pod.scheduler, owner=pod.owner, deleted=pod.deleted, preemptable=False,
            )  # fmt: skip
            return _replace(record, problem=problem, pod=bare, devices={}, names=(), share=0, unsized=True)
        case PodGroupRecord():
            return _replace(record, group=_replace(record.group, problem=problem, preemptable=False))
        case Queue():
            return _replace(record, problem=problem, reclaimable=False)
        case JobRecord():
            return _replace(record, unreadable=problem)
        case WorkloadRecord():
            return _replace(record, unreadable=f"its workload {record.name}: {problem}")
        case FoundingRecord():
            return _replace(record, group=_with_problem(record.group, problem, obj, sized=sized))
        case PriorityClass():
            value, default, policy = (obj.get(key) for key in ("value", "globalDefault", "preemptionPolicy"))
            known = type(value) is int and value == record.value and isinstance(default, bool | None)
            record = _replace(record, problem="" if known else problem, global_default=default not in (None, False))
            return record if known and isinstance(policy, str | None) else _replace(record, preemption_policy="Never")
        case Volume():
            return _replace(record, nodes=(), available=False)
        case VolumeClaim():
            return _replace(record, lost=True)
        case DisruptionBudget():
            # One whose pods are not known is about all of its namespace.
            return _replace(record, allowed=0, selector=record.selector or ())
    return record if isinstance(record, NamespaceRecord | ResourceQuota) else None
