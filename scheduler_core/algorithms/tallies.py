"""Sums over all tasks in one compiled pass each: members of gangs, use of queues, what goes beyond minimums.

A pass over 100,000 tasks costs a fraction of a millisecond, so these are counted anew for each session.
"""

from __future__ import annotations

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
def gang_members(
    live: Bools, status: Codes, gang: Index, place: Index, gangs: int, statuses: int
) -> tuple[Ints, Ints, Ints]:
    """Who is in which gang, and in which status. O(tasks + gangs).

    Args:
        live, status, gang, place: bool, int8, int32, int32 (tasks,); ``place`` is a task's place inside its gang,
            each from 0 on without a gap.

    Returns:
        ``counts`` int64 (statuses, gangs); ``start`` int64 (gangs + 1,) and ``member`` int64 (members,): the tasks of
        gang ``g`` are ``member[start[g]:start[g + 1]]``, by place.
    """
    counts = np.zeros((statuses, gangs), dtype=np.int64)
    start = np.zeros(gangs + 1, dtype=np.int64)
    for task in range(len(live)):
        if live[task] and gang[task] >= 0:
            counts[status[task], gang[task]] += 1
            start[gang[task] + 1] += 1
    for g in range(gangs):
        start[g + 1] += start[g]
    member = np.zeros(start[gangs], dtype=np.int64)
    for task in range(len(live)):
        if live[task] and gang[task] >= 0:
            member[start[gang[task]] + place[task]] = task
    return counts, start, member


@compiled
def gangs_with(chosen: Bools, cls: Index, start: Ints, member: Ints) -> Bools:
    """bool (gangs,): whether some member is of one of the ``chosen`` classes (bool, by class). O(members)."""
    found = np.zeros(len(start) - 1, dtype=np.bool_)
    for gang in range(len(found)):
        for at in range(start[gang], start[gang + 1]):
            if chosen[cls[member[at]]]:
                found[gang] = True
                break
    return found


@compiled
def queue_use(
    chosen: Bools,
    status: Codes,
    cls: Index,
    card: Index,
    start: Ints,
    member: Ints,
    queue: Index,
    charge: Ints,
    out: Ints,
) -> None:
    """Add what tasks in some statuses take of their queues to ``out``. O(members).

    Args:
        chosen: bool by status. cls, card: int32 (tasks,). queue: int32 (gangs,), -1 = none.
        charge: int64 (3, classes), cpu, memory and milli-cards of a task.
        out: int64 (2 + card types, queues).
    """
    for gang in range(len(queue)):
        q = queue[gang]
        if q < 0:
            continue
        for at in range(start[gang], start[gang + 1]):
            task = member[at]
            if chosen[status[task]]:
                of = cls[task]
                out[_CPU, q] += charge[0, of]
                out[_MEMORY, q] += charge[1, of]
                if card[task] >= 0:
                    out[_CARDS + card[task], q] += charge[2, of]


@compiled
def beyond_minimum(
    surplus: Ints,
    chosen: Bools,
    status: Codes,
    cls: Index,
    card: Index,
    start: Ints,
    member: Ints,
    queue: Index,
    charge: Ints,
    out: Ints,
) -> Bools:
    """Add what the surplus members of each gang take to ``out``, for gangs whose members in place are all alike.

    Args:
        surplus: int64 (gangs,), how many members a gang has beyond its minimum. The rest as in :func:`queue_use`.

    Returns:
        bool (gangs,): those whose members differ, so that it matters which are the surplus; nothing was added for them.
    """
    mixed = np.zeros(len(queue), dtype=np.bool_)
    for gang in range(len(queue)):
        q = queue[gang]
        if q < 0 or surplus[gang] <= 0:
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
    return mixed


@compiled
def cards_held(
    ignored: Bools, status: Codes, cls: Index, card: Index, first_card: Index, milli: Ints, start: Ints, member: Ints,
    types: int,
) -> Ints:  # fmt: skip
    """int64 (gangs, types): milli-cards that members hold, or ask for at their first choice. O(members).

    Args:
        ignored: bool by status, who counts no more. first_card: int32 by class, -1 = none. milli: int64 by class.
    """
    sums = np.zeros((len(start) - 1, types), dtype=np.int64)
    for gang in range(len(start) - 1):
        for at in range(start[gang], start[gang + 1]):
            task = member[at]
            if not ignored[status[task]]:
                of = cls[task]
                kind = card[task] if card[task] >= 0 else first_card[of]
                if kind >= 0:
                    sums[gang, kind] += milli[of]
    return sums
