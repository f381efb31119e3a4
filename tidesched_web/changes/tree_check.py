"""Whether edits may be made: references between documents, what is deleted, and the sum rules. Pure functions."""

from __future__ import annotations

import datetime as dt
import difflib
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from tidesched_web.changes.documents import MIB, REPLACE, RULES, SERVICE_TYPES, Fault
from tidesched_web.changes.tree_document import (
    PLATFORM,
    Document,
    Documents,
    key_of,
    kind_of,
    parts_of,
    pointer,
)
from tidesched_web.quota import tide_document
from tidesched_web.quota.tide_rules import first_breaches
from tidesched_web.quota.tree_rules import CPU, MEMORY, ROOT, Breach, Holder, Tree, worsened

_FIELD_OF = {CPU: "cpu_milli", MEMORY: "memory_bytes"}


def references(
    before: Mapping[str, Document],
    after: Mapping[str, Document],
    edits: Mapping[str, Any],
    card_names: Iterable[str],
    *,
    shown: Container[str] = (),
) -> Iterator[Fault]:
    """What an edited document names has to be there, and what is deleted must not be named by anybody.

    Card types that nodes have ``shown`` are there, declared or not.
    """
    cards = {*card_names, *(parts_of(key)[0] for key in after if kind_of(key) == "card-type")}
    deleted = {parts_of(key)[0] for key, patch in edits.items() if kind_of(key) == "card-type" and patch is None}
    cards -= {name for name in deleted if name not in shown}
    for key in sorted(edits):
        document = after.get(key)
        if document is None:
            continue
        yield from _unknown_cards(key, document, cards)
        match kind_of(key):
            case "queue":
                yield from _queue(key, document, after)
            case "project" | "business-line":
                yield from _owned(key, after)
            case "grant":
                yield from _grant(key, after)
            case "card-type":
                yield from _aliases(key, after, cards)
            case "tide-plan":
                queues = {_name(other) for other in after if kind_of(other) == "queue"}
                for fault in tide_document.unknown_names(document, queues, cards):
                    yield Fault(key, fault.field, fault.code, fault.detail)
        if key in before:
            yield from _fixed(key, before[key], document, edits[key])
    gone = {key for key, patch in edits.items() if patch is None and key in before}
    if RULES in gone:
        yield Fault(RULES, "", "invalid", _("The rules of a cluster can be changed, not deleted."))
    gone = {key for key in gone if kind_of(key) != "card-type" or parts_of(key)[0] not in shown}
    if gone:
        yield from _still_named(gone, after)


def _queue(key: str, document: Document, after: Mapping[str, Document]) -> Iterator[Fault]:
    """An inference queue has a project, a training queue a business line; a project may come with it."""
    tenant, project, line = (document.get(name) for name in ("tenant", "project", "business_line"))
    service_type = document.get("service_type")
    if service_type == "inference":
        if not tenant:
            yield Fault(key, "/tenant", "required", _("An inference queue belongs to a tenant."))
        if not project:
            yield Fault(key, "/project", "required", _("An inference queue belongs to a project."))
        if line:
            yield Fault(key, "/business_line", "invalid", _("A business line is for training queues."))
    elif service_type == "training" and not line:
        yield Fault(key, "/business_line", "required", _("A training queue belongs to a business line."))
    if tenant and key_of("tenant", tenant) not in after:
        yield _missing(key, "/tenant", "tenant", tenant, after)
        return
    if project and key_of("project", tenant, project) not in after:
        yield _missing(key, "/project", "project", f"{tenant or PLATFORM}/{project}", after)
    if line and service_type == "training" and key_of("business-line", tenant, line) not in after:
        yield _missing(key, "/business_line", "business-line", f"{tenant or PLATFORM}/{line}", after)


def _owned(key: str, after: Mapping[str, Document]) -> Iterator[Fault]:
    tenant = parts_of(key)[0]
    platform = kind_of(key) == "business-line" and tenant == PLATFORM
    if not platform and key_of("tenant", tenant) not in after:
        yield _missing(key, "", "tenant", tenant, after)


def _grant(key: str, after: Mapping[str, Document]) -> Iterator[Fault]:
    queue = parts_of(key)[1]
    if key_of("queue", queue) not in after:
        yield _missing(key, "", "queue", queue, after)


def _aliases(key: str, after: Mapping[str, Document], cards: set[str]) -> Iterator[Fault]:
    """A name means one card type."""
    own = parts_of(key)[0]
    taken = {
        alias: parts_of(other)[0]
        for other, document in after.items()
        if kind_of(other) == "card-type" and other != key
        for alias in document.get("aliases", [])
    }
    if own in taken:
        said = _("%(name)s is another name of %(card)s.") % {"name": own, "card": taken[own]}
        yield Fault(key, "", "name_taken", said, sibling=key_of("card-type", taken[own]))
    for alias in after[key].get("aliases", []):
        owner = alias if alias in cards else taken.get(alias)
        if owner is not None:
            said = (
                _("%(name)s is the name of a card type already.")
                if alias in cards
                else _("%(name)s is another name of %(card)s.")
            )
            yield Fault(key, "/aliases", "name_taken", said % {"name": alias, "card": owner})


