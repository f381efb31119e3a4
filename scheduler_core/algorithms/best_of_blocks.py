"""The best of many scores while some of them keep changing: blocks with upper bounds, and groups of blocks.

Scores are compared as whole numbers in the same order (:func:`sort_key`). Nodes lie in blocks of 64; ``bound`` int64
(blocks,) is never less than a key in its block, and where ``stale`` is false it is the largest of them. Blocks lie in
groups of 64; ``group`` int64 (groups,) is never less than a bound in its group. A change costs O(1); a search for the
best looks through those groups and blocks only whose bound is in the way. Among equals the lowest node wins."""

from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import NONE, compiled_inline, compiled_loop, from_python

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BLOCK = 64
# The key of a node that is out of the question; no score has it.
NOWHERE: Any = np.int64(-(2**63))
_SIGN, _REST = 63, 2**63 - 1


def blocks_of(size: int) -> int:
    """How many blocks so many nodes make."""
    return -(-size // BLOCK)


@compiled_inline
def sort_key(bits: int) -> int:
    """The bits of a float64 that is not NaN as a number of the same order; of 0.0 and -0.0 only the first may come."""
    return bits ^ ((bits >> _SIGN) & _REST)


@compiled_loop
@from_python
def set_all(key: Ints, bound: Ints, stale: Bools, group: Ints) -> None:
    """Set the bounds after all keys have changed, O(N)."""
    for block in range(bound.shape[0]):
        bound[block] = _largest(key, block)
        stale[block] = False
    for number in range(group.shape[0]):
        group[number] = _largest(bound, number)


@compiled_loop
@from_python
def set_key(key: Ints, bound: Ints, stale: Bools, group: Ints, node: int, value: int) -> None:
    """Give a node another key, O(1)."""
    block, before = node // BLOCK, key[node]
    key[node] = value
    if value >= bound[block]:
        bound[block] = value
        stale[block] = False
        group[block // BLOCK] = max(group[block // BLOCK], value)
    elif before == bound[block]:
        stale[block] = True


@compiled_loop
@from_python
def best(key: Ints, bound: Ints, stale: Bools, group: Ints) -> int:
    """The node with the largest key, the lowest of equals; -1 when all are out of the question."""
    while True:
        most, at = NOWHERE, NONE
        for number in range(group.shape[0]):
            if group[number] > most:
                most, at = group[number], number
        if at < 0:
            return -1
        block, last = at * BLOCK, min(bound.shape[0], (at + 1) * BLOCK)
        while block < last and bound[block] != most:
            block += 1
        if block == last:
            group[at] = _largest(bound, at)
        elif stale[block]:
            bound[block] = _largest(key, block)
            stale[block] = False
        else:
            node = block * BLOCK
            while key[node] != most:
                node += 1
            return int(node)


@compiled_loop
def _largest(key: Ints, block: int) -> int:
    most = NOWHERE
    for node in range(block * BLOCK, min(key.shape[0], (block + 1) * BLOCK)):
        most = max(most, key[node])
    return int(most)
