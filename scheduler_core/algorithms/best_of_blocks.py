"""The best of many scores while some of them keep changing: blocks with upper bounds.

Scores are compared as whole numbers in the same order (:func:`sort_key`). Nodes lie in blocks of 64; ``bound`` int64
(blocks,) is never less than a key in its block, and where ``stale`` is false it is the largest of them. A change costs
O(1); a search for the best looks through those blocks only whose bound is in the way. Among equals the lowest node
wins.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled_inline, compiled_loop

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BLOCK = 64
# The key of a node that is out of the question; no score has it.
NOWHERE = -(2**63)
_SIGN, _REST = 63, 2**63 - 1


def blocks_of(size: int) -> int:
    """How many blocks so many nodes make."""
    return -(-size // BLOCK)


@compiled_inline
def sort_key(bits: int) -> int:
    """The bits of a float64 that is not NaN as a number of the same order; of 0.0 and -0.0 only the first may come."""
    return bits ^ ((bits >> _SIGN) & _REST)


@compiled_loop
def set_all(key: Ints, bound: Ints, stale: Bools) -> None:
    """Set the bounds after all keys have changed, O(N)."""
    for block in range(bound.shape[0]):
        bound[block] = _largest(key, block)
        stale[block] = False


@compiled_loop
def set_key(key: Ints, bound: Ints, stale: Bools, node: int, value: int) -> None:
    """Give a node another key, O(1)."""
    block, before = node // BLOCK, key[node]
    key[node] = value
    if value >= bound[block]:
        bound[block] = value
        stale[block] = False
    elif before == bound[block]:
        stale[block] = True


@compiled_loop
def best(key: Ints, bound: Ints, stale: Bools) -> int:
    """The node with the largest key, the lowest of equals; -1 when all are out of the question."""
    blocks = bound.shape[0]
    while True:
        most = NOWHERE
        for block in range(blocks):
            most = max(most, bound[block])
        if most == NOWHERE:
            return -1
        block = 0
        while bound[block] != most:
            block += 1
        if stale[block]:
            bound[block] = _largest(key, block)
            stale[block] = False
            continue
        node = block * BLOCK
        while key[node] != most:
            node += 1
        return node


@compiled_loop
def _largest(key: Ints, block: int) -> int:
    most = NOWHERE
    for node in range(block * BLOCK, min(key.shape[0], (block + 1) * BLOCK)):
        most = max(most, key[node])
    return most
