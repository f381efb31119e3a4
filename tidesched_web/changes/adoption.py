"""The push writes by server-side apply and owns only what it writes: whatever else stands in an object stays."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _

from tidesched_web.changes.documents import MIB, canonical
from tidesched_web.changes.object_differences import object_differences
from tidesched_web.changes.tree_document import Document, key_of
from tidesched_web.clusters.credentials import UNUSABLE, connection_of
from tidesched_web.clusters.kubernetes.client import ApiFailure, KubernetesClient, Unreachable
from tidesched_web.clusters.kubernetes.connection import Connection
from tidesched_web.clusters.kubernetes.manifests import CARD_QUOTA, SERVICE_TYPE
from tidesched_web.clusters.kubernetes.ownership import standing
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.engine.quantities import cpu_milli, memory_mib
from tidesched_web.quota.names import OWN_OF_VOLCANO
from tidesched_web.quota.push_selectors import cards_of_resources, limited_cards


@dataclass(frozen=True)
class Found:
    """``unclear``: resources that count several card types, with these; ``named``: which one a person said is meant."""

    name: str
    manifest: Mapping[str, Any]
    document: Document
    service_type: str = ""
    unread: list[str] = field(default_factory=list)
    gangs: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)
    unclear: Mapping[str, list[str]] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)


def unmanaged(cluster: Cluster, known: Iterable[str]) -> list[Found]:
    """The queues that the cluster has and the tree has not. Asks the cluster."""
    if cluster.disconnected_at is not None:
        raise DomainError("unavailable", _("%(cluster)s is disconnected.") % {"cluster": cluster.name})
    try:
        items = _live_queues(connection_of(cluster))
    except (ApiFailure, Unreachable, *UNUSABLE) as error:
        said = _("%(cluster)s does not say which queues it has: %(problem)s.")
        raise DomainError("unavailable", said % {"cluster": cluster.name, "problem": error}) from None
    managed = {*known, *OWN_OF_VOLCANO}
    counted = cards_of_resources(cluster)
    found = [read(item, counted) for item in items if (item.get("metadata") or {}).get("name") not in managed]
    return sorted(found, key=lambda queue: queue.name)


def _live_queues(connection: Connection) -> list[Any]:
    client = KubernetesClient(connection)
    try:
        return client.get(QUEUE.path()).get("items") or []
    finally:
        client.close()


def read(manifest: Mapping[str, Any], counted: Mapping[str, list[str]] | None = None) -> Found:
    """An ordinary queue has no card quota: its limits of resources are one, as far as each counts one card type."""
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    annotations, status = metadata.get("annotations") or {}, manifest.get("status") or {}
    unread: list[str] = []
    document: Document = {"card_quota": _cards(annotations.get(CARD_QUOTA), unread), "state": "Open"}
    if str(status.get("state") or "Open") in ("Closed", "Closing"):
        document["state"] = "Closed"
    document["weight"] = spec.get("weight") or 1
    if spec.get("priority") is not None:
        document["priority"] = spec["priority"]
    if spec.get("reclaimable") is not None:
        document["reclaimable"] = spec["reclaimable"]
    capability = spec.get("capability") or {}
    for name, target, reader, scale in (
        ("cpu", "cpu_milli", cpu_milli, 1),
        ("memory", "memory_bytes", memory_mib, MIB),
    ):
        if name in capability:
            try:
                document[target] = reader(capability[name]) * scale
            except (ValueError, ArithmeticError):
                unread.append(f"spec.capability.{name}")
    limits = _limits(capability, unread)
    unclear: dict[str, list[str]] = {}
    for resource, count in limits.items() if CARD_QUOTA not in annotations else ():
        cards = (counted or {}).get(resource, [])
        if len(cards) == 1:
            document["card_quota"][cards[0]] = count
        elif cards:
            unclear[resource] = cards
        else:
            unread.append(f"spec.capability.{resource}")
    if spec.get("parent") not in (None, "", "root"):
        document["parent"] = spec["parent"]
    deserved, guarantee = spec.get("deserved"), (spec.get("guarantee") or {}).get("resource")
    for name, amounts in (("deserved", deserved), ("guarantee", guarantee)):
        if amounts:
            document[name] = {key: str(value) for key, value in amounts.items()}
    service_type = annotations.get(SERVICE_TYPE, "")
    if service_type not in ("inference", "training"):
        service_type = "training" if spec.get("reclaimable", True) else "inference"
    gangs = sum(int(status.get(count) or 0) for count in ("pending", "inqueue", "running", "unknown"))
    return Found(str(metadata.get("name")), manifest, document, service_type, unread, gangs, limits, unclear)


def _limits(capability: Mapping[str, Any], unread: list[str]) -> dict[str, int]:
    found = {}
    for resource, value in sorted(capability.items()):
        if "/" in resource:
            try:
                milli = cpu_milli(value)
                if milli % 1000:
                    raise ValueError("parts of cards cannot be promised")
                found[resource] = milli // 1000
            except (ValueError, ArithmeticError, TypeError):
                unread.append(f"spec.capability.{resource}")
    return found


def said(found: Found, resource: str, card: str) -> Found:
    quota = {**found.document["card_quota"], card: found.limits[resource]}
    unclear = {name: cards for name, cards in found.unclear.items() if name != resource}
    named = {**found.named, resource: card}
    return replace(found, document=found.document | {"card_quota": quota}, unclear=unclear, named=named)


def _cards(text: str | None, unread: list[str]) -> dict[str, int]:
    if not text:
        return {}
    try:
        cards = json.loads(text).items()
        whole = {str(name): int(count) for name, count in cards}
        if any(whole[name] != count for name, count in cards):
            raise ValueError("parts of cards cannot be promised")
        return whole
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
        unread.append(f"metadata.annotations[{CARD_QUOTA}]")
        return {}


def adopted(found: Found, *, tenant: str | None, project: str | None, business_line: str | None) -> Document:
    owner = {"tenant": tenant, "project": project, "business_line": business_line}
    service_type = "inference" if project and not business_line else "training"
    owned = found.document | {name: value for name, value in owner.items() if value} | {"service_type": service_type}
    # What is wrong with it the plan says; here it only has to be whole.
    return canonical(key_of("queue", found.name), owned)[0]


@dataclass(frozen=True)
class KeyLine:
    key: str
    before: str
    after: str
    act: str  # stays | same | written | contested


def dry_view(cluster: Cluster, found: Found, document: Document, documents: Mapping[str, Document]) -> list[KeyLine]:
    """Nothing is removed: what is not written stays. Contested: another manager has set it otherwise, and keeps it."""
    key, counted_by = key_of("queue", found.name), limited_cards(cluster)
    (difference,) = object_differences(documents, {**documents, key: document}, [key], cluster.clock(), counted_by)
    manifest = difference.after or {}
    contested = {field.removeprefix(".") for field, _managers in standing(manifest, found.manifest).contested}
    written = dict(_leaves({part: manifest[part] for part in ("metadata", "spec")}))
    live = dict(_leaves({key: found.manifest.get(key) or {} for key in ("metadata", "spec")}))
    hidden = ("metadata.managedFields", "metadata.uid", "metadata.resourceVersion", "metadata.generation")
    lines = []
    for path in sorted({*written, *live}):
        if path.startswith(hidden) or path in ("metadata.name", "metadata.creationTimestamp"):
            continue
        before, after = live.get(path, ""), written.get(path, live.get(path, ""))
        act = "stays" if path not in written else "same" if before == after else "written"
        act = "contested" if path in contested else act
        lines.append(KeyLine(path, before, after, act))
    return sorted(lines, key=lambda line: (("contested", "written", "stays", "same").index(line.act), line.key))


def _leaves(value: Any, at: str = "") -> Iterable[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name in value:
            yield from _leaves(value[name], f"{at}.{name}" if at else str(name))
    elif at:
        yield at, value if isinstance(value, str) else json.dumps(value, sort_keys=True)
