"""Node scores, 0 to 100, over many nodes at once.

Source: Kubernetes' scoring plugins LeastAllocated, MostAllocated and BalancedAllocation, whose integer division is
kept so that scores and ties agree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MAX_SCORE = 100


def least_requested(allocatable: Ints, requested: Ints) -> Floats:
    """Mean over the rows of the free share; 0 for a row that is missing or would be over its capacity.

    Args:
        allocatable, requested: int64 (rows, N); ``requested`` includes the task that is to be placed.
    """
    safe = np.maximum(allocatable, 1)
    score = np.where((allocatable > 0) & (requested <= allocatable), (allocatable - requested) * MAX_SCORE // safe, 0)
    mean: Ints = score.sum(axis=0) // allocatable.shape[0]
    return mean.astype(np.float64)


def most_requested(allocatable: Ints, requested: Ints) -> Floats:
    """Mean over the rows of the used share; 0 for a row that is missing or would be over its capacity."""
    safe = np.maximum(allocatable, 1)
    score = np.where((allocatable > 0) & (requested <= allocatable), requested * MAX_SCORE // safe, 0)
    mean: Ints = score.sum(axis=0) // allocatable.shape[0]
    return mean.astype(np.float64)


def balanced(allocatable: Ints, requested: Ints) -> Floats:
    """100 minus the standard deviation of the used shares over the rows that a node has, in percent."""
    have = allocatable > 0
    share = np.where(have, np.minimum(1.0, requested / np.maximum(allocatable, 1)), 0.0)
    rows = np.maximum(have.sum(axis=0), 1)
    total = np.zeros(allocatable.shape[1], dtype=np.float64)
    for row in share:
        total = total + row
    mean = total / rows
    spread = np.zeros(allocatable.shape[1], dtype=np.float64)
    for row, present in zip(share, have, strict=True):
        spread = spread + np.where(present, (row - mean) ** 2, 0.0)
    score: Floats = np.floor((1.0 - np.sqrt(spread / rows)) * MAX_SCORE)
    return score


def normalised(raw: Ints, *, reverse: bool = False) -> Floats:
    """Scaled so that the largest becomes 100; ``reverse`` turns it round. All zero gives 0 (100 when reversed)."""
    top = int(raw.max(initial=0))
    if top == 0:
        return np.full(raw.shape, float(MAX_SCORE if reverse else 0), dtype=np.float64)
    score = raw * MAX_SCORE // top
    return (MAX_SCORE - score if reverse else score).astype(np.float64)
