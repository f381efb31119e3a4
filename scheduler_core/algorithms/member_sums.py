"""Sums over the members of gangs, for those gangs that changed: who is in them, in which status, what they take."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled, compiled_loop, from_python

Ints = npt.NDArray[np.int64]
Index = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]

# Rows of the queue ledger: cpu, memory, then cards by type; the same in ``state.axes``.
_CPU, _MEMORY, _CARDS = 0, 1, 2


class Asked(NamedTuple):
    """Of each task class: ``first_card`` int32, the first card type that will do, -1 = none; ``milli`` int64;
    ``nothing`` bool, it asks for nothing but a place."""

    first_card: Index
    milli: Ints
    nothing: Bools


@compiled
def lay_out(
    changed: Ints, sizes: Ints, fresh: Ints, numbers: Ints, slots: Ints, first: Ints, size: Ints
) -> tuple[Ints, Ints]:
    """Put the members of gangs one gang after the other. O(members), copied in stretches.

    Args:
        changed: int64, numbers of the gangs with other members; ``sizes``, how many; ``fresh``, these, gang by gang.
        numbers: int64 (G,), number by position. slots: the members as they lay before.
        first, size: int64 (numbers,), where those of each gang begin in ``slots`` and how many they are; brought up to
            the new order.

    Returns:
        ``start`` int64 (G + 1,), and the members in their new order: those of position ``g`` at
        ``start[g]:start[g + 1]``, then those of gangs without a position."""
    at = 0
    for i in range(len(changed)):
        # A negative place points into ``fresh``.
        first[changed[i]], size[changed[i]] = -1 - at, sizes[i]
        at += sizes[i]
    total = 0
    for number in range(len(size)):
        total += size[number]
    found = np.empty(total, dtype=np.int64)
    start = np.empty(len(numbers) + 1, dtype=np.int64)
    placed = np.zeros(len(size), dtype=np.bool_)
    # Gangs that lay one after the other already are copied together: ``many`` members from ``run`` on, up to ``at``.
    at = run = many = 0
    for g in range(len(numbers)):
        number = numbers[g]
        old, count = first[number], size[number]
        start[g], placed[number] = at, True
        if old < 0 or old != run + many:
            _copy_run(slots, run, many, found, at - many)
            run, many = max(old, 0), 0
        if old >= 0:
            many += count
        else:
            _copy_run(fresh, -1 - old, count, found, at)
        first[number] = at
        at += count
    _copy_run(slots, run, many, found, at - many)
    start[len(numbers)] = at
    for number in range(len(size)):
        if not placed[number] and size[number] > 0:
            at = _copy(number, at, found, fresh, slots, first, size)
    return start, found


@compiled_loop
def _copy_run(source: Ints, first: int, count: int, target: Ints, at: int) -> None:
    for i in range(count):
        target[at + i] = source[first + i]


@compiled_loop
def _copy(number: int, at: int, found: Ints, fresh: Ints, slots: Ints, first: Ints, size: Ints) -> int:
    """Put the members of one gang at ``found[at:]``; the place behind them."""
    old, count = first[number], size[number]
    if old >= 0:
        _copy_run(slots, old, count, found, at)
    else:
        _copy_run(fresh, -1 - old, count, found, at)
    first[number] = at
    return int(at + count)


@compiled_loop
@from_python
def count_members(
    numbers: Ints, first: Ints, size: Ints, slots: Ints, status: Codes, cls: Index, card: Index, ended: Bools,
    asked: Asked, counts: Ints, held: Ints, idle: Bools, totals: Ints,
) -> None:  # fmt: skip
    """Count some gangs again. O(their members).

    Args:
        numbers: int64, the gangs; ``first``, ``size``, ``slots`` as :func:`lay_out` leaves them.
        status, cls, card: int8, int32, int32 (tasks,). ended: bool by status, who counts no more.
        counts: int64 (statuses, numbers). held: int64 (numbers, card types). idle: bool (numbers,). totals: int64
            (statuses,), sums of ``counts``. All written."""
    for number in numbers:
        for code in range(len(totals)):
            totals[code] -= counts[code, number]
            counts[code, number] = 0
        held[number, :] = 0
        idle[number] = False
        for i in range(first[number], first[number] + size[number]):
            task = slots[i]
            of = cls[task]
            counts[status[task], number] += 1
            totals[status[task]] += 1
            if asked.nothing[of]:
                idle[number] = True
            if not ended[status[task]]:
                kind = card[task] if card[task] >= 0 else asked.first_card[of]
                if kind >= 0:
                    held[number, kind] += asked.milli[of]


@compiled_loop
@from_python
def sum_use(
    numbers: Ints, first: Ints, size: Ints, slots: Ints, chosen: Bools, status: Codes, cls: Index, card: Index,
    charge: Ints, use: Ints,
) -> None:  # fmt: skip
    """Sum what members in the chosen statuses (bool, by status) count against a quota, for some gangs. ``charge``:
    int64 (3, classes), cpu, memory and milli-cards of a task. ``use``: int64 (numbers, 2 + card types), written. The
    rest as in :func:`count_members`."""
    for number in numbers:
        use[number, :] = 0
        for i in range(first[number], first[number] + size[number]):
            task = slots[i]
            if chosen[status[task]]:
                of = cls[task]
                use[number, _CPU] += charge[0, of]
                use[number, _MEMORY] += charge[1, of]
                if card[task] >= 0:
                    use[number, _CARDS + card[task]] += charge[2, of]


@compiled
def queue_sums(use: Ints, numbers: Ints, queue: Index, queues: int) -> Ints:
    """int64 (2 + card types, queues): the sum of ``use`` (by number) over the gangs of each queue. O(gangs).
    ``numbers``, ``queue``: int64, int32 (G,), number and queue by position, -1 = no queue."""
    sums = np.zeros((queues, use.shape[1]), dtype=np.int64)
    for g in range(len(numbers)):
        if queue[g] >= 0:
            for row in range(use.shape[1]):
                sums[queue[g], row] += use[numbers[g], row]
    return sums.T.copy()


@compiled_loop
@from_python
def held_now(
    gangs: Ints, status: Codes, cls: Index, card: Index, ended: Bools, asked: Asked, start: Ints, member: Ints,
    held: Ints,
) -> None:  # fmt: skip
    """Sum the cards of some gangs (by position) again: int64 (G, card types), as :func:`count_members` does."""
    for gang in gangs:
        held[gang, :] = 0
        for i in range(start[gang], start[gang + 1]):
            task = member[i]
            if not ended[status[task]]:
                kind = card[task] if card[task] >= 0 else asked.first_card[cls[task]]
                if kind >= 0:
                    held[gang, kind] += asked.milli[cls[task]]


@compiled
def waiting_members(
    chosen: Bools, count: Ints, wanted: int, status: Codes, start: Ints, member: Ints
) -> tuple[Ints, Ints]:
    """Members in one status of the chosen gangs, gang by gang. O(gangs + members of those that have any). ``chosen``:
    bool (G,). ``count``: int64 (G,), how many members of each gang are in the status ``wanted``. Returns: int64 flat,
    int64 (G + 1,): those of gang g at ``first[g]:first[g + 1]``."""
    first = np.empty(len(chosen) + 1, dtype=np.int64)
    total = 0
    for gang in range(len(chosen)):
        first[gang] = total
        if chosen[gang]:
            total += count[gang]
    first[len(chosen)] = total
    found = np.empty(total, dtype=np.int64)
    for gang in range(len(chosen)):
        at = first[gang]
        if first[gang + 1] > at:
            for i in range(start[gang], start[gang + 1]):
                if status[member[i]] == wanted:
                    found[at] = member[i]
                    at += 1
    return found, first
