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
    int32 (V,), its class; ``blocked`` bool (K,), nothing will ever fit; ``mask_now``, ``mask_future`` int32 (V,),
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


class Quota(NamedTuple):
    """What ``allocatable`` tests (own arrays).

    ``limits`` int64 (D, Q), ``NO_LIMIT`` = none; ``named`` bool (K,), the class names its card; ``counted`` bool
    (Q,), the queue counts cards that are not named too.
    """

    limits: Ints
    named: Bools
    counted: Bools


class Scores(NamedTuple):
    """The terms of the node score, in the order in which the plugins add them (own arrays).

    ``kind`` int32 (terms,); ``weight`` float64 (terms,); ``row_of`` int32 (terms, K), for static terms the row of
    ``rows`` float64 (any, N), -1 = nothing.
    """

    kind: Index
    weight: Floats
    row_of: Index
    rows: Floats


class Views(NamedTuple):
    """The nodes as each view ranks them, first where it fits at once, then V more for later (own arrays).

    ``key`` int64 (2V, N), ``bound`` int64 and ``stale`` bool (2V, blocks) as in
    :mod:`scheduler_core.algorithms.best_of_blocks`; ``place`` int64 (2V,), how much of the log it has seen, -1 =
    nothing yet. The rest is scratch: ``seen`` int64, ``where`` int32, ``value`` float64 and ``bits`` int64 (the same
    memory) over nodes, ``amounts`` float64 (any, N).
    """

    key: Ints
    bound: Ints
    stale: Bools
    place: Ints
    seen: Ints
    where: Index
    value: Floats
    bits: Ints
    amounts: Floats


class Log(NamedTuple):
    """Nodes in the order in which they changed: int32 (any,), of which ``length[0]`` entries count."""

    nodes: Index
    length: Ints