def _missing(key: str, field: str, kind: str, name: str, after: Mapping[str, Document]) -> Fault:
    known = [other.partition("/")[2] for other in after if kind_of(other) == kind]
    near = difflib.get_close_matches(name[:253], known, n=1)
    said = _("There is no %(kind)s %(name)s.") % {"kind": kind.replace("-", " "), "name": name}
    if near:
        said += " " + _("Did you mean %(near)s?") % {"near": near[0]}
    return Fault(key, field, "unknown_reference", said)


def _card_maps(document: Document) -> Iterator[tuple[str, Mapping[str, int]]]:
    if "card_quota" in document:
        yield "/card_quota", document["card_quota"]
    for service_type, limits in document.get("quota", {}).items():
        yield pointer("quota", service_type, "card_quota"), limits.get("card_quota", {})


def _unknown_cards(key: str, document: Document, cards: set[str]) -> Iterator[Fault]:
    for field, counts in _card_maps(document):
        for name in counts:
            if name not in cards:
                near = difflib.get_close_matches(name[:253], sorted(cards), n=1)
                said = _("This cluster has no card type %(name)s.") % {"name": name}
                if near:
                    said += " " + _("Did you mean %(near)s?") % {"near": near[0]}
                yield Fault(key, field + pointer(name), "unknown_card", said)


def _fixed(key: str, before: Document, document: Document, patch: Any) -> Iterator[Fault]:
    kind = kind_of(key)
    if kind == "queue" and document.get("service_type") != before["service_type"]:
        said = _("The service type of a queue stays: its gangs were admitted under it. Make another queue.")
        yield Fault(key, "/service_type", "immutable", said)
    if kind == "priority-class" and document.get("value") != before["value"] and not patch.get(REPLACE):
        said = _("Kubernetes cannot edit the value of a live class. Replacing it is an act of its own: say replace.")
        yield Fault(key, "/value", "replace_needed", said)


def _still_named(gone: set[str], after: Mapping[str, Document]) -> Iterator[Fault]:
    """What is deleted although a document that stays names it; one fault for each, with the first names."""
    namers: dict[str, list[str]] = defaultdict(list)
    lost_cards = {parts_of(key)[0]: key for key in gone if kind_of(key) == "card-type"}
    for key, document in after.items():
        for other in _named_by(key, document):
            if other in gone:
                namers[other].append(key)
        if lost_cards:
            named = {name for _field, counts in _card_maps(document) for name in counts}
            if kind_of(key) == "card-type":
                named.add(document.get("parent", ""))
            for name in named & lost_cards.keys():
                namers[lost_cards[name]].append(key)
    for key, found in sorted(namers.items()):
        names = ", ".join(found[:3]) + (" …" if len(found) > 3 else "")
        said = _("%(count)d objects depend on it: %(names)s.") % {"count": len(found), "names": names}
        yield Fault(key, "", "in_use", said, in_use=len(found), sibling=found[0])


def _named_by(key: str, document: Document) -> Iterator[str]:
    kind = kind_of(key)
    if kind == "queue":
        tenant = document.get("tenant")
        if tenant:
            yield key_of("tenant", tenant)
        if "project" in document:
            yield key_of("project", tenant, document["project"])
        if "business_line" in document:
            yield key_of("business-line", tenant, document["business_line"])
    elif kind in ("project", "business-line"):
        yield key_of("tenant", parts_of(key)[0])
    elif kind == "grant":
        yield key_of("queue", parts_of(key)[1])
    elif kind == "tide-plan":
        yield from sorted({key_of("queue", queue) for layer in document["layers"] for queue in layer["quota"]})


def drained(edits: Mapping[str, Any], live_gangs: Mapping[str, int]) -> Iterator[Fault]:
    """A queue closes, drains, then goes: none is deleted while it has gangs."""
    for key, patch in sorted(edits.items()):
        count = live_gangs.get(parts_of(key)[0], 0) if patch is None and kind_of(key) == "queue" else 0
        if count:
            said = _("It still has %(count)d gangs. Close it and delete it when they have ended.")
            yield Fault(key, "", "not_drained", said % {"count": count}, in_use=count)


# -- the sum rules -----------------------------------------------------------------------------------------------------


def tree_of(
    documents: Mapping[str, Document],
    hardware: Mapping[str, int],
    ratios: Mapping[str, float],
    *,
    known: tuple[Mapping[str, Document], Tree] | None = None,
) -> Tree:
    """The documents as the rules of the quota tree look at them; O(documents × cards).

    ``known``: other documents with their tree; what is the same object in both is not looked at again.
    """
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
            )
        else:
            continue
        holders[holder.key] = holder
    return Tree(holders, hardware, ratios)


