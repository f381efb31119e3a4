"""A dry run in compiled code: pods put on the first nodes by name that have room, single cards counted.

The rules are those of :mod:`scheduler_core.actions.support.startable`, which asks it.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler_core.algorithms.compiled import YES, compiled_apart, compiled_branchy, from_python, int64
from scheduler_core.framework.kernels.admission import (
    ADMITTED,
    NOT_TESTED,
    Answers,
    Books,
    RowVotes,
    promise,
    test,
)
from scheduler_core.framework.kernels.columns import Bytes
from scheduler_core.model.resources import MILLI
from scheduler_core.state.status import Bools, Index, Ints


class Room(NamedTuple):
    """What is left, and is used up.

    ``nodes`` int64 (2, R, N), milli-CPU, MiB, pods, …, and ``cards`` int64 (2, rows), milli-cards of single cards: free
    once all that leaves has left, and what could be taken back beside it. ``rows`` int32 (2, C, N), the first row of a
    card type on a node, and how many there are. ``kept_…`` are of the same shapes, to come back to.
    """

    nodes: Ints
    cards: Ints
    rows: Index
    kept_nodes: Ints
    kept_cards: Ints


class Shapes(NamedTuple):
    """What equal pods need: ``request`` int64 (S, R); ``of_card`` int64 (S, 2), entirely free cards, and milli-cards of
    one card; ``card`` int32, the card types that will do, those of shape s at ``start[s]:start[s + 1]``; ``allowed``
    bool (S, N)."""

    request: Ints
    of_card: Ints
    start: Index
    card: Index
    allowed: Bools


class Needs(NamedTuple):
    """By gang: its minimum, the parts ``span[g, 0]:span[g, 1]`` of ``part`` int64 (P, 2), a shape and a number of pods;
    a span that ends before it begins = nothing has room for it, ever. ``back`` int8 (G,), it may take back.

    ``most`` int64 (S, 2), without and with what could be taken back: how many of a shape had room when it was counted,
    -1 = not counted. Room only shrinks, so that later it is never more.
    """

    span: Ints
    part: Ints
    back: Bytes
    most: Ints


@compiled_branchy
@from_python
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
    votes: RowVotes,
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
        gang = int64(order[place])
        verdict = test(gang, queue, cpu, memory, card, named, total, odd, books, votes, answers)
        if verdict == NOT_TESTED:
            return place
        if verdict != ADMITTED:
            continue
        if take(gang, room, shapes, needs, YES):
            promise(gang, queue, cpu, memory, card, total, books)
        else:
            later[gang] = True
    return int(order.shape[0])


@compiled_apart
@from_python
def take(gang: int, room: Room, shapes: Shapes, needs: Needs, keep: bool) -> bool:
    """Whether all of a gang's minimum has room; with ``keep`` the room is used up."""
    first, last = needs.span[gang, 0], needs.span[gang, 1]
    if last < first:
        return False
    # What is free comes first; then, for who may take back, all of it together.
    for back in range(1 + needs.back[gang]):
        if _hopeless(first, last, needs, back):
            continue
        several = last - first > 1
        if several:
            _copy(room.nodes, room.cards, room.kept_nodes, room.kept_cards)
        fits = True
        for i in range(first, last):
            shape, wanted = needs.part[i, 0], needs.part[i, 1]
            fits = _put(room, shapes, shape, wanted, back, keep or several, needs.most, i == first)
            if not fits:
                break
        if several and not (fits and keep):
            _copy(room.kept_nodes, room.kept_cards, room.nodes, room.cards)
        if fits:
            return True
    return False


@compiled_branchy
def _hopeless(first: int, last: int, needs: Needs, back: int) -> bool:
    hopeless = False
    for i in range(first, last):
        hopeless |= 0 <= needs.most[needs.part[i, 0], back] < needs.part[i, 1]
    return hopeless


