"""ResourceQuota."""

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.resource_quota import ResourceQuota
from scheduler_core.serde.kubernetes.decode import decode
from scheduler_core.serde.kubernetes.metadata import RawMeta, namespace_of
from scheduler_core.serde.kubernetes.quantities import RawQuantity, RawResources, read_pod_limit, read_resources
from scheduler_core.serde.pointers import child

_PODS = ("pods", "count/pods")


class RawScope(msgspec.Struct, rename="camel"):
    scope_name: str
    operator: str = "Exists"
    values: list[str] | None = None


class RawScopeSelector(msgspec.Struct, rename="camel"):
    match_expressions: list[RawScope] | None = None


class RawQuotaSpec(msgspec.Struct, rename="camel"):
    hard: RawResources | None = None
    scopes: list[str] | None = None
    scope_selector: RawScopeSelector | None = None


class RawQuotaStatus(msgspec.Struct):
    used: RawResources | None = None


class RawResourceQuota(msgspec.Struct):
    metadata: RawMeta
    spec: RawQuotaSpec | None = None
    status: RawQuotaStatus | None = None


def read_resource_quota(obj: object) -> ResourceQuota:
    """Decode one ResourceQuota. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawResourceQuota)
    spec = raw.spec or RawQuotaSpec()
    scopes = list(spec.scopes or ())
    allowed: set[str] | None = None
    denied: set[str] = set()
    for entry in (spec.scope_selector.match_expressions if spec.scope_selector else None) or ():
        values = set(entry.values or ())
        if entry.scope_name == "PriorityClass" and entry.operator == "In":
            allowed = values if allowed is None else allowed & values
        elif entry.scope_name == "PriorityClass" and entry.operator == "NotIn":
            denied |= values
        elif entry.operator == "DoesNotExist":
            scopes.append(f"!{entry.scope_name}")
        else:
            scopes.append(entry.scope_name)
    used = raw.status.used if raw.status else None
    return ResourceQuota(
        namespace=namespace_of(raw.metadata),
        name=raw.metadata.name,
        hard=_requests(spec.hard, ".spec.hard", capacity=True),
        used=None if used is None else _requests(used, ".status.used", capacity=False),
        scopes=tuple(dict.fromkeys(scopes)),
        priority_classes=None if allowed is None else tuple(sorted(allowed)),
        other_classes=tuple(sorted(denied)),
    )


def _requests(values: RawResources | None, path: str, *, capacity: bool) -> dict[str, int]:
    """``cpu`` and ``requests.cpu`` are one; of two spellings the smaller amount counts."""
    found: dict[str, int] = {}
    for name, value in (values or {}).items():
        if value is None:
            continue
        key, amount = _amount(name, value, path, capacity=capacity)
        if amount is not None:
            found[key] = min(found.get(key, amount), amount)
    return found


def _amount(name: str, value: RawQuantity, path: str, *, capacity: bool) -> tuple[str, int | None]:
    if name in _PODS:
        return "pods", read_pod_limit({"pods": value}, path)
    plain = name.removeprefix("requests.")
    try:
        cpu, memory, scalars = read_resources({plain: value}, path, capacity=capacity, excess=[])
    except BadInput as error:
        error.path = child(path, name)
        raise
    if plain in ("cpu", "memory"):
        return plain, cpu if plain == "cpu" else memory
    return plain, scalars.get(plain)
