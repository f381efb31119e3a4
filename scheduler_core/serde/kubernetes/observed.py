"""Numatopology (Volcano), NodeMetrics (metrics API) and the labels of Namespaces."""

import msgspec

from scheduler_core.model.errors import BadInput
from scheduler_core.model.observed import Namespace, NodeMetrics, NumaTopology
from scheduler_core.serde.kubernetes.decode import Int32, decode, time_at
from scheduler_core.serde.kubernetes.metadata import RawMeta, Scalar, texts
from scheduler_core.serde.kubernetes.quantities import RawResources, read_resources
from scheduler_core.serde.pointers import child

_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
# More CPUs than any machine has; a range beyond it is a slip that would fill the memory.
_MOST_CPUS = 65_536
_NAME_LABEL = "kubernetes.io/metadata.name"


class RawCpu(msgspec.Struct, gc=False):
    numa: Int32 = 0
    socket: Int32 = 0
    core: Int32 = 0


class RawNumaResource(msgspec.Struct, gc=False):
    allocatable: str = ""
    capacity: Int32 = 0


class RawNumaSpec(msgspec.Struct, rename="camel"):
    policies: dict[str, str] | None = None
    res_reserved: RawResources | None = None
    numares: dict[str, RawNumaResource] | None = None
    cpu_detail: dict[str, RawCpu] | None = None


class RawNuma(msgspec.Struct):
    metadata: RawMeta
    spec: RawNumaSpec | None = None


class RawMetrics(msgspec.Struct):
    metadata: RawMeta
    timestamp: str | None = None
    usage: RawResources | None = None


class RawNamespace(msgspec.Struct):
    metadata: RawMeta


class NamespaceRecord(msgspec.Struct, frozen=True):
    """A namespace with its labels, and its annotations."""

    namespace: Namespace
    annotations: dict[str, str]


def read_numa(obj: object) -> NumaTopology:
    """Decode one Numatopology. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawNuma)
    spec = raw.spec or RawNumaSpec()
    policies = spec.policies or {}
    policy = policies.get("TopologyManagerPolicy") or "none"
    if policy not in _POLICIES:
        raise BadInput(
            "bad_value", f"{policy!r} is not a topology manager policy", path=".spec.policies.TopologyManagerPolicy",
            value=policy, hint=f"one of {', '.join(_POLICIES)}",
        )  # fmt: skip
    detail = {_cpu_number(number): cpu for number, cpu in (spec.cpu_detail or {}).items()}
    reserved, _, _ = read_resources(spec.res_reserved, ".spec.resReserved")
    cpus = (spec.numares or {}).get("cpu")
    return NumaTopology(
        name=raw.metadata.name,
        policy=policy,
        static_cpus=policies.get("CPUManagerPolicy") == "static",
        cells={number: detail[number].numa for number in sorted(detail)},
        cores={number: detail[number].core for number in sorted(detail)},
        sockets={number: detail[number].socket for number in sorted(detail)},
        free=cpu_set(cpus.allocatable, ".spec.numares.cpu.allocatable") if cpus else (),
        reserved_milli=reserved or 0,
    )


def read_metrics(obj: object) -> NodeMetrics:
    """Decode one NodeMetrics. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawMetrics)
    cpu, memory, _ = read_resources(raw.usage, ".usage")
    return NodeMetrics(
        name=raw.metadata.name, at=time_at(raw.timestamp, ".timestamp") or 0.0, cpu_milli=cpu or 0,
        memory_mib=memory or 0,
    )  # fmt: skip


def read_namespace(obj: object) -> NamespaceRecord:
    """Decode one Namespace. As every API server does, the name counts as a label too. Raises BadInput: with the path
    below the object."""
    meta = decode(obj, RawNamespace).metadata
    labels: dict[str, Scalar] = {_NAME_LABEL: meta.name, **(meta.labels or {})}
    return NamespaceRecord(Namespace(name=meta.name, labels=texts(labels)), texts(meta.annotations))


def cpu_set(text: str, path: str) -> tuple[int, ...]:
    """``0-3,8`` to its numbers. Raises BadInput: ``bad_value``."""
    found: dict[int, None] = {}
    for part in text.split(",") if text.strip() else ():
        first, dash, last = part.strip().partition("-")
        low, high = _number(first), _number(last if dash else first)
        if low is None or high is None or not low <= high < _MOST_CPUS:
            raise BadInput("bad_value", f"{part!r} is not a range of CPUs", path=path, value=text, hint="0-3,8")
        found.update(dict.fromkeys(range(low, high + 1)))
    return tuple(sorted(found))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _cpu_number(text: str) -> int:
    number = _number(text)
    if number is None:
        raise BadInput(
            "bad_value", f"{text!r} is not the number of a CPU", path=child(".spec.cpuDetail", text), value=text
        )
    return number
