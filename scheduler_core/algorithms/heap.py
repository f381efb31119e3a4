"""A heap of int64 keys inside a larger array, the smallest first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled_loop

Ints = npt.NDArray[np.int64]


@compiled_loop
def heap_push(keys: Ints, size: int, key: int) -> None:
    """Add a key to the heap ``keys[:size]``, O(log size); it is one longer afterwards."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        at = above
    keys[at] = key


@compiled_loop
def heap_pop(keys: Ints, size: int) -> int:
    """Take the smallest key out of the heap ``keys[:size]``, O(log size); it is one shorter afterwards."""
    found, last, at = keys[0], keys[size - 1], 0
    while True:
        below = 2 * at + 1
        if below >= size - 1:
            break
        if below + 1 < size - 1 and keys[below + 1] < keys[below]:
            below += 1
        if last <= keys[below]:
            break
        keys[at] = keys[below]
        at = below
    keys[at] = last
    return int(found)
