"""Nodes one zone after the other in turn, so that equal nodes are used evenly over the zones."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def interleaved(zones: Sequence[str]) -> NDArray[np.int64]:
    """Rank of each node when zones take turns; int64 (N,). ``zones``: zone of each node, in the order of the nodes;
    empty = without one, which is a zone too. Zones take turns in the order of their names. O(N log N)."""
    seen: dict[str, int] = {}
    turn = []
    for zone in zones:
        turn.append(seen.get(zone, 0))
        seen[zone] = seen.get(zone, 0) + 1
    order = sorted(range(len(zones)), key=lambda node: (turn[node], zones[node], node))
    rank = np.empty(len(zones), dtype=np.int64)
    rank[order] = np.arange(len(zones), dtype=np.int64)
    return rank
