"""BatchProcess and TFJob of the founding documents, as gangs with their pods. Their operators do not exist in a Volcano
cluster, so the gang and its pods are made here: pending, to be scheduled by the first of the schedulers that the reader
was asked for. Where pods of the object exist already, nothing is made."""

from typing import Any

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.decode import Int32, decode
from scheduler_core.serde.kubernetes.metadata import RawMeta, namespace_of, texts
from scheduler_core.serde.kubernetes.pod import PodRecord, read_pod
from scheduler_core.serde.kubernetes.pod_spec import RawRequirements
from scheduler_core.serde.kubernetes.podgroup import PodGroupRecord, at_least, read_pod_group

# More pods than this in one object is a slip of the pen, not a gang.
MAX_PODS = 100_000
_MIB = 1024 * 1024


class RawBatchGroup(msgspec.Struct, rename="camel"):
    replicas: Int32 | None = None
    min_available: Int32 | None = None
    timeout_seconds: int | float | None = None


class RawSimpleProcess(msgspec.Struct, rename="camel"):
    """One type of process of a BatchProcess."""

    replicas: Int32 | None = None
    min_available: Int32 | None = None
    resources: RawRequirements | None = None


class RawBatchSpec(msgspec.Struct, rename="camel"):
    pod_group: RawBatchGroup | None = None
    simple_processes: list[RawSimpleProcess] | None = None


class RawBatchProcess(msgspec.Struct):
    metadata: RawMeta
    spec: RawBatchSpec | None = None


class RawReplicaSpec(msgspec.Struct):
    """One role of a TFJob."""

    replicas: Int32 | None = None
    template: dict[str, Any] | None = None


class RawTFJobSpec(msgspec.Struct, rename="camel"):
    tf_replica_specs: dict[str, RawReplicaSpec] | None = None


class RawTFJob(msgspec.Struct):
    metadata: RawMeta
    spec: RawTFJobSpec | None = None


class FoundingRecord(msgspec.Struct, frozen=True):
    """The gang and the pods of one BatchProcess or TFJob."""

    kind: str
    namespace: str
    name: str
    group: PodGroupRecord
    pods: tuple[PodRecord, ...]


