"""``metadata`` of any object: names, times, labels, annotations, owners."""

from collections.abc import Mapping

import msgspec

from scheduler_core.model.pod import OwnerReference
from scheduler_core.serde.kubernetes.decode import time_at

# YAML turns an unquoted `true` or `8` into more than text; an annotation means the text that was written.
Scalar = str | int | float | bool | None


# As Go reads them.
_TRUE, _FALSE = (
    frozenset(["1", "t", "T", "true", "TRUE", "True"]),
    frozenset(["0", "f", "F", "false", "FALSE", "False"]),
)


class RawOwner(msgspec.Struct, rename="camel", gc=False):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class RawMeta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str | None = None
    uid: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, Scalar] | None = None
    annotations: dict[str, Scalar] | None = None
    owner_references: list[RawOwner] | None = None


class RawTemplateMeta(msgspec.Struct, rename="camel"):
    labels: dict[str, Scalar] | None = None
    annotations: dict[str, Scalar] | None = None


def texts(values: dict[str, Scalar] | None) -> dict[str, str]:
    """Labels or annotations with every value as text; entries without a value are left out."""
    if not values:
        return {}
    for value in values.values():
        if type(value) is not str:
            return {k: _text(v) for k, v in values.items() if v is not None}
    return values  # type: ignore[return-value]  # all are text, just looked at


def _text(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def namespace_of(meta: RawMeta) -> str:
    """The namespace, ``default`` where the object names none."""
    return meta.namespace or "default"


def created(meta: RawMeta) -> float:
    """Creation time in seconds since the epoch, 0 when absent."""
    return time_at(meta.creation_timestamp, ".metadata.creationTimestamp") or 0.0


def owner_of(meta: RawMeta) -> RawOwner | None:
    """The controlling owner, else the first one."""
    owners = meta.owner_references
    if not owners:
        return None
    for owner in owners:
        if owner.controller:
            return owner
    return owners[0]


def owner_reference(owner: RawOwner | None) -> OwnerReference | None:
    return None if owner is None else OwnerReference(owner.kind, owner.name, owner.uid, owner.api_version)


def parse_bool(text: str | None) -> bool | None:
    """A Kubernetes boolean annotation: None when absent, False when it is not a boolean."""
    if text is None:
        return None
    return text in _TRUE


def bool_problem(notes: Mapping[str, str], labels: Mapping[str, str], key: str) -> str:
    """What is wrong with a boolean annotation or label; empty where it is one, or absent."""
    text = notes.get(key, labels.get(key))
    if text is None or text in _TRUE or text in _FALSE:
        return ""
    place = "annotation" if key in notes else "label"
    return f"{place} {key}: {text[:80]!r} is neither true nor false"
