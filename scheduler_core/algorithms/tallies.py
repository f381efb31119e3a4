"""What gangs have beyond their minimums, in one compiled pass over those that have any."""

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled

Ints = npt.NDArray[np.int64]
Index = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]

# Rows of the queue ledger: cpu, memory, then cards by type; the same in ``state.axes``.
_CPU, _MEMORY, _CARDS = 0, 1, 2


@compiled
def beyond_minimum(
    counts: Ints, least: Ints, ended: int, chosen: Bools, status: Codes, cls: Index, card: Index, start: Ints,
    member: Ints, queue: Index, charge: Ints, out: Ints,
) -> tuple[Bools, Ints]:  # fmt: skip
    """Add what the surplus members of each gang take to ``out``, for gangs whose members in place are all alike.

    Args:
        counts: int64 (statuses, gangs), members by status. least: int64 (gangs,), the minimum, of which members in the
            status ``ended`` are a part.
        chosen: bool by status, who is in place. cls, card: int32 (tasks,). queue: int32 (gangs,), -1 = none.
        charge: int64 (3, classes), cpu, memory and milli-cards of a task. out: int64 (2 + card types, queues).

    Returns:
        bool (gangs,): those whose members differ, so that it matters which are the surplus; nothing was added for them.
        int64 (gangs,): how many members each has beyond its minimum, of an existing queue."""
    mixed = np.zeros(len(queue), dtype=np.bool_)
    surplus = np.zeros(len(queue), dtype=np.int64)
    for gang in range(len(queue)):
        surplus[gang] = -max(0, least[gang] - counts[ended, gang])
        for code in range(len(chosen)):
            if chosen[code]:
                surplus[gang] += counts[code, gang]
        q = queue[gang]
        if q < 0 or surplus[gang] <= 0:
            surplus[gang] = 0
            continue
        first = -1
        for at in range(start[gang], start[gang + 1]):
            task = member[at]
            if chosen[status[task]]:
                if first < 0:
                    first = task
                elif cls[task] != cls[first] or card[task] != card[first]:
                    mixed[gang] = True
                    break
        if first >= 0 and not mixed[gang]:
            of = cls[first]
            out[_CPU, q] += surplus[gang] * charge[0, of]
            out[_MEMORY, q] += surplus[gang] * charge[1, of]
            if card[first] >= 0:
                out[_CARDS + card[first], q] += surplus[gang] * charge[2, of]
    return mixed, surplus
