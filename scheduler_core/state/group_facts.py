"""What PodGroups say of themselves as columns, read once for each PodGroup and kept between sessions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler_core.model.podgroup import PodGroup
from scheduler_core.state.phases import PHASE_CODE, Codes
from scheduler_core.state.status import Bools, Floats, Ints


class GroupFacts(NamedTuple):
    """One row a PodGroup.

    ``since`` float64, the time that counts for its place in the queue; ``priority`` int64; ``least`` int64, minMember;
    ``phase`` int8, as written; ``held`` bool, left alone as it is (suspended, backing off, unusable
    as written, not supported); ``roles`` bool, has minima of roles; ``declaration`` int64, which of the
    workspace's declarations says what its minimum asks for, -1 = none."""

    since: Floats
    priority: Ints
    least: Ints
    phase: Codes
    held: Bools
    roles: Bools
    declaration: Ints

    @classmethod
    def empty(cls, size: int) -> GroupFacts:
        """``size`` rows without a meaning yet."""
        return cls(
            np.zeros(size, dtype=np.float64), np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64),
            np.zeros(size, dtype=np.int8), np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_),
            np.zeros(size, dtype=np.int64),
        )  # fmt: skip

    def write(self, rows: list[int], groups: list[PodGroup], declarations: list[int]) -> None:
        """Note what PodGroups say."""
        self.since[rows] = [group.waiting_since for group in groups]
        self.priority[rows] = [group.priority for group in groups]
        self.least[rows] = [group.min_member for group in groups]
        self.phase[rows] = [PHASE_CODE[group.phase] for group in groups]
        self.held[rows] = [
            bool(group.suspended or group.backing_off or group.problem or group.unsupported) for group in groups
        ]
        self.roles[rows] = [bool(group.min_task_member) for group in groups]
        self.declaration[rows] = declarations

    def at(self, rows: npt.NDArray[np.int64]) -> GroupFacts:
        return GroupFacts._make(column[rows] for column in self)

    def grown(self, size: int) -> GroupFacts:
        """The same rows and empty ones behind them, ``size`` in all."""
        more = size - len(self.since)
        return GroupFacts._make(np.concatenate([column, np.zeros(more, dtype=column.dtype)]) for column in self)
