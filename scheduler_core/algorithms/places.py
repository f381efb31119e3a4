"""Counting pods by place: the nodes that share a value of one label. Source: Kubernetes' InterPodAffinity and
PodTopologySpread; formulas in the functions."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Index = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

MAX_SCORE = 100


def count_by_place(nodes: Index, places: Index, number: int) -> Ints:
    """How many pods each place has. ``nodes``: int32 (pods,), node of each pod, none negative. ``places``: int32 (N,),
    place of each node, -1 = none. ``number``: how many places there are. Returns: int64 (number + 1,); the last entry,
    which -1 points at, is 0."""
    at = places[nodes]
    counts: Ints = np.zeros(number + 1, dtype=np.int64)
    counts[:number] = np.bincount(at[at >= 0], minlength=number)
    return counts


def least_loaded(counts: Ints, places: Index, eligible: Bools, min_domains: int) -> int:
    """The smallest count over the places of eligible nodes; 0 with fewer places than ``min_domains`` or none."""
    known = np.unique(places[eligible & (places >= 0)])
    return int(counts[known].min()) if len(known) >= max(1, min_domains) else 0


def within_skew(counts: Ints, places: Index, least: int, own: bool, max_skew: int) -> Bools:
    """Nodes whose place would hold at most ``max_skew`` pods more than the least loaded one."""
    mask: Bools = counts[places] + int(own) - least <= max_skew
    return mask


class SoftSpread(msgspec.Struct, frozen=True):
    """One ``ScheduleAnyway`` constraint: pods by place, the place of each node, how many places count."""

    counts: Ints
    places: Index
    size: int
    max_skew: int


def spread_score(constraints: Sequence[SoftSpread], scored: Bools) -> Floats:
    """0 to 100, more for places with fewer pods; 0 for nodes that are not scored.

    cost = round(sum of count x ln(places + 2) + (maxSkew - 1)); score = 100 x (max + min - cost) / max, in integers."""
    cost: Floats = np.zeros(len(scored), dtype=np.float64)
    for one in constraints:
        cost = cost + one.counts[one.places] * math.log(one.size + 2) + (one.max_skew - 1)
    # Half goes away from zero, as Go rounds; a cost is never negative.
    whole = np.floor(cost + 0.5).astype(np.int64)
    result: Floats = np.zeros(len(scored), dtype=np.float64)
    if not scored.any():
        return result
    top, low = int(whole[scored].max()), int(whole[scored].min())
    if top == 0:
        result[scored] = MAX_SCORE
        return result
    result[scored] = (MAX_SCORE * (top + low - whole[scored]) // top).astype(np.float64)
    return result


def stretched(raw: Ints) -> Floats:
    """0 for the smallest, 100 for the largest, whole numbers between; all 0 where they are equal."""
    if not len(raw) or int(raw.min()) == int(raw.max()):
        return np.zeros(len(raw), dtype=np.float64)
    low, top = int(raw.min()), int(raw.max())
    score: Floats = np.floor(MAX_SCORE * ((raw - low) / (top - low)))
    return score
