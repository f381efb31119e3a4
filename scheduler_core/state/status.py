"""Status of a task inside a session and what each status takes, as lookup tables. Source: volcano-semantics 2.1, 2.2
and 2.5."""

import enum

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Index = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class TaskStatus(enum.IntEnum):
    """The stage of a task; ALLOCATED and PIPELINED exist only inside a session."""

    PENDING = 0
    PIPELINED = 1  # promised on room that is still leaving
    ALLOCATED = 2  # will be bound when the session ends
    BOUND = 3
    RUNNING = 4
    RELEASING = 5
    SUCCEEDED = 6
    FAILED = 7
    GATED = 8
    UNKNOWN = 9
    FOREIGN = 10  # pending under another scheduler, or deleted before it had a node: nothing to place, holds nothing


# The same as plain integers: looking a member up on its enum costs more than the array access it is used for.
PENDING, PIPELINED, ALLOCATED, BOUND = 0, 1, 2, 3
RUNNING, RELEASING, SUCCEEDED, FAILED = 4, 5, 6, 7
GATED, UNKNOWN, FOREIGN = 8, 9, 10


def _table(*members: TaskStatus) -> Bools:
    table = np.zeros(len(TaskStatus), dtype=np.bool_)
    table[[int(member) for member in members]] = True
    return table


_S = TaskStatus
# Takes room on its node.
HOLDS = _table(_S.ALLOCATED, _S.BOUND, _S.RUNNING, _S.RELEASING, _S.UNKNOWN)
# Counts as allocated against its queue.
CHARGED = _table(_S.ALLOCATED, _S.BOUND, _S.RUNNING)
# Counts towards minMember.
READY = _table(_S.ALLOCATED, _S.BOUND, _S.RUNNING, _S.SUCCEEDED)
# Still needed or in place: what JobValid counts.
VALID = _table(_S.ALLOCATED, _S.BOUND, _S.RUNNING, _S.SUCCEEDED, _S.PIPELINED, _S.PENDING)
# On a node in the snapshot sense: what the phase of the PodGroup counts (releasing ones with a node too).
SCHEDULED = _table(_S.ALLOCATED, _S.BOUND, _S.RUNNING, _S.RELEASING, _S.SUCCEEDED, _S.FAILED)
