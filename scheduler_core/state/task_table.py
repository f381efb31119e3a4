"""Tasks as columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from scheduler_core.model.pod import Pod
from scheduler_core.state.card_sets import CardSets
from scheduler_core.state.status import Bools, Floats, Index, Ints

Codes = npt.NDArray[np.int8]


class TaskTable:
    """One slot a pod; slots are in no particular order and may be empty, every order is made from names.

    Attributes:
        pods: the pod of each slot, None for an empty one. keys: its namespace/name.
        status: int8; node, gang, cls, card: int32, -1 = none (``card`` is the type that it takes on its node).
        priority: int64. started: float64, seconds since the epoch, NaN = unknown.
        created: float64. number: float64, the number that the pod's name ends in, infinity = none.
        place: int32, its place among all members of its gang by number, creation and name.
        protected: bool, the pod says ``volcano.sh/preemptable: "false"``.
        indices: which cards of its node it holds (or is promised), see :class:`CardSets`."""

    def __init__(self, capacity: int = 64, words: int = 1) -> None:
        self.pods: list[Pod | None] = [None] * capacity
        self.keys: list[str] = [""] * capacity
        self.indices = CardSets(capacity, words)
        self.status: Codes = np.zeros(capacity, dtype=np.int8)
        self.node: Index = np.full(capacity, -1, dtype=np.int32)
        self.gang: Index = np.full(capacity, -1, dtype=np.int32)
        self.cls: Index = np.zeros(capacity, dtype=np.int32)
        self.card: Index = np.full(capacity, -1, dtype=np.int32)
        self.priority: Ints = np.zeros(capacity, dtype=np.int64)
        self.started: Floats = np.full(capacity, np.nan, dtype=np.float64)
        self.created: Floats = np.zeros(capacity, dtype=np.float64)
        self.number: Floats = np.full(capacity, np.inf, dtype=np.float64)
        self.place: Index = np.zeros(capacity, dtype=np.int32)
        self.protected: Bools = np.zeros(capacity, dtype=np.bool_)
        self.live: Bools = np.zeros(capacity, dtype=np.bool_)

    def __len__(self) -> int:
        return len(self.pods)

    def copy(self) -> TaskTable:
        """An independent table; columns that a session never changes are shared."""
        other = object.__new__(TaskTable)
        other.pods, other.keys, other.gang, other.cls = self.pods, self.keys, self.gang, self.cls
        other.priority, other.started, other.protected, other.live = (
            self.priority, self.started, self.protected, self.live,
        )  # fmt: skip
        other.created, other.number, other.place = self.created, self.number, self.place
        other.indices = self.indices.copy()
        other.status, other.node, other.card = self.status.copy(), self.node.copy(), self.card.copy()
        return other

    def fork(self) -> TaskTable:
        """A table that shares nothing."""
        other = self.copy()
        other.pods, other.keys = self.pods.copy(), self.keys.copy()
        other.gang, other.cls, other.live = self.gang.copy(), self.cls.copy(), self.live.copy()
        other.priority, other.started, other.protected = (
            self.priority.copy(),
            self.started.copy(),
            self.protected.copy(),
        )
        other.created, other.number, other.place = self.created.copy(), self.number.copy(), self.place.copy()
        return other

    def grow(self) -> None:
        more = len(self.pods)
        self.pods += [None] * more
        self.keys += [""] * more
        self.indices.grow(more)
        self.status = np.concatenate([self.status, np.zeros(more, dtype=np.int8)])
        self.node = np.concatenate([self.node, np.full(more, -1, dtype=np.int32)])
        self.gang = np.concatenate([self.gang, np.full(more, -1, dtype=np.int32)])
        self.cls = np.concatenate([self.cls, np.zeros(more, dtype=np.int32)])
        self.card = np.concatenate([self.card, np.full(more, -1, dtype=np.int32)])
        self.priority = np.concatenate([self.priority, np.zeros(more, dtype=np.int64)])
        self.started = np.concatenate([self.started, np.full(more, np.nan, dtype=np.float64)])
        self.created = np.concatenate([self.created, np.zeros(more, dtype=np.float64)])
        self.number = np.concatenate([self.number, np.full(more, np.inf, dtype=np.float64)])
        self.place = np.concatenate([self.place, np.zeros(more, dtype=np.int32)])
        self.protected = np.concatenate([self.protected, np.zeros(more, dtype=np.bool_)])
        self.live = np.concatenate([self.live, np.zeros(more, dtype=np.bool_)])

    def pod(self, task: int) -> Pod:
        pod = self.pods[task]
        assert pod is not None
        return pod
