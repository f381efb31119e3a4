"""Dominant resource fairness over a tree of queues (H-DRF): who is served next, level by level.

A node's share is made of its children as if all that still want something were scaled down to the poorest of them;
children that can get nothing more count as they are. Shares are rounded to nine decimals after a sum that is rounded
once, so that they come out the same on every processor and in every order.
Source: volcano-semantics 4.4 (hierarchy)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

_DECIMALS = 9


class Leaf:
    """A gang: what it holds and what it asks for in all, by row."""

    __slots__ = ("held", "wanted")

    def __init__(self, held: list[int], wanted: list[int]) -> None:
        self.held, self.wanted = held, wanted


class Node:
    """A place in the tree, with a weight against its siblings."""

    __slots__ = ("children", "held", "leaves", "saturated", "share", "weight")

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.children: dict[str, Node] = {}
        self.leaves: dict[int, Leaf] = {}
        self.held: list[float] = []
        self.share, self.saturated = 0.0, True


Key = tuple[bool, float]


class CommonLevels:
    """The key of a queue that is compared only as deep as the other one's goes; below that both are equal. No total
    order where paths have different lengths: upstream's ``compatibility: volcano`` alone sorts by it."""

    __slots__ = ("levels",)

    def __init__(self, levels: tuple[Key, ...]) -> None:
        self.levels = levels

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CommonLevels) and self._cut(other) == other._cut(self)

    def __lt__(self, other: CommonLevels) -> bool:
        return self._cut(other) < other._cut(self)

    __hash__ = None  # type: ignore[assignment]  # equal is not the same here

    def _cut(self, other: CommonLevels) -> tuple[Key, ...]:
        return self.levels[: len(other.levels)]


class ShareTree:
    """The tree of all queues with their gangs. ``total``: what there is, by row."""

    def __init__(self, total: Sequence[int]) -> None:
        self._total = list(total)
        self._root = Node(1)
        self._paths: dict[int, tuple[Node, ...]] = {}
        self._used = [0] * len(self._total)
        self._full: list[bool] = []
        self._changed: set[int] = set()

    def add_queue(self, queue: int, path: Iterable[tuple[str, float]]) -> None:
        """Put a queue at a path of (name, weight) below the root; the first weight that is given for a place counts."""
        node, nodes = self._root, [self._root]
        for name, weight in path:
            if name not in node.children:
                node.children[name] = Node(weight)
            node = node.children[name]
            nodes.append(node)
        self._paths[queue] = tuple(nodes)

    def set_gang(self, queue: int, gang: int, held: Sequence[int], wanted: Sequence[int]) -> None:
        """What a gang of a queue holds, and asks for in all."""
        leaves = self._paths[queue][-1].leaves
        before = leaves.get(gang)
        if before is not None:
            self._used = [a - b for a, b in zip(self._used, before.held, strict=True)]
        leaves[gang] = Leaf(list(held), list(wanted))
        self._changed.add(queue)
        self._used = [a + b for a, b in zip(self._used, held, strict=True)]

    def settle(self) -> None:
        """Bring shares up to date; O(gangs on the paths that changed), all of them when a resource runs out."""
        full = [used >= total for used, total in zip(self._used, self._total, strict=True)]
        if full != self._full:
            self._full = full
            self._settle_below(self._root)
        else:
            for queue in sorted(self._changed):
                for node in reversed(self._paths[queue]):
                    self._combine(node)
        self._changed.clear()

    def key(self, queue: int) -> tuple[Key, ...]:
        """Sort key of a queue: per level, those that can still be served first, then share by weight."""
        return tuple((node.saturated, round(node.share / node.weight, _DECIMALS)) for node in self._paths[queue])

    def before(self, queue: int, other: int) -> bool:
        """Whether a queue is served before another one for its share: on the levels that both have, ties are none."""
        return CommonLevels(self.key(queue)) < CommonLevels(self.key(other))

    def _settle_below(self, node: Node) -> None:
        for child in node.children.values():
            self._settle_below(child)
        self._combine(node)

    def _combine(self, node: Node) -> None:
        parts: list[tuple[float, bool, Sequence[float]]] = [
            (self._share(leaf.held), _saturated(leaf, self._full), leaf.held) for leaf in node.leaves.values()
        ]
        parts += [(child.share, child.saturated, child.held) for child in node.children.values()]
        hungry = [share for share, saturated, _ in parts if share > 0 and not saturated]
        least = min(hungry, default=1.0)
        scaled = [
            [amount if saturated else amount * (least / share) for amount in held]
            for share, saturated, held in parts
            if share > 0
        ]
        node.held = [math.fsum(column) for column in zip(*scaled, strict=True)] or [0.0] * len(self._total)
        node.share = self._share(node.held)
        node.saturated = all(saturated for _, saturated, _ in parts)

    def _share(self, held: Sequence[float]) -> float:
        parts = ((h / t if t else 1.0) for h, t in zip(held, self._total, strict=True) if h > 0)
        return round(max(parts, default=0.0), _DECIMALS)


def _saturated(leaf: Leaf, full: list[bool]) -> bool:
    """It has all of something that it asks for, or something that it asks for is used up."""
    return any(
        wanted > 0 and (0 < held >= wanted or used_up)
        for held, wanted, used_up in zip(leaf.held, leaf.wanted, full, strict=True)
    )


def read_path(text: str, weights: str) -> tuple[tuple[str, float], ...]:
    """``root/sci/dev`` with ``1/2/8`` as (name, weight) below the root. Raises ValueError: they do not fit each other,
    do not start at the root, or a weight is no number above zero."""
    names = [name.strip() for name in text.split("/")]
    numbers = [_weight(part.strip(), weights) for part in weights.split("/")]
    if names[0] != "root" or not all(names):
        raise ValueError(f"{text!r} is not a path from the root; write for example 'root/sci/dev'")
    if len(numbers) != len(names):
        raise ValueError(f"{weights!r} has {len(numbers)} weights for the {len(names)} names of {text!r}")
    return tuple(zip(names[1:], numbers[1:], strict=True))


def _weight(text: str, weights: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise ValueError(f"{weights!r}: {text!r} is not a number above zero")
    return number
