"""Compiled: what there would be on the nodes of one unit if it left and all others stayed. What leaves is counted by
:mod:`scheduler_core.algorithms.victims_room`, for one unit."""

from scheduler_core.algorithms.compiled import NO, YES, ZERO, compiled_apart, compiled_branchy, from_python
from scheduler_core.algorithms.victims_room import (
    FIRST,
    LAST,
    LEVEL,
    NODE,
    SINGLE,
    UNIT_TASK,
    WHOLE,
    Ask,
    Bools,
    Field,
    Ints,
    capacity,
    card_once_left,
    row_once_left,
)
from scheduler_core.model.resources import MILLI as CARD_MILLI

# So many nodes of a unit are noted, those nearest to enough first.
MOST_NODES = 3
# Entries of a note: tasks that would fit, tasks that look for room, nodes of the unit where they may go.
FITS, WANTED, NODES = 0, 1, 2
_FIRST_NODE = 3
# Entries for each node: which one; card type (0 or more) or resource row r as -(r + 1); what is free there before, what
# the unit frees, what one task needs, and how many fit. In milli-cards or units of the row.
N_NODE, N_WHAT, N_FREE, N_FREES, N_NEEDS, N_FITS = range(6)
NODE_COLUMNS = 6
NOTE = _FIRST_NODE + MOST_NODES * NODE_COLUMNS
# Nothing that can be counted is short.
UNCOUNTED = -(1 << 30)


@compiled_apart
@from_python
def note_alone(
    field: Field, ask: Ask, limits: Ints, unit: int, wanted: int, alone: Bools, fits: Ints, out: Ints
) -> None:
    """Write into ``out`` (NOTE,) how many of ``wanted`` tasks would fit if the unit alone left, and what is short.

    Of cards the amounts are those that the tasks could use: where whole cards are asked for, wholly free ones; where a
    share is asked for, the most that is free on one card. O(pieces of the unit x pieces of a node).

    Args:
        limits: as of ``capacity``. alone: bool (units,), all False, scratch. fits: int64 (options,), scratch."""
    for i in range(len(out)):
        out[i] = 0
    out[WANTED] = wanted
    alone[unit] = True
    level = field.units[unit, LEVEL]
    column = WHOLE if field.units[unit, UNIT_TASK] < 0 else SINGLE
    for at in range(field.units[unit, FIRST], field.units[unit, LAST]):
        piece = field.unit_piece[at]
        node = field.pieces[piece, NODE]
        if node < 0 or not ask.nodes[node] or field.pieces[piece, column] != unit:
            continue
        again = False
        for other in range(field.node_start[node], piece):
            again |= field.pieces[other, column] == unit
        if again:
            continue
        capacity(field, ask, limits, alone, level, node, fits)
        here = ZERO
        for option in range(len(fits)):
            here += fits[option]
        out[FITS] = min(wanted, out[FITS] + here)
        _note_node(field, ask, limits, alone, level, node, here, out)
        out[NODES] += 1
    alone[unit] = False


@compiled_branchy
def _note_node(field: Field, ask: Ask, limits: Ints, alone: Bools, level: int, node: int, fits: int, out: Ints) -> None:
    """Put a node among those that are noted, by how many fit there and by what is short."""
    what, free, after, need = UNCOUNTED, 0, 0, 0
    for option in range(len(ask.types)):
        usable = _usable(field, ask, alone, level, option, node, YES)
        if limits[option] > 0 and (what == UNCOUNTED or usable > after):
            what, after, need = ask.types[option], usable, ask.share or ask.whole * CARD_MILLI
            free = _usable(field, ask, alone, level, option, node, NO)
    if what == UNCOUNTED or (not fits and after >= need):
        for r in range(ask.amounts.shape[1]):
            row = ask.amounts[0, r]
            freed = row_once_left(field, alone, level, row, node)
            if what == UNCOUNTED or freed < ask.amounts[1, r]:
                what, free, after, need = -(row + 1), field.future[row, node], freed, ask.amounts[1, r]
                if after < need:
                    break
    most = min(out[NODES], MOST_NODES)
    place = most
    while place:
        before = _FIRST_NODE + (place - 1) * NODE_COLUMNS
        short = out[before + N_NEEDS] - out[before + N_FREE] - out[before + N_FREES]
        if out[before + N_FITS] > fits or (out[before + N_FITS] == fits and short <= need - after):
            break
        place -= 1
    if place == MOST_NODES:
        return
    for i in range(min(most, MOST_NODES - 1), place, -1):
        for j in range(NODE_COLUMNS):
            out[_FIRST_NODE + i * NODE_COLUMNS + j] = out[_FIRST_NODE + (i - 1) * NODE_COLUMNS + j]
    here = _FIRST_NODE + place * NODE_COLUMNS
    out[here + N_NODE], out[here + N_WHAT], out[here + N_FREE] = node, what, free
    out[here + N_FREES], out[here + N_NEEDS], out[here + N_FITS] = after - free, need, fits


@compiled_branchy
def _usable(field: Field, ask: Ask, alone: Bools, level: int, option: int, node: int, left: bool) -> int:
    """Milli-cards of a type that a task could use on a node, once the unit has left or before."""
    kind, found = ask.types[option], 0
    begin = field.card_at[kind, node, 0]
    for place in range(field.card_at[kind, node, 1]):
        milli = field.card_free[begin + place]
        if left:
            milli = card_once_left(field, alone, level, kind, place, node)
        if ask.share:
            found = max(found, milli)
        elif milli >= CARD_MILLI:
            found += CARD_MILLI
    return found
