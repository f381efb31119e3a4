"""How many nodes upstream looks at for one task, and which: with ``compatibility: volcano`` only. Source:
volcano-semantics 1.7. It stops as soon as it has enough feasible nodes and goes on from there for the next task.
Without compatibility every node is considered."""

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]

# Clusters up to this size are searched in full, and at least so many feasible nodes are looked for in larger ones.
_LEAST = 100
_LEAST_PERCENT = 5


def enough_nodes(nodes: int) -> int:
    """Feasible nodes that are enough: 50 - nodes / 125 percent of all, not below 5 percent and not below 100 nodes."""
    if nodes <= _LEAST:
        return nodes
    percent = max(50 - nodes // 125, _LEAST_PERCENT)
    return max(_LEAST, nodes * percent // 100)


class NodeSearch:
    """The search of one session; it begins at the first name, and for each task where the one before ended. ``nodes``:
    how many there are."""

    def __init__(self, nodes: int) -> None:
        self._nodes, self._enough, self._start = nodes, enough_nodes(nodes), 0

    @property
    def samples(self) -> bool:
        """False where every node is looked at anyway."""
        return self._enough < self._nodes

    def looked_at(self, feasible: Bools) -> Bools:
        """bool (N,): those of the feasible nodes that are found before there are enough. O(N)."""
        if not self.samples:
            return feasible
        ahead = np.roll(feasible, -self._start)
        found = np.flatnonzero(ahead)
        walked = self._nodes if len(found) < self._enough else int(found[self._enough - 1]) + 1
        ahead[walked:] = False
        seen: Bools = np.roll(ahead, self._start)
        self._start = (self._start + walked) % self._nodes
        return seen
