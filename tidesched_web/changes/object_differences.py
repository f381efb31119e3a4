import datetime as dt
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tidesched_web.changes.documents import CLOSED, MIB
from tidesched_web.changes.lending import Uses
from tidesched_web.changes.tree_check import ratios_of, tree_of
from tidesched_web.changes.tree_document import Document, key_of, kind_of, parts_of
from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.common.models import ServiceType
from tidesched_web.quota import tide, tide_rules
from tidesched_web.quota.push_selectors import limits_of

Manifest = dict[str, Any]


@dataclass(frozen=True)
class ObjectDifference:
    kind: str
    name: str
    before: Manifest | None
    after: Manifest | None
    replaced: bool = False

    def as_json(self) -> dict[str, Any]:
        found = {"kind": self.kind, "name": self.name, "before": self.before, "after": self.after}
        return found | ({"replaced": True} if self.replaced else {})


def object_differences(
    before: Mapping[str, Document],
    after: Mapping[str, Document],
    keys: Iterable[str],
    now: dt.datetime,
    counted_by: Mapping[str, str] | None = None,
    *,
    in_use: Uses | None = None,
    hardware: Mapping[str, int] | None = None,
    then: dt.datetime | None = None,
) -> list[ObjectDifference]:
    """A queue gets its effective quota at ``now`` (after: ``then``), held within hardware and tree as the push does."""
    touched = set(keys)
    old_plans, new_plans = _plans(before), _plans(after)
    if any(kind_of(key) == "tide-plan" for key in touched):
        turned = tide.touched([*old_plans, *new_plans])
        touched |= {key_of("queue", name) for name in turned}
    old_grants, new_grants = _granted(before), _granted(after)
    if any(kind_of(key) == "grant" for key in touched):
        named = {parts_of(key)[1] for key in touched if kind_of(key) == "grant"}
        # The first and the last grant of a cluster change what every queue says.
        all_queues = bool(old_grants) != bool(new_grants)
        touched |= {
            key for key in {*before, *after} if kind_of(key) == "queue" and (all_queues or parts_of(key)[0] in named)
        }
    names = {parts_of(key)[0] for key in touched if kind_of(key) == "queue"}
    had_quota, has_quota = (
        _effective(documents, plans, at, in_use or {}, hardware or {}) if names & tide.touched(plans) else {}
        for documents, plans, at in ((before, old_plans, now), (after, new_plans, then or now))
    )
    found = []
    for key in sorted(touched):
        kind, name = kind_of(key), parts_of(key)[0]
        old, new = before.get(key), after.get(key)
        if kind == "queue":
            limits = counted_by or {}
            had = _queue(name, old, old_grants, had_quota, limits) if old else None
            has = _queue(name, new, new_grants, has_quota, limits) if new else None
            difference = ObjectDifference("Queue", name, had, has)
        elif kind == "priority-class":
            had = _class(name, old) if old is not None else None
            has = _class(name, new) if new is not None else None
            replaced = had is not None and has is not None and had["value"] != has["value"]
            difference = ObjectDifference("PriorityClass", name, had, has, replaced)
        else:
            continue
        if difference.before != difference.after:
            found.append(difference)
    return sorted(found, key=lambda difference: (difference.kind, difference.name))


def _granted(documents: Mapping[str, Document]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for key in documents:
        if kind_of(key) == "grant":
            namespace, queue = parts_of(key)
            found[queue].append(namespace)
    return dict(found)


def _plans(documents: Mapping[str, Document]) -> list[tide.Plan]:
    plans = {parts_of(key)[0]: document for key, document in documents.items() if kind_of(key) == "tide-plan"}
    return tide.enabled_plans(plans)


def _effective(
    documents: Mapping[str, Document],
    plans: list[tide.Plan],
    now: dt.datetime,
    in_use: Uses,
    hardware: Mapping[str, int],
) -> dict[str, dict[str, int]]:
    keys = {name: key_of("queue", name) for name in tide.touched(plans)}
    queues = {name: documents[key] for name, key in keys.items() if key in documents}
    floors = {
        name: {card: math.ceil(cards) for card, cards in in_use.get(name, {}).items()}
        for name, queue in queues.items()
        if queue["service_type"] == ServiceType.INFERENCE
    }
    base = {name: queue["card_quota"] for name, queue in queues.items()}
    return tide_rules.effective(base, plans, now, floors, lambda: tree_of(documents, hardware, ratios_of(documents)))


def _queue(
    name: str,
    document: Document,
    grants: Mapping[str, list[str]],
    effective: Mapping[str, Mapping[str, int]],
    counted_by: Mapping[str, str],
) -> Manifest:
    """As the push makes it. A closed queue carries that as its wanted status."""
    card_quota = effective[name] if name in effective else document["card_quota"]
    memory = document.get("memory_bytes")
    manifest = manifests.queue(
        name,
        service_type=document["service_type"],
        weight=document["weight"],
        priority=document["priority"],
        reclaimable=document["reclaimable"],
        card_quota=card_quota,
        limits=limits_of(card_quota, counted_by),
        cpu_milli=document.get("cpu_milli"),
        memory_mib=None if memory is None else memory // MIB,
        parent=document.get("parent", ""),
        deserved=document.get("deserved"),
        guarantee=document.get("guarantee"),
        namespaces=grants.get(name, []) if grants else None,
        labels={
            manifests.TENANT: document.get("tenant", ""),
            manifests.PROJECT: document.get("project", ""),
            manifests.BUSINESS_LINE: document.get("business_line", ""),
        },
    )
    if document["state"] == CLOSED:
        manifest["status"] = {"state": "Closing"}
    return manifest


def _class(name: str, document: Document) -> Manifest:
    return manifests.priority_class(
        name,
        value=document["value"],
        global_default=document["global_default"],
        preemption_policy=document["preemption_policy"],
        description=document.get("description", ""),
    )
