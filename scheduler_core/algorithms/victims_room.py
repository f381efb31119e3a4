"""Compiled counting of how many equal tasks a node takes once some units have left. A *unit* is something that can be
taken: a whole gang, or one member of a gang's surplus. A *piece* is what one task holds on its node. All amounts are
integers; tables are few and wide, since compiled code is compiled per table."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler_core.algorithms.compiled import compiled_branchy, compiled_inline, from_python
from scheduler_core.model.cards import WORD_BITS
from scheduler_core.model.resources import MILLI as CARD_MILLI

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# More than any node takes: a request that asks a node for nothing countable.
PLENTY = 1 << 30
# The level of what cannot be taken at the moment, above every level that is asked for.
NEVER: Any = np.int64(1 << 30)

# Columns of pieces: where, the units it leaves with (-1 = none), class, card type (-1 = none), milli-cards of each card
# held; then what only the making of units reads; then words of 63 bits with the cards of the node that are held.
NODE, WHOLE, SINGLE, CLS, CARD, EACH = 0, 1, 2, 3, 4, 5
TASK, LOST, MILLI, CPU, ALONE, STAYS = 6, 7, 8, 9, 10, 11
WORDS = 12
# Columns of units. ``UNIT_TASK`` is -1 where the whole gang goes; ``SPARE``: how many single members of the gang may
# go; its pieces are ``unit_piece[FIRST:LAST]``; what it frees in all in milli-cards and in milli-cores.
GANG, UNIT_TASK, LEVEL, WORK, SPARE, FIRST, LAST, FREES_MILLI, FREES_CPU = range(9)
UNIT_COLUMNS = 9


class Field(NamedTuple):
    """Who could leave and what there is.

    Attributes:
        pieces: int64 (P, 12 + words), by node, those without a node last.
        node_start: int64 (N + 1,), the pieces of node ``n`` are rows ``node_start[n]`` to ``node_start[n + 1]``.
        units: int64 (units, 9), in the order of their names. unit_piece: int64, rows of pieces by unit.
        requests: int64 (classes, R). future: int64 (R, N), free once all that leaves has left.
        card_at: int64 (C, N, 2), first row and count of the cards of a type on a node.
        card_free: int64 (rows,), milli-cards free on each card once all that leaves has left."""

    pieces: Ints
    node_start: Ints
    units: Ints
    unit_piece: Ints
    requests: Ints
    future: Ints
    card_at: Ints
    card_free: Ints


class Ask(NamedTuple):
    """Equal tasks that look for room.

    Attributes:
        amounts: int64 (2, r), resource rows and amounts, all > 0.
        types: int64 (options,), card types that will do; empty = no card.
        nodes: bool (N,), where the tasks may go. ok: bool (units,), who may be taken for them.
        blocked: bool (N,), where nothing but other pods refuses them (affinity, ports, spread), so that none fits
            before a unit leaves.
        whole, share: cards that must be entirely free, or milli-cards of one.
        size: column of units by which surplus is measured. need: what one task asks for in the same measure."""

    amounts: Ints
    types: Ints
    nodes: Bools
    blocked: Bools
    ok: Bools
    whole: int
    share: int
    size: int
    need: int


@compiled_inline
def leaves(field: Field, ok: Bools, level: int, piece: int) -> bool:
    """True when the piece leaves with a unit that is ``ok``, of a level up to ``level``."""
    whole, single = field.pieces[piece, WHOLE], field.pieces[piece, SINGLE]
    return bool(
        (whole >= 0 and ok[whole] and field.units[whole, LEVEL] <= level)
        or (single >= 0 and ok[single] and field.units[single, LEVEL] <= level)
    )


@compiled_inline
def row_once_left(field: Field, ok: Bools, level: int, row: int, node: int) -> int:
    """What is free of a resource on a node once the units that are ``ok``, of a level up to ``level``, have left."""
    free = field.future[row, node]
    for piece in range(field.node_start[node], field.node_start[node + 1]):
        if leaves(field, ok, level, piece):
            free += field.requests[field.pieces[piece, CLS], row]
    return int(free)


@compiled_inline
def card_once_left(field: Field, ok: Bools, level: int, kind: int, place: int, node: int) -> int:
    """Milli-cards that are free on one card of a node then; ``place``: which of its cards of the type ``kind``."""
    milli = field.card_free[field.card_at[kind, node, 0] + place]
    word, bit = WORDS + place // WORD_BITS, place % WORD_BITS
    for piece in range(field.node_start[node], field.node_start[node + 1]):
        holds = field.pieces[piece, CARD] == kind and (field.pieces[piece, word] >> bit) & 1
        if holds and leaves(field, ok, level, piece):
            milli += field.pieces[piece, EACH]
    return int(milli)


@compiled_branchy
def _anybody_leaves(field: Field, ok: Bools, level: int, first: int, last: int) -> bool:
    found = False
    for piece in range(first, last):
        found |= leaves(field, ok, level, piece)
    return found


@compiled_branchy
@from_python
def capacity(field: Field, ask: Ask, limits: Ints, ok: Bools, level: int, node: int, out: Ints) -> None:
    """Write into ``out`` how many tasks fit on a node if the units that are ``ok`` and up to a level leave. By card
    option (one entry where no card is asked for), none above its entry of ``limits``, which is what the quota allows.
    O(pieces there x (rows + cards))."""
    first, last = field.node_start[node], field.node_start[node + 1]
    left = np.int64(PLENTY)
    if ask.blocked[node] and not _anybody_leaves(field, ok, level, first, last):
        left = np.int64(0)
    for r in range(ask.amounts.shape[1]):
        left = min(left, row_once_left(field, ok, level, ask.amounts[0, r], node) // ask.amounts[1, r])
    left = max(left, np.int64(0))
    if not len(ask.types):
        out[0] = min(left, limits[0])
        return
    for option in range(len(ask.types)):
        kind = ask.types[option]
        fits = np.int64(0)
        for place in range(field.card_at[kind, node, 1]):
            milli = card_once_left(field, ok, level, kind, place, node)
            if ask.share:
                fits += max(milli, 0) // ask.share
            elif milli >= CARD_MILLI:
                fits += 1
        if not ask.share:
            fits //= ask.whole
        fits = min(fits, left, limits[option])
        left -= fits
        out[option] = fits


@compiled_branchy
@from_python
def capacity_of_all(field: Field, ask: Ask, limits: Ints, level: int, nodes: Ints, out: Ints) -> None:
    """``out`` (len(nodes), options): what each node takes if all units up to a level left."""
    for i in range(len(nodes)):
        for option in range(out.shape[1]):
            out[i, option] = 0
        if ask.nodes[nodes[i]]:
            capacity(field, ask, limits, ask.ok, level, nodes[i], out[i])
