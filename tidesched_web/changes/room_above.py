"""Ceilings rise with the queue; what cannot rise is found below: the queue that leaves most of its card quota unused
gives way. What is promised to admitted gangs is not unused; cpu and memory are not taken, since their use is not
known.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidesched_web.changes.documents import MIB
from tidesched_web.changes.lending import object_key
from tidesched_web.changes.selectors import Surroundings, TreeReading
from tidesched_web.changes.tree_check import ratios_of, tree_of
from tidesched_web.changes.tree_document import Edits, merge_patch, merged
from tidesched_web.common.permissions import Access
from tidesched_web.quota.tree_rules import CPU, MEMORY, ROOT, Breach, Tree, breaches, worsened

# A queue, its project, its tenant: so often something may have to be raised above what was raised.
_LEVELS = 3


@dataclass(frozen=True, slots=True)
class Room:
    edits: Edits
    raised: tuple[str, ...]
    gives: tuple[str, ...]


def with_room_above(reading: TreeReading, around: Surroundings, edits: Mapping[str, Any], access: Access) -> Room:
    """Raise each ceiling above the edited figures by just what they need, as far as the caller may."""
    ratios, found, raised, gives = ratios_of(reading.documents), dict(edits), list[str](), list[str]()
    before = tree_of(reading.documents, around.hardware, ratios)

    def now() -> Tree:
        after = merged(reading.documents, found)
        return tree_of(after, around.hardware, ratios, known=(reading.documents, before))

    def put(holder: str, service_type: str, resource: str, figure: int) -> None:
        key = object_key(holder)
        found[key] = merge_patch(found.get(key, {}), _patch(holder, service_type, resource, figure))

    for _level in range(_LEVELS):
        for breach in worsened(before, now()):
            if _may_raise(breach.holder, access):
                put(breach.holder, breach.service_type, breach.resource, breach.requested)
                raised.append(object_key(breach.holder))
    stood = breaches(before)
    for breach in worsened(before, now()):
        if breach.holder == ROOT and not access.administers:
            continue
        earlier = stood.get((breach.holder, breach.service_type, breach.resource))
        more = breach.excess - (earlier.excess if earlier else 0)
        tree = now()
        queue = _unused(tree, breach, more, {key.replace("/", ":", 1) for key in edits}, around)
        if queue is None:
            continue
        gives.append(object_key(queue))
        for holder in (queue, *_above(tree, queue, breach.holder)):
            limit = tree.holders[holder].limit(breach.service_type, breach.resource)
            if limit is not None:
                put(holder, breach.service_type, breach.resource, limit - more)
    edited = {key: patch for key, patch in found.items() if key in edits or _differs(reading.documents[key], patch)}
    names = tuple(dict.fromkeys(key for key in raised if key in edited))
    return Room(edited, names, tuple(dict.fromkeys(gives)))


def _may_raise(holder: str, access: Access) -> bool:
    return holder != ROOT and (access.administers or not holder.startswith("tenant:"))


def _unused(tree: Tree, breach: Breach, more: int, edited: set[str], around: Surroundings) -> str | None:
    if breach.resource in (CPU, MEMORY):
        return None
    own = {above for key in edited for above in _above(tree, key, breach.holder)}
    best: tuple[bool, int, str] | None = None
    for key, holder in tree.holders.items():
        if holder.kind != "queue" or key in edited or not holder.limit(breach.service_type, breach.resource):
            continue
        above = _above(tree, key, ROOT)
        if breach.holder != ROOT and breach.holder not in above:
            continue
        taken = (use.get(holder.name, {}).get(breach.resource, 0.0) for use in (around.in_use, around.promised))
        used = math.ceil(sum(taken))
        spare = (holder.limit(breach.service_type, breach.resource) or 0) - used
        # Within the same project or tenant before others.
        one = (not own.isdisjoint(above), spare, key)
        if spare >= more and (best is None or one > best):
            best = one
    return best[2] if best else None


def _above(tree: Tree, key: str, top: str) -> tuple[str, ...]:
    found: list[str] = []
    holder = tree.holders[key].parent if key in tree.holders else ROOT
    while holder not in (top, ROOT):
        found.append(holder)
        holder = tree.holders[holder].parent
    return tuple(found)


def _differs(document: Mapping[str, Any], patch: Any) -> bool:
    return bool(merge_patch(document, patch) != document)


def _patch(holder: str, service_type: str, resource: str, figure: int) -> dict[str, Any]:
    if resource == CPU:
        limits: dict[str, Any] = {"cpu_milli": figure}
    elif resource == MEMORY:
        limits = {"memory_bytes": figure * MIB}
    else:
        limits = {"card_quota": {resource: figure}}
    return limits if holder.startswith("queue:") else {"quota": {service_type: limits}}
