"""Compiled search for the cheapest units whose leaving makes room for several equal tasks.

The order of preference is contracts 3.1: highest victim level as low as possible (the caller goes through the levels),
least work lost, fewest gangs, smallest surplus, names. Offers of single nodes, the cheapest first; then units that are
not needed are let go; then a bounded search for something better, which sees every set where there are few units.
A choice that came from one offer is the best there is: every other one holds an offer too, and that costs no less."""

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import NO, YES, compiled_apart, compiled_branchy, compiled_inline, from_python
from scheduler_core.algorithms.victims_choice import (
    BEST,
    NAMES,
    PATH,
    PICKED,
    SEARCH,
    SEEN,
    TOUCHED,
    Choice,
    cheaper,
    cheapest_on,
    key_of,
    may_join,
    offer,
    set_unit,
    take,
    total,
)
from scheduler_core.algorithms.victims_heap import KEY, Heap, before, drop, pop, push
from scheduler_core.algorithms.victims_room import FIRST, LAST, LEVEL, NODE, SINGLE, UNIT_TASK, WHOLE, WORK, Ask, Field

Ints = npt.NDArray[np.int64]

# Up to so many units every set is looked at, so that small cases are exact; beyond, so many sets of the cheapest
# units, so that large ones stay quick.
_EXACT_POOL = 12
_MAX_POOL = 24
_MAX_TESTS = 128
_DEAREST = np.int64(2**62)


@compiled_branchy
@from_python
def fill_heap(field: Field, ask: Ask, choice: Choice, level: int, heap: Heap, nodes: Ints, count: int) -> None:
    """Put ``nodes[:count]`` on the heap at the cost of their cheapest unit; a node that offers no unit is left out."""
    key = choice.keys[1]
    for i in range(count):
        drop(heap, nodes[i])
        if ask.nodes[nodes[i]] and cheapest_on(field, ask, choice, level, nodes[i], key):
            push(heap, key)


@compiled_apart
@from_python
def greedy(field: Field, ask: Ask, limits: Ints, choice: Choice, level: int, heap: Heap, wanted: int) -> int:
    """Begin a search: choose offer after offer until enough fits; how many offers, -1 when nothing is enough."""
    choice.control[SEARCH] += 1
    choice.control[PICKED] = choice.control[TOUCHED] = choice.control[SEEN] = 0
    for option in range(len(limits)):
        choice.sums[0, option] = 0
    key, least, offers = choice.keys[1], choice.keys[2], 0
    while total(choice, limits) < wanted:
        if not pop(heap, least):
            return -1
        node = least[KEY - 1]
        found = offer(field, ask, limits, choice, level, node, key)
        if found and before(least, key):
            # What the heap knew is a bound; only an offer that reaches it is the cheapest.
            push(heap, key)
            continue
        if not found:
            if choice.touched[0, node] != choice.control[SEARCH]:
                choice.touched[2, choice.control[SEEN]] = node
                choice.control[SEEN] += 1
            continue
        offers += 1
        first = choice.control[PICKED]
        for i in range(found):
            take(field, ask, limits, choice, choice.scratch[BEST, i])
        for i in range(first, choice.control[PICKED]):
            # Where some have been chosen the next place may cost less now.
            unit = choice.picked[i]
            for at in range(field.units[unit, FIRST], field.units[unit, LAST]):
                node = field.pieces[field.unit_piece[at], NODE]
                if node >= 0 and ask.nodes[node]:
                    drop(heap, node)
                    if cheapest_on(field, ask, choice, level, node, key):
                        push(heap, key)
    return offers


@compiled_branchy
@from_python
def take_in_order(field: Field, ask: Ask, limits: Ints, choice: Choice, units: Ints, wanted: int, most: int) -> bool:
    """Choose units one after the other, at most so many, until enough fits; True when it does."""
    for i in range(len(units)):
        if choice.chosen[units[i]] or not may_join(field, choice, units[i]) or not useful(field, ask, units[i]):
            continue
        take(field, ask, limits, choice, units[i])
        if total(choice, limits) >= wanted:
            return True
        if choice.control[PICKED] >= most:
            return False
    return False


