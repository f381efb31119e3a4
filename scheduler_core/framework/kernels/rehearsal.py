"""A dry run in compiled code: pods put on the first nodes by name that have room, single cards counted.

The rules are those of :mod:`scheduler_core.actions.support.startable`, which asks it.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler_core.algorithms.compiled import compiled_apart, compiled_loop
from scheduler_core.framework.kernels.admission import ADMITTED, NOT_TESTED, Answers, Books, promise, test
from scheduler_core.framework.kernels.columns import Bytes
from scheduler_core.model.resources import MILLI
from scheduler_core.state.status import Bools, Index, Ints


class Room(NamedTuple):
    """What is left, and is used up.

    ``free``, ``held`` int64 (R, N), milli-CPU, MiB, pods, …: free once all that leaves has left, and what could be
    taken back beside it; ``free_cards``, ``held_cards`` int64 (rows,), milli-cards of single cards. ``first``,
    ``number`` int32 (C, N), the rows of a card type on a node. The ``kept_…`` are of the same shapes, to come back to.
    """

    free: Ints
    held: Ints
    free_cards: Ints
    held_cards: Ints
    first: Index
    number: Index
    kept_free: Ints
    kept_held: Ints
    kept_free_cards: Ints
    kept_held_cards: Ints


class Shapes(NamedTuple):
    """What equal pods need: ``request`` int64 (S, R); ``whole``, ``share`` int64 (S,), entirely free cards, and
    milli-cards of one card; ``card`` int32, the card types that will do, those of shape s at ``start[s]:start[s + 1]``;
    ``allowed`` bool (S, N)."""

    request: Ints
    whole: Ints
    share: Ints
    start: Index
    card: Index
    allowed: Bools


class Needs(NamedTuple):
    """By gang: its minimum as ``count`` int64 pods of ``shape`` int32, those of gang g at ``first[g]:last[g]``, int64
    (G,); ``last`` below ``first`` = nothing has room for it, ever. ``back`` int8 (G,), it may take back.

    ``most`` int64 (S, 2), without and with what could be taken back: how many of a shape had room when it was counted,
    -1 = not counted. Room only shrinks, so that later it is never more.
    """

    first: Ints
    last: Ints
    shape: Index
    count: Ints
    back: Bytes
    most: Ints


@compiled_loop
def which(gangs: Index, room: Room, shapes: Shapes, needs: Needs, found: Bools) -> None:
    """Note in ``found``, bool (len(gangs),), which of the gangs has room, each as if it were alone."""
    for place in range(gangs.shape[0]):
        found[place] = take(gangs[place], room, shapes, needs, False)


@compiled_loop
def rehearse(
    order: Index,
    first: int,
    queue: Index,
    cpu: Ints,
    memory: Ints,
    card: Index,
    named: Ints,
    total: Ints,
    odd: Bools,
    books: Books,
    answers: Answers,
    room: Room,
    shapes: Shapes,
    needs: Needs,
    later: Bools,
) -> int:
    """As :func:`scheduler_core.framework.kernels.admission.admit`, but who has no room is put off.

    Such a gang is noted in ``later``, bool (G,), and promised nothing.

    Returns:
        The place of the first gang that the caller must test; the length of ``order`` = none is left.
    """
    for place in range(first, order.shape[0]):
        gang = order[place]
        verdict = test(gang, queue, cpu, memory, card, named, total, odd, books, answers)
        if verdict == NOT_TESTED:
            return place
        if verdict != ADMITTED:
            continue
        if take(gang, room, shapes, needs, True):
            promise(gang, queue, cpu, memory, card, total, books)
        else:
            later[gang] = True
    return int(order.shape[0])


@compiled_apart
def take(gang: int, room: Room, shapes: Shapes, needs: Needs, keep: bool) -> bool:
    """Whether all of a gang's minimum has room; with ``keep`` the room is used up."""
    if needs.last[gang] < needs.first[gang]:
        return False
    return _fit(gang, room, shapes, needs, False, keep) or (
        needs.back[gang] > 0 and _fit(gang, room, shapes, needs, True, keep)
    )


