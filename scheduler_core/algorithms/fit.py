"""Whether a request fits, over all nodes at once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def resource_fit(free: Ints, request: Ints, rows: Sequence[int]) -> Bools:
    """Nodes whose free resources cover a request. ``free``: int64 (R, N), free amounts; may be negative. ``request``:
    int64 (R,). ``rows``: the rows that are asked for; the others are not looked at. Returns: bool (N,). O(rows x N)."""
    mask: Bools = np.ones(free.shape[1], dtype=np.bool_)
    for row in rows:
        mask &= free[row] >= request[row]
    return mask


def card_fit(whole_free: Ints, best_free: Ints, whole: int, share: int) -> Bools:
    """Nodes with room on single cards of one type. ``whole_free``: int64 (N,), entirely free cards. ``best_free``:
    int64 (N,), the largest free part of one card. ``whole``: cards needed entirely. ``share``: milli-cards needed on
    one card (then ``whole`` is 0)."""
    return best_free >= share if share else whole_free >= whole
