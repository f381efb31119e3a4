"""Node scores, 0 to 100, over many nodes at once.

Each formula is one compiled function of one node, which the arrays here and the placement kernels both call: so both
agree to the last bit. Amounts are whole numbers below 2**46 and shares at most 100, so that a division of float64 and
its floor give what integer division gives.
Source: Kubernetes' scoring plugins LeastAllocated, MostAllocated and BalancedAllocation, whose integer division is
kept so that scores and ties agree."""

import math

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled_inline

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MAX_SCORE = 100
# Kubernetes' bounds of what images are worth, bytes: below the first nothing, from the second on (a container) all.
_IMAGE_LOW, _IMAGE_TOP = 23 * 1024 * 1024, 1000 * 1024 * 1024


@compiled_inline
def free_percent(allocatable: float, requested: float) -> float:
    """Free part of one resource in whole percent; 0 where it is missing or would be over its capacity."""
    if allocatable > 0.0 and requested <= allocatable:
        return math.floor((allocatable - requested) * 100.0 / allocatable) + 0.0
    return 0.0


@compiled_inline
def used_percent(allocatable: float, requested: float) -> float:
    """Used part of one resource in whole percent; 0 where it is missing or would be over its capacity."""
    if allocatable > 0.0 and requested <= allocatable:
        return math.floor(requested * 100.0 / allocatable) + 0.0
    return 0.0


@compiled_inline
def used_part(allocatable: float, requested: float) -> float:
    """Used part of one resource, at most 1; 0 where it is missing."""
    return min(1.0, requested / max(allocatable, 1.0)) if allocatable > 0.0 else 0.0


@compiled_inline
def off_mean(allocatable: float, part: float, mean: float) -> float:
    """Squared distance from the mean of a resource that the node has."""
    return (part - mean) * (part - mean) if allocatable > 0.0 else 0.0


@compiled_inline
def evenness(spread: float, rows: float) -> float:
    """100 minus the standard deviation in percent, from the sum of squared distances over ``rows`` resources."""
    return math.floor((1.0 - math.sqrt(spread / rows)) * 100.0) + 0.0


def normalised(raw: Ints, *, reverse: bool = False) -> Floats:
    """Scaled so that the largest becomes 100; ``reverse`` turns it round. All zero gives 0 (100 when reversed)."""
    top = int(raw.max(initial=0))
    if top == 0:
        return np.full(raw.shape, float(MAX_SCORE if reverse else 0), dtype=np.float64)
    score = raw * MAX_SCORE // top
    return (MAX_SCORE - score if reverse else score).astype(np.float64)


def image_locality(sizes: Ints, containers: int) -> Floats:
    """How much of a pod's images a node has, 0 to 100; an image that few nodes have counts for less.

    sum = of each image size x (nodes with it / nodes); score = 100 x (sum - 23 MB) / (1000 MB x containers - 23 MB),
    within bounds, in whole numbers.

    Args:
        sizes: int64 (images, N), bytes, 0 where the node does not have it. containers: of the pod."""
    count = sizes.shape[1]
    have = (sizes > 0).sum(axis=1)
    total: Ints = np.zeros(count, dtype=np.int64)
    for size, nodes in zip(sizes, have, strict=True):
        total += (size * (int(nodes) / max(1, count))).astype(np.int64)
    low, top = _IMAGE_LOW, _IMAGE_TOP * max(1, containers)
    score: Floats = (MAX_SCORE * (np.clip(total, low, top) - low) // (top - low)).astype(np.float64)
    return score
