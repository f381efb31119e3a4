"""How full a node would be, weighted over resources: the score of packing.

Source: volcano-semantics 4.7.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled, compiled_inline

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@compiled_inline
def packed_part(used: int, request: int, capacity: int, weight: float) -> float:
    """One resource's part: weight x used share with the task; 0 where there is none of it, -1 over capacity."""
    if capacity <= 0 or weight == 0.0:
        return 0.0
    if used + request > capacity:
        return -1.0
    return weight * (float(used + request) / float(capacity))


@compiled
def packed(used: Ints, capacity: Ints, request: Ints, weight: Floats, scale: float) -> Floats:
    """Score of each node for one task: 100 x scale x sum of the parts / sum of the weights, 0 over capacity.

    Args:
        used, capacity: int64 (D, N), in one unit a row.
        request: int64 (D,); a row that is not asked for has no part and no weight.
        weight: float64 (D,).
        scale: weight of the whole score.

    Returns:
        float64 (N,). O(D x N).
    """
    rows, nodes = used.shape
    score = np.zeros(nodes, dtype=np.float64)
    total = 0.0
    for row in range(rows):
        if request[row] > 0:
            total += weight[row]
    if total <= 0.0:
        return score
    for node in range(nodes):
        filled = 0.0
        for row in range(rows):
            if request[row] <= 0:
                continue
            part = packed_part(used[row, node], request[row], capacity[row, node], weight[row])
            if part < 0.0:
                filled = 0.0
                break
            filled += part
        score[node] = 100.0 * scale * filled / total
    return score