def ratios_of(documents: Mapping[str, Document]) -> dict[str, float]:
    """How much of the hardware each service type may be promised."""
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
    in_use: Mapping[str, Mapping[str, float]],
    now: dt.datetime,
) -> list[Fault]:
    """Sums that the edits push, or push further, beyond what is there; one fault at each figure that did it.

    Where the base holds, the moments that the tide plans make in the year after ``now`` are looked at too.
    """
    old = tree_of(before, hardware, ratios_of(before))
    new = tree_of(after, hardware, ratios_of(after), known=(before, old))
    faults: list[Fault] = []
    below = _Below(new)
    for breach in worsened(old, new):
        faults += _at_figures(breach, old, new, below, in_use)
    return faults or list(_at_moments(before, after, old, new, below, in_use, now))


def _at_moments(
    before: Mapping[str, Document],
    after: Mapping[str, Document],
    old: Tree,
    new: Tree,
    below: _Below,
    in_use: Mapping[str, Mapping[str, float]],
    now: dt.datetime,
) -> Iterator[Fault]:
    """Breaches under open layers: at the edited plan, else at the figures of the base that cause them."""
    plans = [
        {_name(key): document for key, document in documents.items() if kind_of(key) == "tide-plan"}
        for documents in (before, after)
    ]
    if not plans[1]:
        return
    for found in first_breaches(old, new, *plans, now=now):
        breach, key = found.breach, key_of("tide-plan", found.plan)
        if before.get(key) != after.get(key):
            yield Fault(
                key,
                "/layers",
                "exceeds_at_moment",
                found.sentence(),
                requested=breach.requested,
                limit=breach.limit,
                sibling=_sibling(new, below, breach, []),
            )
        else:
            for fault in _at_figures(breach, old, new, below, in_use):
                yield replace(fault, code="exceeds_at_moment", detail=found.sentence())


def _at_figures(
    breach: Breach, old: Tree, new: Tree, below: _Below, in_use: Mapping[str, Mapping[str, float]]
) -> list[Fault]:
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
    return [
        Fault(
            object=_key(new.holders[key]),
            field=_field(new.holders[key], kind, resource),
            code=_code(key, own),
            detail=_sentence(breach, own, scale),
            requested=breach.requested * scale,
            limit=breach.limit * scale,
            in_use=_in_use(new, below, key, kind, resource, in_use),
            sibling=sibling,
        )
        for key in at
    ]


def _beyond_ratio(breach: Breach, tree: Tree, below: _Below) -> Fault:
    """Less of the hardware may be promised than is."""
    scale = MIB if breach.resource == MEMORY else 1
    return Fault(
        object=RULES,
        field=pointer(f"overcommit_{breach.service_type}_percent"),
        code="below_children",
        detail=_sentence(breach, None, scale),
        requested=breach.requested * scale,
        limit=breach.limit * scale,
        sibling=_sibling(tree, below, breach, []),
    )


class _Below:
    """Who stands below whom in one tree. Made once: a file may bring thousands of breaches of thousands of queues."""

    def __init__(self, tree: Tree) -> None:
        self._children: dict[str, list[str]] = defaultdict(list)
        self._place = {key: number for number, key in enumerate(tree.holders)}
        for key, holder in tree.holders.items():
            self._children[holder.parent].append(key)

    def of(self, holder: str) -> list[str]:
        """All holders below one, in the order of the tree; O(those)."""
        found, level = [], self._children.get(holder, [])
        while level:
            found += level
            level = [child for key in level for child in self._children.get(key, [])]
        return sorted(found, key=self._place.__getitem__)


def _figure(tree: Tree, key: str, service_type: str, resource: str) -> float:
    """A holder's own figure; no limit counts as nothing, since then its children are counted."""
    holder = tree.holders.get(key)
    limit = holder.limit(service_type, resource) if holder else None
    return limit or 0


def _tighter(old: Holder | None, new: Holder, service_type: str, resource: str) -> bool:
    """Whether a holder hands out less than before; no limit is the most."""
    limit, earlier = new.limit(service_type, resource), old.limit(service_type, resource) if old else None
    return limit is not None and (earlier is None or limit < earlier)


def _field(holder: Holder, service_type: str, resource: str) -> str:
    name = [_FIELD_OF[resource]] if resource in _FIELD_OF else ["card_quota", resource]
    return pointer(*name) if holder.kind == "queue" else pointer("quota", service_type, *name)


def _code(key: str, own: Holder | None) -> str:
    if own is None:
        return "exceeds_hardware"
    return "below_children" if key == own.key else f"exceeds_{own.kind}"


def _sentence(breach: Breach, own: Holder | None, scale: int) -> str:
    whose = _key(own) if own else _("the hardware of the cluster")
    said = _("%(resource)s: %(service_type)s asks for %(requested)s in sum, but %(whose)s has %(limit)s.")
    return said % {
        "resource": breach.resource,
        "service_type": breach.service_type,
        "requested": breach.requested * scale,
        "whose": whose,
        "limit": breach.limit * scale,
    }


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


def _in_use(
    tree: Tree, below: _Below, key: str, service_type: str, resource: str, in_use: Mapping[str, Mapping[str, float]]
) -> float | None:
    """Cards in use now in a holder; unknown (None) for cpu and memory."""
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
