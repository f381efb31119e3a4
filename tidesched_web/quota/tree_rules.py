"""The sum rules of the quota tree, as pure functions over plain values (cards as counts, cpu in milli, memory in MiB).

Per service type and resource:

- Σ queues ≤ project; Σ projects and queues without a project ≤ tenant;
- Σ **inference** of everybody ≤ hardware × ratio, so that the flood can be served;
- Σ **training** of everybody ≤ hardware × its own ratio. The two sums overlap on purpose: that is the tide.

What "unset" means: a tenant or project without card rows for a service type has no limit of its own, and what stands
below it counts instead; once it has one, an absent card is 0. On a queue an absent card is 0. An absent cpu or memory
figure is no limit anywhere; such a queue adds nothing to the sums above it, since nothing was promised to it.

The rules are **monotone**: an edit may not create or enlarge a breach. After a node is lost the tree is in breach
without an edit, and lowering must still work.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidesched_web.common import ceiling as rounding

CPU: Final = "cpu"
MEMORY: Final = "memory"
_COMPUTE: Final = frozenset({CPU, MEMORY})
ROOT: Final = "cluster"


@dataclass(frozen=True)
class Holder:
    """``key`` is ``kind:id``. A service type that is absent from ``cards`` has no limit."""

    key: str
    name: str
    parent: str = ROOT
    cards: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    compute: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    label: str = ""

    @property
    def title(self) -> str:
        return self.label or self.name

    @property
    def kind(self) -> str:
        return self.key.partition(":")[0]

    def limit(self, service_type: str, resource: str) -> int | None:
        if resource in _COMPUTE:
            return self.compute.get(service_type, {}).get(resource)
        cards = self.cards.get(service_type)
        return None if cards is None else cards.get(resource, 0)


@dataclass(frozen=True)
class Tree:
    """Everything that the rules look at. ``hardware`` holds what is known; an absent resource is not limited by it."""

    holders: Mapping[str, Holder]
    hardware: Mapping[str, int]
    ratios: Mapping[str, float]


@dataclass(frozen=True)
class Breach:
    holder: str
    service_type: str
    resource: str
    requested: int
    limit: int
    largest_child: str

    @property
    def excess(self) -> int:
        return self.requested - self.limit


BreachKey = tuple[str, str, str]


def claims(tree: Tree, service_type: str) -> dict[str, dict[str, dict[str, int]]]:
    children: dict[str, list[Holder]] = defaultdict(list)
    for key in sorted(tree.holders):
        children[tree.holders[key].parent].append(tree.holders[key])
    asked: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))

    def ask(holder: Holder) -> dict[str, int]:
        below: dict[str, int] = defaultdict(int)
        for child in children[holder.key]:
            for resource, figure in ask(child).items():
                asked[holder.key][resource][child.key] = figure
                below[resource] += figure
        cards, compute = holder.cards.get(service_type), holder.compute.get(service_type, {})
        own = {name: figure for name, figure in (below if cards is None else cards).items() if figure}
        for resource in _COMPUTE:
            own.pop(resource, None)
            limit = compute.get(resource)
            if figure := below.get(resource, 0) if limit is None else limit:
                own[resource] = figure
        return own

    for top in children[ROOT]:
        for resource, figure in ask(top).items():
            asked[ROOT][resource][top.key] = figure
    return asked


def breaches(tree: Tree) -> dict[BreachKey, Breach]:
    found: dict[BreachKey, Breach] = {}
    for service_type in sorted(tree.ratios):
        for parent, by_resource in sorted(claims(tree, service_type).items()):
            for resource, by_child in sorted(by_resource.items()):
                limit = ceiling(tree, parent, service_type, resource)
                total = sum(by_child.values())
                if limit is not None and total > limit:
                    largest = max(sorted(by_child), key=lambda child: by_child[child])
                    found[parent, service_type, resource] = Breach(
                        parent, service_type, resource, total, limit, largest
                    )
    return found


def ceiling(tree: Tree, parent: str, service_type: str, resource: str) -> int | None:
    if parent != ROOT:
        return tree.holders[parent].limit(service_type, resource)
    hardware = tree.hardware.get(resource)
    return None if hardware is None else rounding.ceiling(hardware, tree.ratios[service_type])


def room(tree: Tree, service_type: str, *, whole: bool = True) -> dict[str, dict[str, int]]:
    """One with a limit asks for it already; ``whole``: also of the cluster, whose rest tells what all tenants have."""
    asked = claims(tree, service_type)
    cards = {card for holder in tree.holders.values() for card in holder.cards.get(service_type, {})}
    cards = (cards | tree.hardware.keys()) - _COMPUTE
    found: dict[str, dict[str, int]] = {}

    def of(key: str) -> dict[str, int]:
        if key not in found:
            above = {} if key == ROOT else of(tree.holders[key].parent)
            own = {card: ceiling(tree, key, service_type, card) for card in cards} if whole or key != ROOT else {}
            given = {card: sum(asked.get(key, {}).get(card, {}).values()) for card in cards}
            found[key] = {
                card: max(0, limit - given[card]) if limit is not None else above[card]
                for card, limit in own.items()
                if limit is not None or card in above
            }
        return found[key]

    for key in (ROOT, *(key for key, holder in tree.holders.items() if holder.kind != "queue")):
        of(key)
    return found


def worsened(before: Tree, after: Tree) -> list[Breach]:
    found = breaches(after)
    if not found:
        return []
    known = breaches(before)
    worse = []
    for key, breach in found.items():
        earlier = known.get(key)
        if earlier is None or breach.excess > earlier.excess:
            worse.append(breach)
    return worse
