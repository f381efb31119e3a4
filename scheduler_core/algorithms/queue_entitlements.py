"""What each queue of a tree may use at most, is guaranteed and deserves.

Source: volcano-semantics 4.9: a child inherits what its parent's capability says and it does not; the guarantees of its
siblings are not for it; ``deserved`` is cut at the most it may use and raised to its guarantee. What a child names
above its parent is cut at what the parent names; what it may use is cut at what all above it may use."""

from collections.abc import Sequence

import msgspec

from scheduler_core.algorithms.hierarchy import QueueTree
from scheduler_core.algorithms.water_filling import real_capability

Amounts = Sequence[int | None]


class Written(msgspec.Struct, frozen=True, gc=False):
    """A queue's spec by row; None = not named."""

    name: str
    capability: Amounts
    guarantee: Amounts
    deserved: Amounts


class Entitlements(msgspec.Struct, gc=False):
    """By queue, then by row. ``real``: the most that may be used. ``guarantee``: kept free. ``deserved``: None = not
    named."""

    real: list[list[int]]
    guarantee: list[list[int]]
    deserved: list[list[int | None]]


def entitlements(tree: QueueTree, total: Sequence[int], queues: Sequence[Written]) -> Entitlements:
    """Work the tree out. O(queues x rows)."""
    guarantee = [[amount or 0 for amount in queue.guarantee] for queue in queues]
    deserved: list[list[int | None]] = [list(queue.deserved) for queue in queues]
    capability: list[list[int | None]] = [list(queue.capability) for queue in queues]
    order = tree.top_down()
    for q in reversed(order):
        if tree.children[q]:
            _add_up(queues[q], guarantee, deserved, q, tree.children[q])
    real = [[0] * len(total) for _ in queues]
    whole = list(total)
    if tree.root >= 0:
        pairs = zip(total, capability[tree.root], strict=True)
        whole = real[tree.root] = [most if cap is None else min(most, cap) for most, cap in pairs]
    for q in order:
        above = tree.parent[q]
        if above >= 0:
            capability[q] = list(map(_least, capability[q], capability[above]))
            lines = zip(deserved[q], deserved[above], strict=True)
            deserved[q] = [None if own is None else _least(own, most) for own, most in lines]
            guarantee[q] = [min(own, most) for own, most in zip(guarantee[q], guarantee[above], strict=True)]
    for q in order:
        above = tree.parent[q]
        siblings = tree.children[above] if above >= 0 else tree.top
        guaranteed = [sum(column) for column in zip(*(guarantee[s] for s in siblings), strict=True)]
        real[q] = real_capability(real[above] if above >= 0 else whole, guaranteed, guarantee[q], capability[q])
    for q in order:
        deserved[q] = [
            None if want is None and not least else max(min(want or 0, most), least)
            for want, most, least in zip(deserved[q], real[q], guarantee[q], strict=True)
        ]
    return Entitlements(real, guarantee, deserved)


def _least(*amounts: int | None) -> int | None:
    """The smallest of the amounts that are named."""
    return min((amount for amount in amounts if amount is not None), default=None)


def _add_up(
    queue: Written, guarantee: list[list[int]], deserved: list[list[int | None]], q: int, below: Sequence[int]
) -> None:
    """A parent has what its children have together where it names nothing itself."""
    for r, named in enumerate(queue.guarantee):
        if named is None:
            guarantee[q][r] = sum(guarantee[child][r] for child in below)
        wanted = [amount for child in below if (amount := deserved[child][r]) is not None]
        if deserved[q][r] is None and wanted:
            deserved[q][r] = sum(wanted)


def added(*amounts: Sequence[int]) -> list[int]:
    return [sum(column) for column in zip(*amounts, strict=True)]


def within_line(asked: Sequence[int], used: Sequence[int], line: Amounts, *, one: bool) -> bool:
    """Whether what is asked for stays within what is deserved: of all of it that has a line, and of some. ``one``: one
    such resource is enough (upstream)."""
    rows = zip(asked, used, line, strict=True)
    tests = [use + amount <= most for amount, use, most in rows if amount > 0 and most is not None]
    return any(tests) if one else bool(tests) and all(tests)


def beyond_line(used: Sequence[int], line: Amounts, held: Sequence[int], asked: Sequence[int], *, other: bool) -> bool:
    """Whether more is in use than deserved of something that a victim holds; true where none of it has a line.
    ``other``: of anything that the victim holds (upstream), not only of what is asked for."""
    rows = [
        (use > most, want > 0)
        for use, most, have, want in zip(used, line, held, asked, strict=True)
        if most is not None and have > 0
    ]
    wanted = [beyond for beyond, want in rows if want]
    return not rows or any(wanted if wanted and not other else (beyond for beyond, _ in rows))


def below_guarantee(used: Sequence[int], guarantee: Sequence[int], held: Sequence[int]) -> bool:
    """Whether a queue without ``held`` would have less than it is guaranteed of something that ``held`` gives."""
    rows = zip(used, guarantee, held, strict=True)
    return any(have > 0 and least > 0 and use - have < least for use, least, have in rows)
