"""How full a node would be, weighted over resources: the score of packing. Source: volcano-semantics 4.7."""

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled_inline

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
