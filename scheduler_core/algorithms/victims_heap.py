"""A heap of nodes by what an eviction there would cost at least; old entries are passed over, not removed."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import ZERO, compiled_branchy, compiled_inline

Ints = npt.NDArray[np.int64]

# work lost, gangs, amount freed, first unit by name; and the node, so that the order is total.
KEY = 5


class Heap(NamedTuple):
    """Arrays of a binary heap. ``keys``: int64 (capacity, 6), the smallest first; behind the key the stamp of the
    entry. ``current``: int64 (N + 1,), the stamp that the valid entry of each node has, any other entry is old; behind
    them the size of the heap."""

    keys: Ints
    current: Ints


def new_heap(nodes: int) -> Heap:
    return Heap(np.zeros((4 * nodes + 64, KEY + 1), dtype=np.int64), np.zeros(nodes + 1, dtype=np.int64))


@compiled_branchy
def before(a: Ints, b: Ints) -> bool:
    """True when key ``a`` comes before key ``b``."""
    for i in range(KEY):
        if a[i] != b[i]:
            return bool(a[i] < b[i])
    return False


@compiled_branchy
def _copy(source: Ints, target: Ints) -> None:
    for i in range(KEY + 1):
        target[i] = source[i]


@compiled_branchy
def _down(keys: Ints, size: int, at: int) -> None:
    """Let the entry at ``at`` sink to its place among the first ``size``."""
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and before(keys[child + 1], keys[child]):
            child += 1
        if not before(keys[child], keys[at]):
            return
        for i in range(KEY + 1):
            keys[at, i], keys[child, i] = keys[child, i], keys[at, i]
        at = child


@compiled_branchy
def push(heap: Heap, key: Ints) -> None:
    """Add the valid entry of the node ``key[4]``; what it had before becomes old. O(log N) on average."""
    keys, current = heap.keys, heap.current
    current[key[KEY - 1]] += 1
    at = current[-1]
    if at == len(keys):
        kept = 0
        for i in range(at):
            if keys[i, KEY] == current[keys[i, KEY - 1]]:
                _copy(keys[i], keys[kept])
                kept += 1
        at = kept
        for i in range(kept // 2 - 1, -1, -1):
            _down(keys, kept, i)
    current[-1] = at + 1
    while at and before(key, keys[(at - 1) // 2]):
        _copy(keys[(at - 1) // 2], keys[at])
        at = (at - 1) // 2
    for i in range(KEY):
        keys[at, i] = key[i]
    keys[at, KEY] = current[key[KEY - 1]]


@compiled_branchy
def pop(heap: Heap, key: Ints) -> bool:
    """Take the smallest valid entry out and write it into ``key``; False when there is none."""
    keys, current = heap.keys, heap.current
    while current[-1]:
        for i in range(KEY):
            key[i] = keys[0, i]
        valid = keys[0, KEY] == current[key[KEY - 1]]
        last = current[-1] - 1
        current[-1] = last
        _copy(keys[last], keys[0])
        _down(keys, last, ZERO)
        if valid:
            return True
    return False


@compiled_inline
def drop(heap: Heap, node: int) -> None:
    """The node has no valid entry any more."""
    heap.current[node] += 1
