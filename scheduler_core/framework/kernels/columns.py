"""What the compiled loops read and write: the arrays of the tables, bundled by table.

Unless said otherwise an array is the table's own, so that what a loop writes the session sees.
Letters: N nodes, R resource rows, C card types, K task classes, V views (one per class and card option, one for a class
that asks for no card), T task slots, G gangs, Q queues, D ledger rows, M distinct node masks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler_core.state.status import Bools, Floats, Index, Ints

Bytes = npt.NDArray[np.int8]


class Nodes(NamedTuple):
    """int64 (R, N) each, see :class:`scheduler_core.state.node_table.NodeTable`."""

    allocatable: Ints
    used: Ints
    releasing: Ints
    pipelined: Ints
    now: Ints
    future: Ints


class Cards(NamedTuple):
    """See :class:`scheduler_core.state.card_table.CardTable`, whose ``count`` is ``counts`` here.

    ``total`` and ``left`` are int64 (N,), milli-cards of all types that a node has, and those free once what leaves has
    left (own arrays).
    """

    start: Index
    counts: Index
    used: Ints
    releasing: Ints
    pipelined: Ints
    whole_now: Ints
    whole_future: Ints
    best_now: Ints
    best_future: Ints
    left_now: Ints
    left_future: Ints
    total: Ints
    left: Ints


class Classes(NamedTuple):
    """Task classes (own arrays).

    ``request`` int64 (K, R); ``rows`` int32 flat, those of class k that are not zero at
    ``row_start[k]:row_start[k+1]``; ``whole``, ``share``, ``milli`` int64 (K,); ``charge`` int64 (3, K); ``card``
    int32 (V,), card type of each view, -1 = none, those of class k at ``view_start[k]:view_start[k+1]``; ``of_view``
    int32 (V,), its class; ``blocked`` bool (K,), nothing will ever fit; ``idle`` bool (K,), asks for nothing, and
    ``volatile`` bool (K,), depends on where other pods are; ``mask_now``, ``mask_future`` int32 (V,),
    rows of ``masks`` bool (M, N): the predicates hold and the node has such cards.
    """

    request: Ints
    row_start: Index
    rows: Index
    whole: Ints
    share: Ints
    milli: Ints
    charge: Ints
    view_start: Index
    card: Index
    of_view: Index
    blocked: Bools
    idle: Bools
    volatile: Bools
    mask_now: Index
    mask_future: Index
    masks: Bools


class Tasks(NamedTuple):
    """See :class:`scheduler_core.state.task_table.TaskTable`; ``words`` is ``indices.words``."""

    status: Bytes
    node: Index
    card: Index
    gang: Index
    cls: Index
    words: Ints


class Gangs(NamedTuple):
    """See :class:`scheduler_core.state.gang_table.GangTable`."""

    queue: Index
    least: Ints
    counts: Ints
    ready: Ints
    scheduled: Ints
    versions: Ints


class Ledger(NamedTuple):
    """See :class:`scheduler_core.state.queue_ledger.QueueLedger`."""

    allocated: Ints
    pipelined: Ints
    versions: Ints


class Rows(NamedTuple):
    """Limits of queues by rows that add up rows of the ledger (own arrays).

    ``start`` int32 (rows + 1,), the ledger rows of row r are ``row[start[r]:start[r + 1]]``; ``limits`` int64 (rows,
    Q), ``NO_LIMIT`` = none.
    """

    start: Index
    row: Index
    limits: Ints


class Quota(NamedTuple):
    """What ``allocatable`` tests (own arrays).

    ``limits`` int64 (D, Q), ``NO_LIMIT`` = none; ``named`` bool (K,), the class names its card; ``counted`` bool
    (Q,), the queue counts cards that are not named too; ``rows``, limits by resource, of which a task of view v asks
    for ``asked`` int64 (rows, V).
    """

    limits: Ints
    named: Bools
    counted: Bools
    rows: Rows
    asked: Ints


class Named(NamedTuple):
    """Resources by the names that a policy uses, those of all terms one after the other (own arrays).

    ``start`` int32 (terms + 1,), the rows of term t at ``start[t]:start[t + 1]``; ``plain`` int32 (rows,), row of the
    node table, -1 = none; ``card`` int32 flat, the card types that row r counts at ``card_start[r]:card_start[r + 1]``;
    ``capacity`` int64 (rows, N); ``asked`` int64 (rows, K); ``weight`` float64 (rows,); ``at``, ``height`` float64
    flat, the points of the line of term t at ``line_start[t]:line_start[t + 1]``; ``upstream``: what leaves counts as
    used, promises do not.
    """

    start: Index
    plain: Index
    card_start: Index
    card: Index
    capacity: Ints
    asked: Ints
    weight: Floats
    line_start: Index
    at: Floats
    height: Floats
    upstream: bool


class Shares(NamedTuple):
    """Dominant shares of gangs, where they order them (own arrays).

    ``total`` int64 (S,), what there is of each row; ``held`` int64 (S, G), what each gang holds or is promised;
    ``asked`` int64 (S, V), what one more task of a view counts; ``value`` float64 (1,) and ``bits`` int64 (1,),
    scratch, the same memory.
    """

    total: Ints
    held: Ints
    asked: Ints
    value: Floats
    bits: Ints


class Views(NamedTuple):
    """The nodes as each view ranks them, first where it fits at once, then V more for later (own arrays).

    ``key`` int64 (rows, N), ``bound`` int64 and ``stale`` bool (rows, blocks), ``group`` int64 (rows, groups) as in
    :mod:`scheduler_core.algorithms.best_of_blocks`; ``row`` int64 (2V,), where each is, -1 = nowhere; ``owner`` int64
    (rows,), whose row it is, and ``used``, when it was asked for last, by ``clock`` int64 (1,); ``place`` int64 (2V,),
    how much of the log it has seen, -1 = nothing yet. ``ask`` int64 (10,), what is asked for, see
    :mod:`scheduler_core.framework.kernels.views`; ``open`` bool (V,), quota by Python's word; ``only`` bool (N,) and
    ``extra`` float64 (N,), where the task that is asked about may be, and what is added to its score; ``wish`` int64
    (words,), the cards that it gets where they have room, none = as usual. The rest is scratch: ``seen`` int64,
    ``where`` int32, ``value`` float64 and ``bits`` int64 (the same memory) over nodes, ``amounts`` float64 (any, N).
    """

    key: Ints
    bound: Ints
    stale: Bools
    group: Ints
    row: Ints
    owner: Ints
    used: Ints
    clock: Ints
    place: Ints
    ask: Ints
    open: Bools
    only: Bools
    extra: Floats
    wish: Ints
    seen: Ints
    where: Index
    value: Floats
    bits: Ints
    amounts: Floats


class Log(NamedTuple):
    """Nodes in the order in which they changed: int32 (any,), of which ``length[0]`` entries count."""

    nodes: Index
    length: Ints


class Tables(NamedTuple):
    """What a move of a task reads and writes."""

    nodes: Nodes
    cards: Cards
    classes: Classes
    tasks: Tasks
    gangs: Gangs
    ledger: Ledger
    log: Log