@compiled_branchy
@from_python
def reprieve(field: Field, ask: Ask, limits: Ints, choice: Choice, wanted: int) -> None:
    """Let go the units that are not needed after all, the highest level and the most work first."""
    units, count = choice.picked, choice.control[PICKED]
    for i in range(1, count):
        place = i
        while place and _dearer(field, units[place], units[place - 1]):
            units[place], units[place - 1] = units[place - 1], units[place]
            place -= 1
    kept = 0
    for i in range(count):
        unit = units[i]
        set_unit(field, ask, limits, choice, unit, NO)
        if total(choice, limits) < wanted:
            set_unit(field, ask, limits, choice, unit, YES)
            units[kept] = unit
            kept += 1
    choice.control[PICKED] = kept


@compiled_inline
def _dearer(field: Field, a: int, b: int) -> bool:
    level = field.units[a, LEVEL] - field.units[b, LEVEL]
    work = field.units[a, WORK] - field.units[b, WORK]
    return level > 0 or (level == 0 and (work > 0 or (work == 0 and a > b)))


@compiled_branchy
@from_python
def let_go(field: Field, ask: Ask, limits: Ints, choice: Choice) -> None:
    for i in range(choice.control[PICKED]):
        set_unit(field, ask, limits, choice, choice.picked[i], NO)
    choice.control[PICKED] = 0


@compiled_branchy
def useful(field: Field, ask: Ask, unit: int) -> bool:
    """True when the unit leaves a node where the tasks may go."""
    column = WHOLE if field.units[unit, UNIT_TASK] < 0 else SINGLE
    for at in range(field.units[unit, FIRST], field.units[unit, LAST]):
        piece = field.unit_piece[at]
        node = field.pieces[piece, NODE]
        if node >= 0 and ask.nodes[node] and field.pieces[piece, column] == unit:
            return True
    return False


@compiled_branchy
@from_python
def cheapest(field: Field, ask: Ask, level: int, most: int, pool: Ints) -> int:
    """The cheapest useful units that cost no more work than ``most``, in order; below 0 when not all had a place."""
    found, all_in = 0, True
    for unit in range(len(field.units)):
        if not ask.ok[unit] or field.units[unit, LEVEL] > level or field.units[unit, WORK] > most:
            continue
        if found == len(pool) and not cheaper(field, ask, unit, pool[found - 1]):
            all_in = False
            continue
        if not useful(field, ask, unit):
            continue
        if found == len(pool):
            all_in = False
            found -= 1
        place = found
        while place and cheaper(field, ask, unit, pool[place - 1]):
            pool[place] = pool[place - 1]
            place -= 1
        pool[place] = unit
        found += 1
    return found if all_in else -found


@compiled_branchy
@from_python
def better(field: Field, ask: Ask, choice: Choice, a: Ints, size: int, b: Ints) -> bool:
    """True when the units ``a[:size]`` cost less than ``b``: work, gangs, amount freed, then names one by one. ``b`` is
    in order of name."""
    key_a, key_b, names = choice.keys[1], choice.keys[2], choice.scratch[NAMES]
    key_of(field, ask, choice, a, size, key_a)
    key_of(field, ask, choice, b, len(b), key_b)
    for i in range(3):
        if key_a[i] != key_b[i]:
            return bool(key_a[i] < key_b[i])
    for i in range(size):
        place = i
        while place and a[i] < names[place - 1]:
            names[place] = names[place - 1]
            place -= 1
        names[place] = a[i]
    for i in range(min(size, len(b))):
        if names[i] != b[i]:
            return bool(names[i] < b[i])
    return size < len(b)