def read_batch_process(obj: object, scheduler: str) -> FoundingRecord:
    """Decode one BatchProcess. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawBatchProcess)
    spec = raw.spec or RawBatchSpec()
    gang = spec.pod_group or RawBatchGroup()
    roles: dict[str, tuple[int, dict[str, Any]]] = {}
    least: dict[str, int] = {}
    for i, process in enumerate(spec.simple_processes or ()):
        path = f".spec.simpleProcesses[{i}]"
        role = f"process-{i}"
        replicas = at_least(0, 1 if process.replicas is None else process.replicas, f"{path}.replicas")
        if process.min_available is not None:
            least[role] = at_least(0, process.min_available, f"{path}.minAvailable")
        roles[role] = (replicas, {"spec": {"containers": [_container(process.resources)]}})
    total = sum(replicas for replicas, _ in roles.values())
    wanted = at_least(0, total if gang.min_available is None else gang.min_available, ".spec.podGroup.minAvailable")
    notes = dict(texts(raw.metadata.annotations))
    if gang.timeout_seconds is not None:
        notes.setdefault(keys.SCHEDULE_TIMEOUT, f"{gang.timeout_seconds:g}")
    return _gang("BatchProcess", raw.metadata, raw.metadata.name, wanted, least, roles, notes, scheduler)


def read_tf_job(obj: object, scheduler: str) -> FoundingRecord:
    """Decode one TFJob; label ``pod-group.scheduling.sigs.k8s.io/min-available`` gives the size of the gang. Raises
    BadInput: with the path below the object."""
    raw = decode(obj, RawTFJob)
    roles: dict[str, tuple[int, dict[str, Any]]] = {}
    name, wanted = raw.metadata.name, None
    for role, part in sorted(((raw.spec or RawTFJobSpec()).tf_replica_specs or {}).items()):
        path = f".spec.tfReplicaSpecs.{role}"
        template = part.template or {}
        labels = (template.get("metadata") or {}).get("labels") or {}
        name = labels.get(keys.POD_GROUP_LABEL, name)
        if keys.MIN_AVAILABLE_LABEL in labels:
            wanted = min_available(str(labels[keys.MIN_AVAILABLE_LABEL]), f"{path}.template.metadata.labels")
        roles[role.lower()] = (at_least(0, 1 if part.replicas is None else part.replicas, f"{path}.replicas"), template)
    total = sum(replicas for replicas, _ in roles.values())
    notes = texts(raw.metadata.annotations)
    return _gang("TFJob", raw.metadata, name, total if wanted is None else wanted, {}, roles, notes, scheduler)


def min_available(text: str, path: str) -> int:
    """The number in the label that gives the size of a gang. Raises BadInput: ``bad_value``."""
    try:
        return min(at_least(0, int(text), path), 2**31 - 1)
    except BadInput:
        raise
    except ValueError:
        raise BadInput(
            "bad_value", f"{text!r} is not a whole number", path=f'{path}["{keys.MIN_AVAILABLE_LABEL}"]', value=text
        ) from None


def _container(resources: RawRequirements | None) -> dict[str, Any]:
    if resources is None:
        return {}
    return {
        "resources": {
            kind: {name: _mebibytes(value) if name == "memory" else value for name, value in amounts.items()}
            for kind, amounts in (("requests", resources.requests), ("limits", resources.limits))
            if amounts
        }
    }


def _mebibytes(value: Any) -> Any:
    # A BatchProcess writes memory as a bare number of MiB (``memory: 2048``).
    return f"{value}Mi" if isinstance(value, int | float) and 0 <= value < _MIB else value


def _gang(
    kind: str, meta: RawMeta, name: str, wanted: int, least: dict[str, int],
    roles: dict[str, tuple[int, dict[str, Any]]], notes: dict[str, str], scheduler: str,
) -> FoundingRecord:  # fmt: skip
    total = sum(replicas for replicas, _ in roles.values())
    if total > MAX_PODS:
        raise BadInput(
            "bad_value", f"{total} pods in one object", path=".spec", value=total, hint=f"at most {MAX_PODS}"
        )
    namespace = namespace_of(meta)
    owner = {"kind": kind, "name": meta.name, "uid": meta.uid, "controller": True}
    pods = [
        _pod(meta, name, f"{role}-{index}", role, template, scheduler, owner)
        for role, (replicas, template) in roles.items()
        for index in range(replicas)
    ]
    group = read_pod_group(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": meta.uid,
                "creationTimestamp": meta.creation_timestamp,
                "annotations": notes,
                "ownerReferences": [owner],
            },
            "spec": {
                "minMember": wanted,
                "minTaskMember": least,
                "queue": notes.get(keys.QUEUE_NAME, ""),
                "priorityClassName": pods[0].pod.priority_class if pods else "",
            },
        }
    )
    group = msgspec.structs.replace(group, group=msgspec.structs.replace(group.group, made=True, replicas=total))
    return FoundingRecord(kind, namespace, meta.name, group, tuple(pods))


def _pod(
    meta: RawMeta, group: str, suffix: str, role: str, template: dict[str, Any], scheduler: str, owner: dict[str, Any]
) -> PodRecord:
    template_meta = template.get("metadata") or {}
    return read_pod(
        {
            "metadata": {
                "name": f"{meta.name}-{suffix}",
                "namespace": namespace_of(meta),
                "uid": f"{meta.uid or meta.name}-{suffix}",
                "creationTimestamp": meta.creation_timestamp,
                "labels": template_meta.get("labels"),
                "annotations": {
                    **(template_meta.get("annotations") or {}),
                    keys.GROUP_NAME: group,
                    keys.TASK_SPEC: role,
                },
                "ownerReferences": [owner],
            },
            "spec": {**(template.get("spec") or {}), "schedulerName": scheduler},
        }
    )
