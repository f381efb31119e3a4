"""PersistentVolumeClaim, PersistentVolume and StorageClass."""

import math
from typing import Any

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.resources import parse_quantity
from scheduler_core.model.selector import NodeSelectorRequirement, NodeSelectorTerm
from scheduler_core.model.storage import StorageClass, Volume, VolumeClaim
from scheduler_core.serde.kubernetes.affinity import RawRequired, node_terms
from scheduler_core.serde.kubernetes.decode import decode
from scheduler_core.serde.kubernetes.metadata import RawMeta, created, namespace_of, parse_bool, texts
from scheduler_core.serde.kubernetes.quantities import RawQuantity, RawResources
from scheduler_core.serde.kubernetes.selectors import RawLabelSelector, label_selector
from scheduler_core.serde.pointers import child

_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_TOO_LARGE = 2**63
_LEGACY_CLASS = "volume.beta.kubernetes.io/storage-class"
_MODES = ("Immediate", "WaitForFirstConsumer")
# In-tree sources that are attached to nodes: field of the spec -> (name that node limits use, field with its name).
_IN_TREE = {
    "awsElasticBlockStore": ("aws-ebs", "volumeID"),
    "azureDisk": ("azure-disk", "diskName"),
    "cinder": ("cinder", "volumeID"),
    "gcePersistentDisk": ("gce-pd", "pdName"),
}


class RawClaimResources(msgspec.Struct):
    requests: RawResources | None = None


class RawClaimSpec(msgspec.Struct, rename="camel"):
    access_modes: list[str] | None = None
    resources: RawClaimResources | None = None
    storage_class_name: str | None = None
    volume_name: str | None = None
    volume_mode: str | None = None
    selector: RawLabelSelector | None = None


class RawPhase(msgspec.Struct):
    phase: str | None = None


class RawClaim(msgspec.Struct):
    metadata: RawMeta
    spec: RawClaimSpec | None = None
    status: RawPhase | None = None


class RawClaimRef(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class RawVolumeNodes(msgspec.Struct):
    required: RawRequired | None = None


class RawVolumeSpec(msgspec.Struct, rename="camel"):
    """``spec`` of a volume; of its source only what is attached to nodes."""

    capacity: RawResources | None = None
    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    claim_ref: RawClaimRef | None = None
    node_affinity: RawVolumeNodes | None = None
    csi: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None


class RawVolume(msgspec.Struct):
    metadata: RawMeta
    spec: RawVolumeSpec | None = None
    status: RawPhase | None = None


class RawTopologyLine(msgspec.Struct):
    """One line of ``matchLabelExpressions``."""

    key: str
    values: list[str] | None = None


class RawTopologyTerm(msgspec.Struct, rename="camel"):
    match_label_expressions: list[RawTopologyLine] | None = None


class RawStorageClass(msgspec.Struct, rename="camel"):
    metadata: RawMeta
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[RawTopologyTerm] | None = None


def read_claim(obj: object) -> VolumeClaim:
    """Decode one PersistentVolumeClaim. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawClaim)
    meta, spec = raw.metadata, raw.spec or RawClaimSpec()
    notes = texts(meta.annotations)
    requests = spec.resources.requests if spec.resources else None
    legacy = notes.get(_LEGACY_CLASS)
    return VolumeClaim(
        namespace=namespace_of(meta),
        name=meta.name,
        volume=spec.volume_name or "",
        storage_class=spec.storage_class_name if legacy is None else legacy,
        access_modes=tuple(sorted(set(spec.access_modes or ()))),
        mode=spec.volume_mode or "Filesystem",
        size=_bytes(requests, ".spec.resources.requests", up=True),
        selector=label_selector(spec.selector, ".spec.selector") or (),
        selected_node=notes.get(_SELECTED_NODE, ""),
        lost=raw.status is not None and raw.status.phase == "Lost",
        leaving=meta.deletion_timestamp is not None,
    )


def read_volume(obj: object) -> Volume:
    """Decode one PersistentVolume. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawVolume)
    meta, spec = raw.metadata, raw.spec or RawVolumeSpec()
    labels = texts(meta.labels)
    reference = spec.claim_ref
    driver, handle = _source(spec)
    return Volume(
        name=meta.name,
        storage_class=spec.storage_class_name or "",
        access_modes=tuple(sorted(set(spec.access_modes or ()))),
        mode=spec.volume_mode or "Filesystem",
        capacity=_bytes(spec.capacity, ".spec.capacity", up=False),
        claim=f"{reference.namespace or 'default'}/{reference.name}" if reference and reference.name else "",
        nodes=_volume_nodes(spec.node_affinity),
        labels=labels,
        driver=driver,
        handle=handle or meta.name,
        available=raw.status is None or raw.status.phase in (None, "", "Available", "Pending"),
    )


def read_storage_class(obj: object) -> StorageClass:
    """Decode one StorageClass. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawStorageClass)
    mode = raw.volume_binding_mode or _MODES[0]
    if mode not in _MODES:
        raise BadInput(
            "bad_value", f"{mode!r} is not a volume binding mode", path=".volumeBindingMode", value=mode,
            hint=f"one of {', '.join(_MODES)}",
        )  # fmt: skip
    notes = texts(raw.metadata.annotations)
    return StorageClass(
        name=raw.metadata.name,
        provisioner=raw.provisioner,
        waits=mode == _MODES[1],
        default=any(parse_bool(notes.get(key)) for key in _DEFAULT_CLASS),
        created=created(raw.metadata),
        topologies=_topologies(raw.allowed_topologies),
    )


def _topologies(raw: list[RawTopologyTerm] | None) -> tuple[NodeSelectorTerm, ...] | None:
    if not raw:
        return None
    terms = (
        tuple(
            NodeSelectorRequirement(line.key, "In", tuple(line.values or ()))
            for line in term.match_label_expressions or ()
        )
        for term in raw
    )
    found = tuple(term for term in terms if term)
    return found or None


def _volume_nodes(raw: RawVolumeNodes | None) -> tuple[NodeSelectorTerm, ...] | None:
    if raw is None or raw.required is None:
        return None
    return node_terms(raw.required, ".spec.nodeAffinity.required.nodeSelectorTerms")


def _source(spec: RawVolumeSpec) -> tuple[str, str]:
    """What attaches the volume, as node limits call it, and its name there."""
    if spec.csi is not None:
        return f"csi-{spec.csi.get('driver', '')}", str(spec.csi.get("volumeHandle", ""))
    sources = (spec.aws_elastic_block_store, spec.azure_disk, spec.cinder, spec.gce_persistent_disk)
    for (driver, field), source in zip(_IN_TREE.values(), sources, strict=True):
        if source is not None:
            return driver, str(source.get(field, ""))
    return "", ""


def _bytes(values: RawResources | None, path: str, *, up: bool) -> int:
    """Entry ``storage`` in bytes, 0 when it says nothing."""
    value: RawQuantity | None = values.get("storage") if values else None
    if value is None:
        return 0
    try:
        amount = parse_quantity(value)
    except ValueError as error:
        hint = "write for example 10Gi"
        raise BadInput("bad_quantity", str(error), path=child(path, "storage"), value=value, hint=hint) from None
    if amount >= _TOO_LARGE:
        said = f"{str(value)[:80]!r} is more than the largest amount that is counted, 8Ei"
        raise BadInput("bad_quantity", said, path=child(path, "storage"), value=value, hint="a smaller amount")
    return math.ceil(amount) if up else math.floor(amount)
