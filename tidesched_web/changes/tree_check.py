from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tidesched_web.changes.documents import MIB, RULES, SERVICE_TYPES, Fault
from tidesched_web.changes.lending import Spare, Uses, above_text, lending
from tidesched_web.changes.tree_document import Document, Documents, key_of, kind_of, parts_of, pointer
from tidesched_web.common.errors import MOST_ERRORS
from tidesched_web.quota.tide_rules import first_breaches
from tidesched_web.quota.tree_rules import CPU, MEMORY, ROOT, Breach, Holder, Tree, worsened
from tidesched_web.quota.tree_words import excess_text, give_way_text

_FIELD_OF = {CPU: "cpu_milli", MEMORY: "memory_bytes"}


def tree_of(
    documents: Mapping[str, Document],
    hardware: Mapping[str, int],
    ratios: Mapping[str, float],
    *,
    known: tuple[Mapping[str, Document], Tree] | None = None,
) -> Tree:
    """``known``: other documents with their tree; what is the same object in both is not looked at again."""
    holders: dict[str, Holder] = {}
    others, other = known or ({}, None)
    for key, document in documents.items():
        if other is not None and others.get(key) is document:
            if same := other.holders.get(_holder(key)):
                holders[same.key] = same
            continue
        kind = kind_of(key)
        if kind == "queue":
            service_type = document["service_type"]
            cards = {service_type: document["card_quota"]}
            holder = Holder(_holder(key), _name(key), _parent(document), cards, {service_type: _compute(document)})
        elif kind in ("tenant", "project"):
            quota = document["quota"]
            holder = Holder(
                _holder(key),
                _name(key),
                ROOT if kind == "tenant" else f"tenant:{parts_of(key)[0]}",
                {name: limits["card_quota"] for name, limits in quota.items() if "card_quota" in limits},
                {name: _compute(limits) for name, limits in quota.items()},
                document.get("name", ""),
            )
        else:
            continue
        holders[holder.key] = holder
    return Tree(holders, hardware, ratios)


def ratios_of(documents: Mapping[str, Document]) -> dict[str, float]:
    rules = documents.get(RULES, {})
    return {kind: rules.get(f"overcommit_{kind}_percent", 100) / 100 for kind in SERVICE_TYPES}


def _holder(key: str) -> str:
    kind, _slash, name = key.partition("/")
    return f"{kind}:{name}"


def _name(key: str) -> str:
    return key.partition("/")[2]


def _key(holder: Holder) -> str:
    return f"{holder.kind}/{holder.name}"


def _parent(queue: Document) -> str:
    tenant, project = queue.get("tenant"), queue.get("project")
    if tenant and project:
        return f"project:{tenant}/{project}"
    return f"tenant:{tenant}" if tenant else ROOT


def _compute(figures: Mapping[str, Any]) -> dict[str, int]:
    found = {}
    if "cpu_milli" in figures:
        found[CPU] = figures["cpu_milli"]
    if "memory_bytes" in figures:
        found[MEMORY] = figures["memory_bytes"] // MIB
    return found


def breaches(
    before: Mapping[str, Document],
    after: Mapping[str, Document],
    *,
    hardware: Mapping[str, int],
    in_use: Uses,
    now: dt.datetime,
) -> list[Fault]:
    """Sums that the edits push beyond what is there, now and in the year that the tide plans make."""
    old = tree_of(before, hardware, ratios_of(before))
    new = tree_of(after, hardware, ratios_of(after), known=(before, old))
    faults: list[Fault] = []
    below, spare = _Below(new), Spare(new, in_use)
    for number, breach in enumerate(worsened(old, new)):
        faults += _at_figures(breach, old, new, below, in_use, spare if number < MOST_ERRORS else None)
    return faults or list(_at_moments(before, after, old, new, below, in_use, spare, now))


def _at_moments(
    before: Mapping[str, Document],
    after: Mapping[str, Document],
    old: Tree,
    new: Tree,
    below: _Below,
    in_use: Uses,
    spare: Spare,
    now: dt.datetime,
) -> Iterator[Fault]:
    """Breaches under open layers: at the edited plan, else at the figures of the base that cause them."""
    plans = [
        {_name(key): document for key, document in documents.items() if kind_of(key) == "tide-plan"}
        for documents in (before, after)
    ]
    if not plans[1]:
        return
    for number, found in enumerate(first_breaches(old, new, *plans, now=now)):
        breach, key = found.breach, key_of("tide-plan", found.plan)
        helper = spare if number < MOST_ERRORS else None
        if before.get(key) != after.get(key):
            yield Fault(
                key,
                "/layers",
                "exceeds_at_moment",
                found.sentence(),
                requested=breach.requested,
                limit=breach.limit,
                sibling=_sibling(new, below, breach, []),
                of_all=breach.holder == ROOT,
                **(lending(helper, found, plans[1]) if helper else {}),
            )
        else:
            for fault in _at_figures(breach, old, new, below, in_use, helper):
                yield replace(fault, code="exceeds_at_moment", detail=found.sums(), plans=found.opened())