@compiled_branchy
@from_python
def next_better(
    field: Field, ask: Ask, limits: Ints, choice: Choice, wanted: int, pool: Ints, best: Ints, most: int, tests: int
) -> tuple[int, int]:
    """A set of units of ``pool`` that costs less than ``best``, into ``scratch[PATH]``: (its size, tests left). All
    sets in order, cut off where they cost more work than ``most``; size 0 = there is none, or tests ran out. ``best``
    is in order of name, empty = nothing is known yet."""
    path, depth, at, work = choice.scratch[PATH], 0, 0, np.int64(0)
    found = 0
    while True:
        back = at >= len(pool) or tests <= 0 or found > 0
        if not back:
            unit = pool[at]
            at += 1
            if work + field.units[unit, WORK] > most or not may_join(field, choice, unit):
                continue
            set_unit(field, ask, limits, choice, unit, YES)
            work += field.units[unit, WORK]
            path[depth] = unit
            depth += 1
            tests -= 1
            if total(choice, limits) < wanted:
                continue
            if not len(best) or better(field, ask, choice, path, depth, best):
                found = depth
        if not depth:
            return found, tests
        depth -= 1
        last = path[depth]
        set_unit(field, ask, limits, choice, last, NO)
        work -= field.units[last, WORK]
        if back:
            at = 0
            while pool[at] != last:
                at += 1
            at += 1


def solve(field: Field, ask: Ask, limits: Ints, choice: Choice, level: int, heap: Heap, wanted: int) -> Ints:
    """The units up to a level to take for ``wanted`` tasks, in order of name; empty when nothing is enough. ``choice``
    is left empty and ``heap`` complete."""
    offers = greedy(field, ask, limits, choice, level, heap, wanted)
    closed = len(limits) > 1 and bool((limits > 0)[choice.sums[0] >= limits].any())
    if offers < 0:
        # All of them; a gang that may be evicted whole is, instead of member by member.
        everybody = np.flatnonzero(ask.ok & (field.units[:, LEVEL] <= level))
        offers = 2 if take_in_order(field, ask, limits, choice, everybody, wanted, len(everybody) + 1) else 0
    if offers > 1:
        reprieve(field, ask, limits, choice, wanted)
    best = np.sort(choice.picked[: choice.control[PICKED] if offers else 0])
    let_go(field, ask, limits, choice)
    if offers != 1:
        best = _improve(field, ask, limits, choice, level, wanted, best)
    # The nodes that left the heap come back, at the cost of their cheapest unit; so do those that were touched.
    fill_heap(field, ask, choice, level, heap, choice.touched[2], choice.control[SEEN])
    fill_heap(field, ask, choice, level, heap, choice.touched[1], choice.control[TOUCHED])
    if closed:
        # With an option out of quota nodes looked dearer than they may look to the next search.
        fill_heap(field, ask, choice, level, heap, np.arange(len(ask.nodes)), len(ask.nodes))
    return best


def _improve(field: Field, ask: Ask, limits: Ints, choice: Choice, level: int, wanted: int, best: Ints) -> Ints:
    """What the offers of single nodes do not see: gangs that make room on several nodes at once."""
    if best.size and wanted > 1:
        # By work lost for each task that a unit could make room for.
        units = np.flatnonzero(ask.ok & (field.units[:, LEVEL] <= level))
        sizes = field.units[units, ask.size]
        if sizes.min() < sizes.max():
            worth = np.minimum(wanted, np.maximum(1, sizes // ask.need))
            order = units[np.argsort(field.units[units, WORK] / worth, kind="stable")]
            if take_in_order(field, ask, limits, choice, order, wanted, 4 * wanted + _MAX_POOL):
                reprieve(field, ask, limits, choice, wanted)
                size = int(choice.control[PICKED])
                if better(field, ask, choice, choice.picked, size, best):
                    best = np.sort(choice.picked[:size])
            let_go(field, ask, limits, choice)
    most = int(field.units[best, WORK].sum()) if best.size else int(_DEAREST)
    pool: Ints = np.empty(_MAX_POOL, dtype=np.int64)
    found = cheapest(field, ask, level, most, pool)
    tests = 1 << _EXACT_POOL if 0 <= found <= _EXACT_POOL else _MAX_TESTS
    while tests > 0:
        size, tests = next_better(field, ask, limits, choice, wanted, pool[: abs(found)], best, most, tests)
        if not size:
            break
        best = np.sort(choice.scratch[PATH, :size])
        most = int(field.units[best, WORK].sum())
    return best
