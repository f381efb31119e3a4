"""Compiled making of the tables of units and pieces from the tables of a session, and their repair."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled, compiled_branchy, from_python
from scheduler_core.algorithms.victims_room import (
    ALONE,
    CARD,
    CLS,
    CPU,
    EACH,
    FIRST,
    FREES_CPU,
    FREES_MILLI,
    GANG,
    LAST,
    LEVEL,
    LOST,
    MILLI,
    NEVER,
    NODE,
    SINGLE,
    SPARE,
    STAYS,
    TASK,
    UNIT_TASK,
    WHOLE,
    WORDS,
    WORK,
    Bools,
    Field,
    Ints,
)
from scheduler_core.model.resources import MILLI as CARD_MILLI


class Tasks(NamedTuple):
    """The tasks in place, as columns over all tasks of a session.

    Attributes:
        at: int64 (P,), those that are in place and have a gang.
        gang, node, cls, card, alone: int32 (tasks,); ``alone`` is the unit of the single member, or -1.
        words: int64 (tasks, W). began: float64 (tasks,), seconds. stays: bool (tasks,), says that it must not go.
        kinds: int64 (classes, 3), milli-cards, milli-cores, milli-cards of each card held."""

    at: Ints
    gang: npt.NDArray[np.int32]
    node: npt.NDArray[np.int32]
    cls: npt.NDArray[np.int32]
    card: npt.NDArray[np.int32]
    alone: npt.NDArray[np.int32]
    words: Ints
    began: npt.NDArray[np.float64]
    stays: Bools
    kinds: Ints


@compiled
def make_pieces(tasks: Tasks, now: float, nodes: int, whole: Ints, units: Ints) -> tuple[Ints, Ints, Ints]:
    """(pieces, node_start, unit_piece) of a field; writes which pieces each unit has, O(tasks + nodes + units).
    ``whole``: int64 (G,), the unit of each whole gang. ``units``: int64 (units, 9)."""
    start = np.zeros(nodes + 1, dtype=np.int64)
    for i in range(len(tasks.at)):
        task = tasks.at[i]
        units[whole[tasks.gang[task]], LAST] += 1
        if tasks.alone[task] >= 0:
            units[tasks.alone[task], LAST] += 1
        if tasks.node[task] >= 0:
            start[tasks.node[task] + 1] += 1
    for n in range(nodes):
        start[n + 1] += start[n]
    size = np.int64(0)
    for unit in range(len(units)):
        size += units[unit, LAST]
        units[unit, FIRST] = units[unit, LAST] = size - units[unit, LAST]
    unit_piece = np.empty(size, dtype=np.int64)
    place, loose = start[:-1].copy(), start[nodes]
    pieces = np.empty((len(tasks.at), WORDS + tasks.words.shape[1]), dtype=np.int64)
    for i in range(len(tasks.at)):
        task = tasks.at[i]
        node, cls, unit, alone = tasks.node[task], tasks.cls[task], whole[tasks.gang[task]], tasks.alone[task]
        if node >= 0:
            at = place[node]
            place[node] += 1
        else:
            at = loose
            loose += 1
        since = np.rint((now - tasks.began[task]) * 1000.0)
        pieces[at, NODE], pieces[at, WHOLE], pieces[at, SINGLE] = node, -1, -1
        pieces[at, CLS], pieces[at, CARD], pieces[at, EACH] = cls, tasks.card[task], tasks.kinds[cls, 2]
        pieces[at, TASK], pieces[at, ALONE], pieces[at, STAYS] = task, alone, tasks.stays[task]
        pieces[at, LOST] = np.int64(max(since, 0.0)) * tasks.kinds[cls, 0]
        pieces[at, MILLI], pieces[at, CPU] = tasks.kinds[cls, 0], tasks.kinds[cls, 1]
        for word in range(tasks.words.shape[1]):
            pieces[at, WORDS + word] = tasks.words[task, word]
        unit_piece[units[unit, LAST]] = at
        units[unit, LAST] += 1
        if alone >= 0:
            unit_piece[units[alone, LAST]] = at
            units[alone, LAST] += 1
    return pieces, start, unit_piece


@compiled_branchy
@from_python
def load_unit(
    field: Field, unit: int, status: npt.NDArray[np.int8], charged: Bools, running: int, barred: Bools, level: Ints
) -> None:
    """Write the unit of a whole gang, and those of its single members, as they are now; O(members)."""
    gang = field.units[unit, GANG]
    work, milli, cpu, there = np.int64(0), np.int64(0), np.int64(0), 0
    whole = not barred[gang]
    for at in range(field.units[unit, FIRST], field.units[unit, LAST]):
        piece = field.unit_piece[at]
        if charged[status[field.pieces[piece, TASK]]]:
            there += 1
            work += field.pieces[piece, LOST]
            milli += field.pieces[piece, MILLI]
            cpu += field.pieces[piece, CPU]
            whole = whole and not field.pieces[piece, STAYS]
    whole = whole and there > 0
    field.units[unit, LEVEL] = level[gang] if whole else NEVER
    field.units[unit, WORK], field.units[unit, FREES_MILLI], field.units[unit, FREES_CPU] = work, milli, cpu
    for at in range(field.units[unit, FIRST], field.units[unit, LAST]):
        piece = field.unit_piece[at]
        now = status[field.pieces[piece, TASK]]
        field.pieces[piece, WHOLE] = unit if whole and charged[now] else -1
        alone = field.pieces[piece, ALONE]
        if alone >= 0:
            may = (
                now == running and not field.pieces[piece, STAYS] and not barred[gang] and field.units[unit, SPARE] > 0
            )
            field.pieces[piece, SINGLE] = alone if may else -1
            field.units[alone, LEVEL] = level[gang] if may else NEVER
            field.units[alone, SPARE], field.units[alone, WORK] = field.units[unit, SPARE], field.pieces[piece, LOST]
            field.units[alone, FREES_MILLI] = field.pieces[piece, MILLI]
            field.units[alone, FREES_CPU] = field.pieces[piece, CPU]


@compiled_branchy
@from_python
def load_all(
    field: Field, status: npt.NDArray[np.int8], charged: Bools, running: int, barred: Bools, level: Ints
) -> None:
    """Write the units of every gang, O(pieces)."""
    for unit in range(len(field.units)):
        if field.units[unit, UNIT_TASK] < 0:
            load_unit(field, unit, status, charged, running, barred, level)


@compiled
def gangs_on(
    field: Field, status: npt.NDArray[np.int8], running: int, gang: npt.NDArray[np.int32], nodes: Bools, gangs: int
) -> Bools:
    """bool (G,): gangs with a running member on one of the nodes, O(pieces)."""
    found = np.zeros(gangs, dtype=np.bool_)
    for piece in range(len(field.pieces)):
        node, task = field.pieces[piece, NODE], field.pieces[piece, TASK]
        if node >= 0 and nodes[node] and status[task] == running:
            found[gang[task]] = True
    return found


@compiled_branchy
@from_python
def free_cards(card_at: Ints, nodes: Ints, used: Ints, releasing: Ints, pipelined: Ints, free: Ints) -> None:
    """Bring the free milli-cards of the cards of some nodes up to date, O(cards there)."""
    for i in range(len(nodes)):
        for card in range(card_at.shape[0]):
            first = card_at[card, nodes[i], 0]
            for row in range(first, first + card_at[card, nodes[i], 1]):
                free[row] = CARD_MILLI - used[row] + releasing[row] - pipelined[row]
