"""Nodes as (resources, nodes) arrays: what they have, hold, give back and have promised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler_core.model.node import Node
from scheduler_core.state.axes import CPU, MEMORY, PODS, Axes
from scheduler_core.state.status import Ints


class NodeTable:
    """One column a node, in the order of node names.

    Attributes:
        allocatable, used, releasing, pipelined: int64 (R, N); rows cpu (milli), memory (MiB), pods, other resources.
            ``used`` includes what is releasing.
        now: int64 (R, N), free for a new task at once: idle, less what is promised beyond what leaves.
        future: int64 (R, N), idle + releasing - pipelined; may be negative.
        log: node positions in the order in which they changed; readers keep their place in it and repair only those."""

    def __init__(self, axes: Axes, nodes: Sequence[Node]) -> None:
        shape = (axes.resource_rows, len(nodes))
        self.nodes = nodes
        self.allocatable: Ints = np.zeros(shape, dtype=np.int64)
        for n, node in enumerate(nodes):
            self.describe(n, node, axes)
        self.used: Ints = np.zeros(shape, dtype=np.int64)
        self.releasing: Ints = np.zeros(shape, dtype=np.int64)
        self.pipelined: Ints = np.zeros(shape, dtype=np.int64)
        self.now: Ints = self.allocatable.copy()
        self.future: Ints = self.allocatable.copy()
        self.log: list[int] = []

    def __len__(self) -> int:
        return len(self.nodes)

    def describe(self, position: int, node: Node, axes: Axes) -> None:
        """Write what a node has; ``now`` and ``future`` are brought up to it by the caller, which counts its pods."""
        column = self.allocatable[:, position]
        column[:] = 0
        column[CPU], column[MEMORY], column[PODS] = node.cpu_milli, node.memory_mib, node.pods
        for name, count in node.scalars.items():
            column[axes.scalar_index[name]] = count

    def copy(self) -> NodeTable:
        """An independent table; the fixed columns are shared."""
        other = object.__new__(NodeTable)
        other.nodes, other.allocatable = self.nodes, self.allocatable
        other.used, other.releasing, other.pipelined = self.used.copy(), self.releasing.copy(), self.pipelined.copy()
        other.now, other.future, other.log = self.now.copy(), self.future.copy(), []
        return other

    @property
    def idle(self) -> Ints:
        """int64 (R, N): allocatable - used."""
        return self.allocatable - self.used

    def refresh(self, node: int) -> None:
        """Recompute ``now`` and ``future`` of one node and note the change, O(R)."""
        idle = self.allocatable[:, node] - self.used[:, node]
        future = idle + self.releasing[:, node] - self.pipelined[:, node]
        self.future[:, node] = future
        self.now[:, node] = np.minimum(idle, future)
        self.log.append(node)
