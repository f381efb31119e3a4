"""``metadata`` of any object: names, times, labels, annotations, owners."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from scheduler_core.model.errors import BadInput
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
    name: Annotated[str, msgspec.Meta(min_length=1)]
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


def wrong_mark(key: str, text: str, is_not: str, fix: str, place: str = "annotations") -> BadInput:
    """What to say of an annotation or a label that is not what it has to be."""
    said = f"{text[:80]!r} is {is_not}"
    return BadInput("bad_value", said, path=f'.metadata.{place}["{key}"]', value=text[:80], hint=fix)


def wrong_bool(notes: Mapping[str, str], labels: Mapping[str, str], key: str) -> BadInput | None:
    """What is wrong with a boolean annotation or label; None where it is one, or absent."""
    text = notes.get(key, labels.get(key))
    if text is None or text in _TRUE or text in _FALSE:
        return None
    place = "annotations" if key in notes else "labels"
    return wrong_mark(key, text, "neither true nor false", f'{key}: "true" or "false"', place)


def whole_number(
    marks: Mapping[str, str], key: str, bounds: tuple[int, int], wanted: str, place: str = "annotations"
) -> int | None:
    """The number that an annotation or a label gives, None where it is absent. Raises BadInput: ``bad_value``."""
    text = marks.get(key)
    try:
        number = None if text is None else int(text)
    except ValueError:
        number = bounds[0] - 1
    if text is not None and (number is None or not bounds[0] <= number <= bounds[1]):
        raise wrong_mark(key, text, f"not {wanted}", f"{wanted}, {bounds[0]} to {bounds[1]}", place)
    return number
