"""Compiled choosing and letting go of units, and the cheapest offer of one node. Choosing a unit brings the count of
tasks that fit up to date on the nodes that it leaves, and nowhere else."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import NO, NONE, YES, ZERO, compiled_branchy, compiled_inline
from scheduler_core.algorithms.victims_heap import KEY, before
from scheduler_core.algorithms.victims_room import (
    FIRST,
    GANG,
    LAST,
    LEVEL,
    NEVER,
    NODE,
    SINGLE,
    SPARE,
    UNIT_TASK,
    WHOLE,
    WORK,
    Ask,
    Field,
    capacity,
)

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Sets of units that are looked at on one node: once one is known that will do, and until then.
_TRIES = 64
_MOST_TRIES = 2048


# Entries of ``Choice.control``: chosen units, touched nodes, nodes that have left the heap, the number of the present
# search and of the last count.
PICKED, TOUCHED, SEEN, SEARCH, COUNT = 0, 1, 2, 3, 4
# Columns of ``Choice.gangs``: taken whole, single members taken, the count that last met the gang.
TAKEN, SINGLES, MET = 0, 1, 2
# Rows of ``Choice.scratch``: units of one node, the best of them, the path of a search, names in order.
HERE, BEST, PATH, NAMES = 0, 1, 2, 3


class Choice(NamedTuple):
    """What is chosen at the moment, and scratch room; empty between two searches.

    Attributes:
        control: int64 (5,). chosen: bool (units,). picked: int64 (units,), in the order in which they were chosen.
        gangs: int64 (G, 3).
        room: int64 (2, N, options), what fits on a node now, and with no unit chosen; valid where the node is touched.
        touched: int64 (3, N), the number of the search that first touched the node; the touched nodes; those that have
            left the heap and are not touched.
        sums: int64 (2, options), how many more tasks fit than with no unit chosen; scratch.
        scratch: int64 (4, units or pieces of a node). keys: int64 (4, 5), scratch."""

    control: Ints
    chosen: Bools
    picked: Ints
    gangs: Ints
    room: Ints
    touched: Ints
    sums: Ints
    scratch: Ints
    keys: Ints


def new_choice(field: Field, options: int, gangs: int) -> Choice:
    units, nodes = len(field.units), field.future.shape[1]
    most = 2 * int(np.diff(field.node_start).max(initial=0)) + 1
    return Choice(
        np.zeros(5, dtype=np.int64), np.zeros(units, dtype=np.bool_), np.zeros(units + 1, dtype=np.int64),
        np.zeros((gangs, 3), dtype=np.int64), np.zeros((2, nodes, options), dtype=np.int64),
        np.zeros((3, nodes), dtype=np.int64), np.zeros((2, options), dtype=np.int64),
        np.zeros((4, max(most, units)), dtype=np.int64), np.zeros((4, KEY), dtype=np.int64),
    )  # fmt: skip


@compiled_inline
def total(choice: Choice, limits: Ints) -> int:
    """Tasks that fit, each option within its limit."""
    fits = np.int64(0)
    for option in range(len(limits)):
        fits += min(choice.sums[0, option], limits[option])
    return int(fits)


@compiled_branchy
def may_join(field: Field, choice: Choice, unit: int) -> bool:
    """May a unit be taken beside the chosen ones (the whole gang or members of it, and not too many)?"""
    gang = field.units[unit, GANG]
    most = field.units[unit, SPARE] if field.units[unit, UNIT_TASK] >= 0 else 1
    return not choice.gangs[gang, TAKEN] and choice.gangs[gang, SINGLES] < most


@compiled_branchy
def mark(field: Field, choice: Choice, unit: int, taken: bool) -> None:
    """Note a unit as chosen or not, without looking at nodes."""
    choice.chosen[unit] = taken
    by = 1 if taken else -1
    # Beside single members the whole gang may not go, and beside the whole gang no member.
    choice.gangs[field.units[unit, GANG], TAKEN if field.units[unit, UNIT_TASK] < 0 else SINGLES] += by


@compiled_branchy
def set_unit(field: Field, ask: Ask, limits: Ints, choice: Choice, unit: int, taken: bool) -> None:
    """Choose a unit or let it go, O(nodes of it x pieces there)."""
    mark(field, choice, unit, taken)
    column = WHOLE if field.units[unit, UNIT_TASK] < 0 else SINGLE
    room, sums, options = choice.room, choice.sums, len(limits)
    previous = np.int64(-1)
    for at in range(field.units[unit, FIRST], field.units[unit, LAST]):
        piece = field.unit_piece[at]
        node = field.pieces[piece, NODE]
        if node < 0 or node == previous or not ask.nodes[node] or field.pieces[piece, column] != unit:
            continue
        previous = node
        new = choice.touched[0, node] != choice.control[SEARCH]
        if new:
            # What fits here without the unit that is being chosen.
            choice.touched[0, node] = choice.control[SEARCH]
            choice.touched[1, choice.control[TOUCHED]] = node
            choice.control[TOUCHED] += 1
        for turn in range(0 if new else 1, 2):
            if turn == 0:
                choice.chosen[unit] = not taken
            else:
                choice.chosen[unit] = taken
            for option in range(options):
                sums[1, option] = room[0, node, option]
            capacity(field, ask, limits, choice.chosen, NEVER, node, room[0, node])
            for option in range(options):
                if turn == 0:
                    room[1, node, option] = room[0, node, option]
                else:
                    sums[0, option] += room[0, node, option] - sums[1, option]


@compiled_inline
def take(field: Field, ask: Ask, limits: Ints, choice: Choice, unit: int) -> None:
    """Choose a unit and note it as picked."""
    set_unit(field, ask, limits, choice, unit, YES)
    choice.picked[choice.control[PICKED]] = unit
    choice.control[PICKED] += 1


@compiled_branchy
def cheaper(field: Field, ask: Ask, a: int, b: int) -> bool:
    """Order of single units: work lost, amount freed, name."""
    work = field.units[a, WORK] - field.units[b, WORK]
    size = field.units[a, ask.size] - field.units[b, ask.size]
    return work < 0 or (work == 0 and (size < 0 or (size == 0 and a < b)))


@compiled_branchy
def units_on(field: Field, ask: Ask, choice: Choice, level: int, node: int) -> int:
    """Write the units of a node that may be taken into ``scratch[HERE]``, the cheapest first; returns how many."""
    here, found = choice.scratch[HERE], 0
    for piece in range(field.node_start[node], field.node_start[node + 1]):
        for column in range(WHOLE, SINGLE + 1):
            unit = field.pieces[piece, column]
            if unit < 0 or not ask.ok[unit] or field.units[unit, LEVEL] > level or choice.chosen[unit]:
                continue
            known = not may_join(field, choice, unit)
            for i in range(found):
                known |= here[i] == unit
            if known:
                continue
            place = found
            while place and cheaper(field, ask, unit, here[place - 1]):
                here[place] = here[place - 1]
                place -= 1
            here[place] = unit
            found += 1
    return found


@compiled_branchy
def cheapest_on(field: Field, ask: Ask, choice: Choice, level: int, node: int, key: Ints) -> bool:
    """The key of the cheapest unit of a node: no offer of the node can come before it. False without any unit."""
    least = NONE
    for piece in range(field.node_start[node], field.node_start[node + 1]):
        for column in range(WHOLE, SINGLE + 1):
            unit = field.pieces[piece, column]
            if unit < 0 or not ask.ok[unit] or field.units[unit, LEVEL] > level or choice.chosen[unit]:
                continue
            if least < 0 or cheaper(field, ask, unit, least):
                least = unit
    if least < 0:
        return False
    key[0], key[1], key[2], key[3], key[4] = field.units[least, WORK], 1, field.units[least, ask.size], least, node
    return True


@compiled_branchy
def gains(field: Field, ask: Ask, limits: Ints, choice: Choice, node: int) -> bool:
    """True when with what is chosen now one more task fits on the node, on an option that has quota left."""
    known = 0 if choice.touched[0, node] == choice.control[SEARCH] else 1
    capacity(field, ask, limits, choice.chosen, NEVER, node, choice.sums[1])
    for option in range(len(limits)):
        if choice.sums[0, option] < limits[option] and choice.sums[1, option] > choice.room[known, node, option]:
            return True
    return False


@compiled_branchy
def key_of(field: Field, ask: Ask, choice: Choice, units: Ints, count: int, key: Ints) -> None:
    """Work, gangs, amount freed and first name of some units, into ``key[:4]``."""
    choice.control[COUNT] += 1
    key[0], key[1], key[2], key[3] = 0, 0, 0, units[0]
    for i in range(count):
        unit = units[i]
        gang = field.units[unit, GANG]
        key[0] += field.units[unit, WORK]
        key[2] += field.units[unit, ask.size]
        key[3] = min(key[3], unit)
        if choice.gangs[gang, MET] != choice.control[COUNT]:
            choice.gangs[gang, MET] = choice.control[COUNT]
            key[1] += 1


@compiled_branchy
def offer(field: Field, ask: Ask, limits: Ints, choice: Choice, level: int, node: int, key: Ints) -> int:
    """The cheapest units of one node that let one more task fit there, into ``scratch[BEST]``; returns how many. Exact
    up to a bound of sets that are tried: every set of units in the order of their cost, cut off where it costs more
    than what is known."""
    here, known = choice.scratch[HERE], 0
    found = units_on(field, ask, choice, level, node)
    if choice.touched[0, node] != choice.control[SEARCH]:
        capacity(field, ask, limits, choice.chosen, NEVER, node, choice.room[1, node])
    key[4] = node
    for i in range(found):
        unit = here[i]
        mark(field, choice, unit, YES)
        enough = gains(field, ask, limits, choice, node)
        mark(field, choice, unit, NO)
        if enough:
            choice.scratch[BEST, 0] = unit
            key[0], key[1], key[2], key[3] = field.units[unit, WORK], 1, field.units[unit, ask.size], unit
            known = 1
            break
    if found < 2 or (known and key[0] < field.units[here[0], WORK] + field.units[here[1], WORK]):
        return known
    return _several(field, ask, limits, choice, node, found, known, key)


@compiled_branchy
def _several(field: Field, ask: Ask, limits: Ints, choice: Choice, node: int, found: int, known: int, key: Ints) -> int:
    """Sets of two and more of ``scratch[HERE]``, against the best single one."""
    here, best, path = choice.scratch[HERE], choice.scratch[BEST], choice.scratch[PATH]
    for i in range(found):
        mark(field, choice, here[i], YES)
    enough = gains(field, ask, limits, choice, node)
    for i in range(found):
        mark(field, choice, here[i], NO)
    if not enough:
        return known
    new = choice.keys[0]
    depth, at, tries, work = ZERO, 0, 0, ZERO
    while True:
        back = at >= found or tries >= (_TRIES if known else _MOST_TRIES)
        if not back:
            unit = here[at]
            at += 1
            if not may_join(field, choice, unit) or (known and work + field.units[unit, WORK] > key[0]):
                continue
            mark(field, choice, unit, YES)
            work += field.units[unit, WORK]
            path[depth] = unit
            depth += 1
            tries += 1
            if not gains(field, ask, limits, choice, node):
                continue
            key_of(field, ask, choice, path, depth, new)
            new[4] = node
            if not known or before(new, key):
                known = depth
                for i in range(depth):
                    best[i] = path[i]
                for i in range(KEY):
                    key[i] = new[i]
        if not depth:
            break
        depth -= 1
        last = path[depth]
        mark(field, choice, last, NO)
        work -= field.units[last, WORK]
        if back:
            at = 0
            while here[at] != last:
                at += 1
            at += 1
    if known > 1:
        # Units that are not needed, the most work first.
        for i in range(known):
            mark(field, choice, best[i], YES)
        place = 0
        for _ in range(known):
            dearest = -1
            for i in range(known):
                if choice.chosen[best[i]] and (
                    dearest < 0 or field.units[best[i], WORK] >= field.units[best[dearest], WORK]
                ):
                    mark(field, choice, best[i], NO)
                    if gains(field, ask, limits, choice, node):
                        dearest = i
                    mark(field, choice, best[i], YES)
            if dearest < 0:
                break
            mark(field, choice, best[dearest], NO)
        for i in range(known):
            if choice.chosen[best[i]]:
                mark(field, choice, best[i], NO)
                best[place] = best[i]
                place += 1
        known = place
        key_of(field, ask, choice, best, known, key)
    return known
