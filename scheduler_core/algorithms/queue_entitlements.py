"""What each queue of a tree may use at most, is guaranteed and deserves.

Source: volcano-semantics 4.9: a child inherits what its parent's capability says and it does not; the guarantees of its
siblings are not for it; ``deserved`` is cut at the most it may use and raised to its guarantee. A parent that names
less than its children do together is broken, for itself and all below it."""

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


def entitlements(tree: QueueTree, total: Sequence[int], queues: Sequence[Written], rows: Sequence[str]) -> Entitlements:
    """Work the tree out; what does not add up is noted in ``tree.problems``. O(queues x rows)."""
    nothing = [0] * len(total)
    guarantee = [[amount or 0 for amount in queue.guarantee] for queue in queues]
    deserved: list[list[int | None]] = [list(queue.deserved) for queue in queues]
    capability: list[list[int | None]] = [list(queue.capability) for queue in queues]
    order = tree.top_down()
    for q in order:
        above = tree.parent[q]
        if above >= 0:
            capability[q] = _inherited(tree, queues, capability, q, above, rows)
    for q in reversed(order):
        below = tree.children[q]
        if below:
            _raise_to_children(tree, queues, guarantee, deserved, q, below, rows)
    real = [list(nothing) for _ in queues]
    if tree.root >= 0:
        real[tree.root] = list(total)
    for q in order:
        above = tree.parent[q]
        siblings = tree.children[above] if above >= 0 else tree.top
        guaranteed = [sum(column) for column in zip(*(guarantee[s] for s in siblings), strict=True)]
        room = real[above] if above >= 0 else total
        real[q] = real_capability(room, guaranteed, guarantee[q], capability[q])
    for q in order:
        deserved[q] = [
            None if want is None and not least else max(min(want or 0, most), least)
            for want, most, least in zip(deserved[q], real[q], guarantee[q], strict=True)
        ]
    return Entitlements(real, guarantee, deserved)


def _inherited(
    tree: QueueTree, queues: Sequence[Written], capability: list[list[int | None]], queue: int, above: int,
    rows: Sequence[str],
) -> list[int | None]:  # fmt: skip
    found: list[int | None] = []
    for row, own, parents in zip(rows, capability[queue], capability[above], strict=True):
        if own is not None and parents is not None and own > parents:
            tree.broken(
                queue,
                f"queue {queues[queue].name} has more {row} in its capability than its parent {queues[above].name}",
            )
        found.append(parents if own is None else own)
    return found


def _raise_to_children(
    tree: QueueTree, queues: Sequence[Written], guarantee: list[list[int]], deserved: list[list[int | None]],
    queue: int, below: Sequence[int], rows: Sequence[str],
) -> None:  # fmt: skip
    """A parent has at least what its children have together; where it names less, that is a contradiction."""
    for r, row in enumerate(rows):
        promised = sum(guarantee[child][r] for child in below)
        named = queues[queue].guarantee[r]
        if named is not None and promised > named:
            tree.broken(queue, f"the queues below {queues[queue].name} are guaranteed more {row} than it is itself")
        guarantee[queue][r] = max(guarantee[queue][r], promised)
        wanted = [amount for child in below if (amount := deserved[child][r]) is not None]
        line = deserved[queue][r]
        if line is not None and sum(wanted) > line:
            tree.broken(queue, f"the queues below {queues[queue].name} deserve more {row} than it does itself")
        elif line is None and wanted:
            deserved[queue][r] = sum(wanted)


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
