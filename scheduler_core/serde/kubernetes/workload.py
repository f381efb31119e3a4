"""ReplicaSet, Deployment and other owners of pods, Namespace, and the kinds of which nothing but their form is read."""

import msgspec

from scheduler_core.serde.kubernetes import annotations as keys
from scheduler_core.serde.kubernetes.decode import Int32, decode
from scheduler_core.serde.kubernetes.metadata import RawMeta, namespace_of, owner_of, texts
from scheduler_core.serde.kubernetes.podgroup import at_least, flowing, read_notes


class RawWorkloadSpec(msgspec.Struct):
    replicas: Int32 | None = None


class RawWorkload(msgspec.Struct):
    metadata: RawMeta
    spec: RawWorkloadSpec | None = None


class RawNamed(msgspec.Struct):
    """An object of which only the metadata is read."""

    metadata: RawMeta


class WorkloadRecord(msgspec.Struct, frozen=True):
    """How many pods a workload wants (0 = not said), and the annotations that flow to its PodGroup."""

    namespace: str
    name: str
    uid: str
    replicas: int
    owner: str
    annotations: dict[str, str]
    unreadable: str = ""


def read_workload(obj: object) -> WorkloadRecord:
    """Decode one ReplicaSet or Deployment. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawWorkload)
    meta, spec = raw.metadata, raw.spec or RawWorkloadSpec()
    owner = owner_of(meta)
    return WorkloadRecord(
        namespace_of(meta),
        meta.name,
        meta.uid,
        at_least(0, 1 if spec.replicas is None else spec.replicas, ".spec.replicas"),
        owner.name if owner else "",
        _flowing(meta),
    )


def read_unsized(obj: object) -> WorkloadRecord:
    """Decode one workload that does not say how many pods it wants at a time (DaemonSet, batch Job). Raises BadInput:
    with the path below the object."""
    meta = decode(obj, RawNamed).metadata
    return WorkloadRecord(namespace_of(meta), meta.name, meta.uid, 0, "", _flowing(meta))


def _flowing(meta: RawMeta) -> dict[str, str]:
    notes = texts(meta.annotations)
    least = notes.get(keys.GROUP_MIN_MEMBER)
    notes = flowing(notes) | ({} if least is None else {keys.GROUP_MIN_MEMBER: least})
    if (wrong := read_notes(notes, {}).wrong) is not None:
        raise wrong
    return notes


def read_annotations(obj: object) -> dict[str, str]:
    """The annotations of an object of which nothing else is used (a Namespace). Raises BadInput: with the path below
    the object."""
    return texts(decode(obj, RawNamed).metadata.annotations)
