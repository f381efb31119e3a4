"""Scores by how full a node would be, along a line that the policy draws. Source: document 003, Kubernetes'
RequestedToCapacityRatio. On purpose, as in the document: a resource whose score is zero stays in the divisor."""

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled_inline

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@compiled_inline
def on_line(utilization: float, at: Floats, score: Floats) -> float:
    """The score at a utilization (percent): straight between two points, flat before the first and after the last."""
    last = len(at) - 1
    if utilization <= at[0]:
        return float(score[0])
    for i in range(last):
        if utilization <= at[i + 1]:
            return float(score[i] + (score[i + 1] - score[i]) * (utilization - at[i]) / (at[i + 1] - at[i]))
    return float(score[last])


@compiled_inline
def utilization_with(used: int, request: int, capacity: int) -> float:
    """Percent of the capacity in use with the task, at most 100; a node that has none of a resource is full of it."""
    if capacity <= 0 or used + request >= capacity:
        return 100.0
    return 100.0 * float(used + request) / float(capacity)
