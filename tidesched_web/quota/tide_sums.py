from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidesched_web.quota import tide
from tidesched_web.quota.tide import Amount, Plan
from tidesched_web.quota.tree_rules import ROOT, Breach, BreachKey, Holder, Tree, ceiling, claims

# The position of a plan and of its layer; a queue and one of its cards.
Place = tuple[int, int]
Figure = tuple[str, str]


def queue_holders(tree: Tree) -> dict[str, str]:
    return {holder.name: key for key, holder in tree.holders.items() if holder.kind == "queue"}


def queue_cards(queue: Holder) -> Mapping[str, int]:
    """The base quota of a queue: it has one service type."""
    return next(iter(queue.cards.values()), {})


@dataclass
class _Sum:
    """What the children of a holder ask of it. ``turned``: how many figures below it layers change now."""

    asked: dict[str, int]
    limit: int | None
    total: int
    turned: int = 0

    @property
    def excess(self) -> int:
        return max(0, self.total - self.limit) if self.turned and self.limit is not None else 0


class Sums:
    """A step costs what the layers name that opened or closed since the one before, not what all layers name."""

    def __init__(self, tree: Tree, plans: list[Plan]) -> None:
        self.tree = tree
        self.queues = queue_holders(tree)
        self._asked = {kind: claims(tree, kind) for kind in tree.ratios}
        self._turns: dict[Figure, list[tuple[Place, Amount]]] = defaultdict(list)
        self._named: dict[Place, list[Figure]] = defaultdict(list)
        for place, plan in enumerate(plans):
            for number, layer in enumerate(plan.layers):
                for queue, cards in layer.quota.items():
                    for card, amount in cards.items() if queue in self.queues else ():
                        self._turns[queue, card].append(((place, number), amount))
                        self._named[place, number].append((queue, card))
        self._open: frozenset[Place] = frozenset()
        self._by: dict[Figure, int] = {}
        self._sums: dict[BreachKey, _Sum] = {}
        self._settled: set[BreachKey] = set()
        # The sums that are exceeded now, but for those that are settled.
        self.over: set[BreachKey] = set()

    def step(self, open_now: tide.Open) -> None:
        now = frozenset(open_now)
        changed, self._open = now ^ self._open, now
        for figure in {figure for place in changed for figure in self._named.get(place, ())}:
            self._turn(figure)

    def settle(self, key: BreachKey) -> None:
        self._settled.add(key)
        self.over.discard(key)

    def excess(self, key: BreachKey) -> int:
        found = self._sums.get(key)
        return 0 if found is None else found.excess

    def breach(self, key: BreachKey) -> Breach:
        found = self._sums[key]
        assert found.limit is not None
        largest = max(sorted(found.asked), key=lambda child: found.asked[child])
        return Breach(*key, found.total, found.limit, largest)

    def _turn(self, figure: Figure) -> None:
        queue, card = figure
        key = self.queues[queue]
        base = wanted = queue_cards(self.tree.holders[key]).get(card, 0)
        for place, amount in self._turns[figure]:
            if place in self._open:
                wanted = amount.on(wanted)
        by, earlier = wanted - base, self._by.get(figure, 0)
        if by == earlier:
            return
        self._by[figure] = by
        for above, child in self._chain(key, card):
            found = self._sum(above)
            found.asked[child] = found.asked.get(child, 0) + by - earlier
            found.total += by - earlier
            found.turned += bool(by) - bool(earlier)
            if found.excess and above not in self._settled:
                self.over.add(above)
            else:
                self.over.discard(above)

    def _chain(self, key: str, card: str) -> Iterator[tuple[BreachKey, str]]:
        """The sums above a queue: up to the first holder with a limit of its own, which asks for that instead."""
        kind = next(iter(self.tree.holders[key].cards))
        while True:
            parent = self.tree.holders[key].parent
            yield (parent, kind, card), key
            if parent == ROOT or self.tree.holders[parent].limit(kind, card) is not None:
                return
            key = parent

    def _sum(self, key: BreachKey) -> _Sum:
        if key not in self._sums:
            holder, kind, card = key
            asked = dict(self._asked[kind].get(holder, {}).get(card, {}))
            self._sums[key] = _Sum(asked, ceiling(self.tree, holder, kind, card), sum(asked.values()))
        return self._sums[key]
