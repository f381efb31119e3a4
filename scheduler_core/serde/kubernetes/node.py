"""Node, and the discovery of its cards from labels and allocatable resources.

Source: semantics of capacity-card's discovery, with these departures: a whole card needs the ``.product`` label
alone; it is counted by exactly the resource whose stem the label has (``nvidia.com/gpu`` for
``nvidia.com/gpu.product``), never by another resource of the same vendor; a slice on a node without a product label is
reported, not named ``/mig-…``."""

import math

import msgspec

from scheduler_core.model.cards import CardKind, CardType, NodeCards
from scheduler_core.model.node import Node, Taint
from scheduler_core.model.resources import MAX_CARDS, in_fractions
from scheduler_core.serde.kubernetes.decode import decode, time_at
from scheduler_core.serde.kubernetes.metadata import RawMeta, created, texts
from scheduler_core.serde.kubernetes.quantities import RawResources, read_pod_limit, read_resources, read_volume_limits

_PRODUCT = ".product"
DEFAULT_POD_LIMIT = 110


class RawTaint(msgspec.Struct, gc=False):
    key: str
    value: str | None = None
    effect: str = "NoSchedule"


class RawNodeSpec(msgspec.Struct):
    taints: list[RawTaint] | None = None
    unschedulable: bool | None = None


class RawNodeCondition(msgspec.Struct, rename="camel"):
    """Read for its times alone: a heartbeat is the best sign of when the input was taken."""

    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class RawImage(msgspec.Struct, rename="camel", gc=False):
    names: list[str] | None = None
    size_bytes: int = 0


class RawNodeStatus(msgspec.Struct):
    allocatable: RawResources | None = None
    capacity: RawResources | None = None
    conditions: list[RawNodeCondition] | None = None
    images: list[RawImage] | None = None


class RawNode(msgspec.Struct):
    metadata: RawMeta
    spec: RawNodeSpec | None = None
    status: RawNodeStatus | None = None


class NodeRecord(msgspec.Struct, frozen=True):
    """A node, the card types seen on it, what was left aside, and its latest time."""

    node: Node
    card_types: tuple[CardType, ...]
    warnings: tuple[str, ...]
    latest: float


def read_node(obj: object) -> NodeRecord:
    """Decode one Node. Raises BadInput: with the path below the object."""
    raw = decode(obj, RawNode)
    spec, status = raw.spec or RawNodeSpec(), raw.status or RawNodeStatus()
    field = "capacity" if status.allocatable is None else "allocatable"
    amounts = status.capacity if status.allocatable is None else status.allocatable
    path = f".status.{field}"
    excess: list[str] = []
    cpu, memory, scalars = read_resources(amounts, path, capacity=True, excess=excess)
    pods = read_pod_limit(amounts, path)
    labels = texts(raw.metadata.labels)
    types, cards, others, warnings = discover(raw.metadata.name, labels, scalars)
    born = created(raw.metadata)
    node = Node(
        name=raw.metadata.name,
        uid=raw.metadata.uid,
        created=born,
        labels=labels,
        annotations=texts(raw.metadata.annotations),
        taints=tuple(Taint(t.key, t.value or "", t.effect) for t in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        cpu_milli=cpu or 0,
        memory_mib=memory or 0,
        pods=DEFAULT_POD_LIMIT if pods is None else pods,
        cards=cards,
        scalars=others,
        images={image_name(name): image.size_bytes for image in status.images or () for name in image.names or ()},
        volume_limits=read_volume_limits(amounts, path),
    )
    warnings = (*warnings, *(f"node {node.name}: {text}" for text in excess))
    return NodeRecord(node, types, warnings, _latest(born, status.conditions or []))


def image_name(name: str) -> str:
    """The name with a tag: ``latest`` where none is written."""
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"


def _latest(born: float, conditions: list[RawNodeCondition]) -> float:
    latest = born
    for index, condition in enumerate(conditions):
        path = f".status.conditions[{index}]"
        latest = max(
            latest,
            time_at(condition.last_heartbeat_time, f"{path}.lastHeartbeatTime") or 0.0,
            time_at(condition.last_transition_time, f"{path}.lastTransitionTime") or 0.0,
        )
    return latest


def discover(
    node: str, labels: dict[str, str], scalars: dict[str, int]
) -> tuple[tuple[CardType, ...], tuple[NodeCards, ...], dict[str, int], tuple[str, ...]]:
    """The card types and cards of a node, the scalars that are no cards, and what could not be named."""
    types: list[CardType] = []
    cards: dict[str, NodeCards] = {}
    others = {name: count for name, count in scalars.items() if count > 0}
    warnings: list[str] = []
    for key in sorted(labels):
        if not key.endswith(_PRODUCT) or "/" not in key or "/mig-" in key or not labels[key]:
            continue
        product, device = labels[key], key[: -len(_PRODUCT)]
        slice_prefix = f"{device.split('/', 1)[0]}/mig-"
        for resource in sorted(name for name in others if not in_fractions(name)):
            if resource == device:
                card_type = CardType(name=product, resource=resource)
            elif resource.startswith(slice_prefix):
                profile = resource[len(slice_prefix) :]
                name = f"{product}/mig-{profile}-mixed"
                card_type = CardType(name=name, resource=resource, kind=CardKind.MIG, parent=product)
            elif resource == f"{device}.shared":
                share = _mps_name(product, labels.get(f"{device}.memory"), labels.get(f"{device}.replicas"))
                if share is None:
                    warnings.append(
                        f"node {node}: {resource} is left aside, its shares need whole numbers above zero in the labels"
                        f" {device}.memory and {device}.replicas"
                    )
                    continue
                card_type = CardType(name=share, resource=resource, kind=CardKind.MPS, parent=product)
            else:
                continue
            if card_type.name in cards:
                continue
            if others[resource] > MAX_CARDS:
                warnings.append(f"node {node}: {resource} is left aside, {others.pop(resource)} cards are none")
                continue
            types.append(card_type)
            cards[card_type.name] = NodeCards(card_type.name, resource, others.pop(resource))
    warnings += [
        f"node {node}: {resource} is not counted as cards, no label {resource.split('/', 1)[0]}/….product says which"
        for resource in sorted(others)
        if resource.startswith("nvidia.com/") and not resource.endswith(".shared")
    ]
    return tuple(types), tuple(cards[name] for name in sorted(cards)), others, tuple(warnings)


def _mps_name(product: str, memory_mb: str | None, replicas: str | None) -> str | None:
    try:
        gigabytes, count = math.floor(float(memory_mb or "") / 1024 + 0.5), int(replicas or "")
    except (ValueError, OverflowError):
        return None
    return f"{product}/mps-{gigabytes}g*1/{count}" if gigabytes > 0 and count > 0 else None