@compiled_branchy
def _copy(nodes: Ints, cards: Ints, to_nodes: Ints, to_cards: Ints) -> None:
    for part in range(2):
        for row in range(nodes.shape[1]):
            for node in range(nodes.shape[2]):
                to_nodes[part, row, node] = nodes[part, row, node]
        for row in range(cards.shape[1]):
            to_cards[part, row] = cards[part, row]


@compiled_branchy
def _put(room: Room, shapes: Shapes, shape: int, wanted: int, back: int, use: bool, most: Ints, note: bool) -> bool:
    """Whether so many pods have room, each node's slots counted first; with ``use`` it is used up.

    With ``note`` it is written down how many had room, where those are too few.
    """
    for using in range(2 if use else 1):
        left = wanted
        for node in range(room.nodes.shape[2]):
            if left <= 0:
                break
            if not shapes.allowed[shape, node]:
                continue
            pods = min(left, _slots(room, shapes, shape, node, back))
            left -= pods
            if using == 1 and pods > 0:
                _use(room, shapes, shape, node, pods, back)
        if left > 0:
            if note:
                most[shape, back] = wanted - left
            return False
    return True


@compiled_branchy
def _slots(room: Room, shapes: Shapes, shape: int, node: int, back: int) -> int:
    """How many such pods one node has room for."""
    most = 1 << 40
    for row in range(room.nodes.shape[1]):
        asked = shapes.request[shape, row]
        if asked > 0:
            left = room.nodes[0, row, node] + back * room.nodes[1, row, node]
            most = min(most, max(0, left) // asked)
            if most == 0:
                return 0
    if shapes.start[shape] == shapes.start[shape + 1]:
        return most
    on_cards = 0
    for i in range(shapes.start[shape], shapes.start[shape + 1]):
        on_cards += _card_slots(room, shapes, shape, shapes.card[i], node, back)
    return min(most, on_cards)


@compiled_branchy
def _card_slots(room: Room, shapes: Shapes, shape: int, card: int, node: int, back: int) -> int:
    whole, share, found = shapes.of_card[shape, 0], shapes.of_card[shape, 1], 0
    first = room.rows[0, card, node]
    for row in range(first, first + room.rows[1, card, node]):
        left = room.cards[0, row] + back * room.cards[1, row]
        if share > 0:
            found += max(0, left) // share
        elif left >= MILLI:
            found += 1
    return found if share > 0 else found // whole


@compiled_branchy
def _use(room: Room, shapes: Shapes, shape: int, node: int, pods: int, back: int) -> None:
    """Use up the room of pods on one node: the card types in order, the cards of a type from the first on."""
    for row in range(room.nodes.shape[1]):
        taken = shapes.request[shape, row] * pods
        if taken > 0:
            free, held = _left(room.nodes[0, row, node], room.nodes[1, row, node], taken, back)
            room.nodes[0, row, node], room.nodes[1, row, node] = free, held
    whole, share = shapes.of_card[shape, 0], shapes.of_card[shape, 1]
    for i in range(shapes.start[shape], shapes.start[shape + 1]):
        card = shapes.card[i]
        here = min(pods, _card_slots(room, shapes, shape, card, node, back))
        pods -= here
        entire = here * whole
        first = room.rows[0, card, node]
        for row in range(first, first + room.rows[1, card, node]):
            both, taken = room.cards[0, row] + back * room.cards[1, row], 0
            if share > 0:
                fits = min(here, max(0, both) // share)
                here -= fits
                taken = fits * share
            elif entire > 0 and both >= MILLI:
                entire -= 1
                taken = MILLI
            if taken > 0:
                free, held = _left(room.cards[0, row], room.cards[1, row], taken, back)
                room.cards[0, row], room.cards[1, row] = free, held


@compiled_branchy
def _left(free: int, held: int, taken: int, back: int) -> tuple[int, int]:
    """What is left of both: what is held is used first where that counts."""
    if back == 0:
        return free - taken, held
    both = free + held - taken
    free = min(free, both)
    return free, both - free