def _at_figures(breach: Breach, old: Tree, new: Tree, below: _Below, in_use: Uses, spare: Spare | None) -> list[Fault]:
    """The edited figures below (or of) the breached holder; where only structure moved, the holders that moved."""
    kind, resource = breach.service_type, breach.resource
    keys = below.of(breach.holder)
    raised = [key for key in keys if _figure(new, key, kind, resource) > _figure(old, key, kind, resource)]
    moved = [key for key in keys if key not in old.holders or old.holders[key].parent != new.holders[key].parent]
    own = new.holders.get(breach.holder)
    lowered = own is not None and _tighter(old.holders.get(own.key), own, kind, resource)
    if own is None and not raised and not moved and old.ratios[kind] > new.ratios[kind]:
        return [_beyond_ratio(breach, new, below)]
    at = raised or moved or ([breach.holder] if lowered else []) or [breach.largest_child]
    if lowered and own is not None and own.key not in at:
        at.append(own.key)
    scale = MIB if resource == MEMORY else 1
    sibling = _sibling(new, below, breach, at)
    remedy: tuple[str, tuple[str, ...]] = "", ()
    if sibling is not None:
        remedy = _give_way(new, below, breach, sibling, in_use), (sibling,)
    elif own is not None and resource not in _FIELD_OF and spare is not None:
        remedy = above_text(spare, own, breach)
    return [
        Fault(
            object=_key(new.holders[key]),
            field=_field(new.holders[key], kind, resource),
            code=_code(key, own),
            detail=excess_text(breach, own.title if own else ""),
            requested=breach.requested * scale,
            limit=breach.limit * scale,
            in_use=_in_use(new, below, key, kind, resource, in_use),
            sibling=sibling,
            remedy=remedy[0],
            remedy_names=remedy[1],
            of_all=own is None,
        )
        for key in at
    ]


def _beyond_ratio(breach: Breach, tree: Tree, below: _Below) -> Fault:
    scale = MIB if breach.resource == MEMORY else 1
    return Fault(
        object=RULES,
        field=pointer(f"overcommit_{breach.service_type}_percent"),
        code="below_children",
        detail=excess_text(breach, ""),
        requested=breach.requested * scale,
        limit=breach.limit * scale,
        sibling=_sibling(tree, below, breach, []),
        of_all=True,
    )


class _Below:
    def __init__(self, tree: Tree) -> None:
        self._children: dict[str, list[str]] = defaultdict(list)
        self._place = {key: number for number, key in enumerate(tree.holders)}
        for key, holder in tree.holders.items():
            self._children[holder.parent].append(key)

    def of(self, holder: str) -> list[str]:
        found, level = [], self._children.get(holder, [])
        while level:
            found += level
            level = [child for key in level for child in self._children.get(key, [])]
        return sorted(found, key=self._place.__getitem__)


def _figure(tree: Tree, key: str, service_type: str, resource: str) -> float:
    holder = tree.holders.get(key)
    limit = holder.limit(service_type, resource) if holder else None
    return limit or 0


def _tighter(old: Holder | None, new: Holder, service_type: str, resource: str) -> bool:
    limit, earlier = new.limit(service_type, resource), old.limit(service_type, resource) if old else None
    return limit is not None and (earlier is None or limit < earlier)


def _field(holder: Holder, service_type: str, resource: str) -> str:
    name = [_FIELD_OF[resource]] if resource in _FIELD_OF else ["card_quota", resource]
    return pointer(*name) if holder.kind == "queue" else pointer("quota", service_type, *name)


def _code(key: str, own: Holder | None) -> str:
    if own is None:
        return "exceeds_hardware"
    return "below_children" if key == own.key else f"exceeds_{own.kind}"


def _give_way(tree: Tree, below: _Below, breach: Breach, sibling: str, in_use: Uses) -> str:
    key = sibling.replace("/", ":", 1)
    used = _in_use(tree, below, key, breach.service_type, breach.resource, in_use)
    if used is None:
        return ""
    figure = _figure(tree, key, breach.service_type, breach.resource)
    return give_way_text(tree.holders[key].title, breach.resource, figure, used)


def _sibling(tree: Tree, below: _Below, breach: Breach, at: list[str]) -> str | None:
    """Who could give way: the largest claim under the same ceiling that has nothing to do with the edited figures."""
    spared: set[str] = set()
    for key in at:
        above = key
        while above in tree.holders and above not in spared:
            spared.add(above)
            above = tree.holders[above].parent
    best: tuple[float, str] = (0, "")
    for key in below.of(breach.holder):
        figure = _figure(tree, key, breach.service_type, breach.resource)
        if key not in spared and figure and _claims(tree, key, breach):
            best = max(best, (figure, key))
    return _key(tree.holders[best[1]]) if best[1] else None


def _claims(tree: Tree, key: str, breach: Breach) -> bool:
    """Whether a figure counts at the breached holder itself: no holder in between has a ceiling of its own."""
    above = tree.holders[key].parent
    while above != breach.holder:
        if tree.holders[above].limit(breach.service_type, breach.resource) is not None:
            return False
        above = tree.holders[above].parent
    return True


def _in_use(tree: Tree, below: _Below, key: str, service_type: str, resource: str, in_use: Uses) -> float | None:
    if resource in _FIELD_OF:
        return None
    queues = [key] if key.startswith("queue:") else [name for name in below.of(key) if name.startswith("queue:")]
    return sum(
        in_use.get(name.partition(":")[2], {}).get(resource, 0.0)
        for name in queues
        if service_type in tree.holders[name].cards
    )


def completed(before: Documents, edits: Mapping[str, Any]) -> dict[str, Any]:
    """Edits with what goes along: the grants of a queue that is deleted."""
    gone = {parts_of(key)[0] for key, patch in edits.items() if patch is None and kind_of(key) == "queue"}
    if not gone:
        return dict(edits)
    grants = [key for key in before if kind_of(key) == "grant" and parts_of(key)[1] in gone]
    return {**edits, **dict.fromkeys(grants)}
