"""A heap of numbers inside a larger array, ordered by their keys in a table; the smallest key first."""

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled_loop, from_python

Ints = npt.NDArray[np.int64]


@compiled_loop
@from_python
def heap_push(heap: Ints, size: int, keys: Ints, number: int) -> None:
    """Add a number to the heap ``heap[:size]``, O(log size); it is one longer afterwards. ``keys`` int64 (any, words):
    the key of each number, whose words are compared one after the other."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if not _less(keys, number, heap[above]):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = number


@compiled_loop
@from_python
def heap_pop(heap: Ints, size: int, keys: Ints) -> int:
    """Take the number with the smallest key out of the heap ``heap[:size]``, O(log size); it is one shorter then."""
    found, last, at = heap[0], heap[size - 1], 0
    while True:
        below = 2 * at + 1
        if below >= size - 1:
            break
        if below + 1 < size - 1 and _less(keys, heap[below + 1], heap[below]):
            below += 1
        if not _less(keys, heap[below], last):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = last
    return int(found)


@compiled_loop
def _less(keys: Ints, a: int, b: int) -> bool:
    for word in range(keys.shape[1]):
        if keys[a, word] != keys[b, word]:
            return bool(keys[a, word] < keys[b, word])
    return False