@compiled_apart
def _fit(gang: int, room: Room, shapes: Shapes, needs: Needs, back: bool, keep: bool) -> bool:
    first, last = needs.first[gang], needs.last[gang]
    column = 1 if back else 0
    for i in range(first, last):
        most = needs.most[needs.shape[i], column]
        if 0 <= most < needs.count[i]:
            return False
    several = last - first > 1
    if several:
        _copy(room.free, room.kept_free)
        _copy(room.held, room.kept_held)
        _copy_row(room.free_cards, room.kept_free_cards)
        _copy_row(room.held_cards, room.kept_held_cards)
    fits = True
    for i in range(first, last):
        found = _count(room, shapes, needs.shape[i], needs.count[i], back)
        if found < needs.count[i]:
            if i == first:
                needs.most[needs.shape[i], column] = found
            fits = False
            break
        if keep or several:
            _use(room, shapes, needs.shape[i], needs.count[i], back)
    if several and not (fits and keep):
        _copy(room.kept_free, room.free)
        _copy(room.kept_held, room.held)
        _copy_row(room.kept_free_cards, room.free_cards)
        _copy_row(room.kept_held_cards, room.held_cards)
    return fits


@compiled_loop
def _copy(source: Ints, target: Ints) -> None:
    for row in range(source.shape[0]):
        for node in range(source.shape[1]):
            target[row, node] = source[row, node]


@compiled_loop
def _copy_row(source: Ints, target: Ints) -> None:
    for row in range(source.shape[0]):
        target[row] = source[row]


@compiled_apart
def _count(room: Room, shapes: Shapes, shape: int, wanted: int, back: bool) -> int:
    """How many such pods have room, not counted any further than ``wanted``."""
    found = 0
    for node in range(room.free.shape[1]):
        if shapes.allowed[shape, node]:
            found += _slots(room, shapes, shape, node, back)
            if found >= wanted:
                return wanted
    return found


@compiled_loop
def _slots(room: Room, shapes: Shapes, shape: int, node: int, back: bool) -> int:
    most = 1 << 40
    for row in range(room.free.shape[0]):
        asked = shapes.request[shape, row]
        if asked > 0:
            left = room.free[row, node] + (room.held[row, node] if back else 0)
            most = min(most, max(0, left) // asked)
            if most == 0:
                return 0
    if shapes.start[shape] == shapes.start[shape + 1]:
        return most
    on_cards = 0
    for i in range(shapes.start[shape], shapes.start[shape + 1]):
        on_cards += _card_slots(room, shapes, shape, shapes.card[i], node, back)
    return min(most, on_cards)


@compiled_loop
def _card_slots(room: Room, shapes: Shapes, shape: int, card: int, node: int, back: bool) -> int:
    share, found = shapes.share[shape], 0
    first = room.first[card, node]
    for row in range(first, first + room.number[card, node]):
        left = room.free_cards[row] + (room.held_cards[row] if back else 0)
        if share > 0:
            found += max(0, left) // share
        elif left >= MILLI:
            found += 1
    return found if share > 0 else found // shapes.whole[shape]


@compiled_apart
def _use(room: Room, shapes: Shapes, shape: int, wanted: int, back: bool) -> None:
    """Use up the room of ``wanted`` pods, which have it."""
    for node in range(room.free.shape[1]):
        if wanted == 0:
            return
        if not shapes.allowed[shape, node]:
            continue
        pods = min(wanted, _slots(room, shapes, shape, node, back))
        if pods == 0:
            continue
        wanted -= pods
        for row in range(room.free.shape[0]):
            asked = shapes.request[shape, row]
            if asked > 0:
                free = room.free[row, node]
                room.free[row, node] = free - asked * pods
                if back:
                    both = free + room.held[row, node] - asked * pods
                    room.free[row, node] = min(free, both)
                    room.held[row, node] = both - room.free[row, node]
        _use_cards(room, shapes, shape, node, pods, back)


@compiled_loop
def _use_cards(room: Room, shapes: Shapes, shape: int, node: int, pods: int, back: bool) -> None:
    """Take the cards of ``pods`` pods on one node, the types in order, the cards of a type from the first on."""
    share, whole = shapes.share[shape], shapes.whole[shape]
    for i in range(shapes.start[shape], shapes.start[shape + 1]):
        card = shapes.card[i]
        here = min(pods, _card_slots(room, shapes, shape, card, node, back))
        pods -= here
        entire = here * whole
        first = room.first[card, node]
        for row in range(first, first + room.number[card, node]):
            left = room.free_cards[row] + (room.held_cards[row] if back else 0)
            if share > 0:
                fits = min(here, max(0, left) // share)
                here -= fits
                _take_of(room, row, fits * share, back)
            elif entire > 0 and left >= MILLI:
                entire -= 1
                _take_of(room, row, MILLI, back)


@compiled_loop
def _take_of(room: Room, row: int, amount: int, back: bool) -> None:
    free = room.free_cards[row]
    room.free_cards[row] = free - amount
    if back:
        both = free + room.held_cards[row] - amount
        room.free_cards[row] = min(free, both)
        room.held_cards[row] = both - room.free_cards[row]
