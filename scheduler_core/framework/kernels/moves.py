"""Putting a waiting task on a node and taking it back, in all tables at once.

The same sums as :meth:`scheduler_core.state.cluster.Cluster.move`, for the moves that a turn makes: from waiting to
allocated or promised, from allocated to promised, and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler_core.algorithms.compiled import compiled_loop
from scheduler_core.framework.kernels.columns import Cards, Tables, Tasks
from scheduler_core.model.cards import WORD_BITS
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY
from scheduler_core.state.status import ALLOCATED, PENDING, PIPELINED

# Numba compiles a function anew for a literal.
ADD: Any = np.int64(1)
REMOVE: Any = np.int64(-1)


@compiled_loop
def choose(cards: Cards, tasks: Tasks, task: int, whole: int, share: int, later: bool, wish: int) -> None:
    """Note in ``tasks.words`` the cards that a task takes there: for a share the fullest with room, else the first.

    ``wish``: the card that a share takes instead if it has room, -1 = none. As
    :func:`scheduler_core.state.card_table.choose_cards`; that there is room was tested before.
    """
    card, node = tasks.card[task], tasks.node[task]
    first, wanted, least = cards.start[card, node], 1 if share else whole, MILLI + 1
    found = -1
    for i in range(cards.counts[card, node]):
        row = first + i
        if later:
            free = MILLI - cards.used[row] + cards.releasing[row] - cards.pipelined[row]
        else:
            free = MILLI - cards.used[row] - max(0, cards.pipelined[row] - cards.releasing[row])
        if share:
            if free >= share and (i == wish or free < least):
                found, least = i, free
                if i == wish:
                    break
        elif free >= MILLI and wanted > 0:
            tasks.words[task, i // WORD_BITS] |= 1 << (i % WORD_BITS)
            wanted -= 1
    if share:
        tasks.words[task, found // WORD_BITS] |= 1 << (found % WORD_BITS)


@compiled_loop
def put(tables: Tables, task: int, sign: int) -> None:
    """Add or remove an allocated or promised task at the place that its row says, O(R + cards there).

    ``sign``: :data:`ADD` or :data:`REMOVE`.
    """
    nodes, cards, classes, tasks = tables.nodes, tables.cards, tables.classes, tables.tasks
    gangs, ledger, log = tables.gangs, tables.ledger, tables.log
    cls, node, card, gang = tasks.cls[task], tasks.node[task], tasks.card[task], tasks.gang[task]
    promised = tasks.status[task] == PIPELINED
    for i in range(classes.row_start[cls], classes.row_start[cls + 1]):
        row = classes.rows[i]
        amount = sign * classes.request[cls, row]
        if promised:
            nodes.pipelined[row, node] += amount
        else:
            nodes.used[row, node] += amount
        idle = nodes.allocatable[row, node] - nodes.used[row, node]
        future = idle + nodes.releasing[row, node] - nodes.pipelined[row, node]
        nodes.future[row, node] = future
        nodes.now[row, node] = min(idle, future)
    if card >= 0:
        share = classes.share[cls]
        put_cards(cards, tasks, task, card, node, sign * (share or MILLI), promised)
    log.nodes[log.length[0]] = node
    log.length[0] += 1
    status = PIPELINED if promised else ALLOCATED
    gangs.counts[PENDING, gang] -= sign
    gangs.counts[status, gang] += sign
    gangs.versions[gang] += 2
    if not promised:
        gangs.ready[gang] += sign
        gangs.scheduled[gang] += sign
    queue = gangs.queue[gang]
    column = ledger.pipelined if promised else ledger.allocated
    column[CPU, queue] += sign * classes.charge[0, cls]
    column[MEMORY, queue] += sign * classes.charge[1, cls]
    if card >= 0:
        column[LEDGER_CARDS + card, queue] += sign * classes.charge[2, cls]
    ledger.versions[queue] += 1


@compiled_loop
def put_cards(cards: Cards, tasks: Tasks, task: int, card: int, node: int, each: int, promised: bool) -> None:
    """Change the single cards of one type on one node, and what is left of them."""
    first = cards.start[card, node]
    whole_now, whole_future, best_now, best_future, left_now, left_future = 0, 0, 0, 0, 0, 0
    for i in range(cards.counts[card, node]):
        row = first + i
        if tasks.words[task, i // WORD_BITS] >> (i % WORD_BITS) & 1:
            if promised:
                cards.pipelined[row] += each
            else:
                cards.used[row] += each
        used, releasing, pipelined = cards.used[row], cards.releasing[row], cards.pipelined[row]
        now = MILLI - used - max(0, pipelined - releasing)
        future = MILLI - used + releasing - pipelined
        whole_now += now >= MILLI
        whole_future += future >= MILLI
        best_now, best_future = max(best_now, now), max(best_future, future)
        left_now += max(0, now)
        left_future += max(0, future)
    cards.left[node] += left_future - cards.left_future[card, node]
    cards.whole_now[card, node], cards.whole_future[card, node] = whole_now, whole_future
    cards.best_now[card, node], cards.best_future[card, node] = best_now, best_future
    cards.left_now[card, node], cards.left_future[card, node] = left_now, left_future


@compiled_loop
def forget_place(tasks: Tasks, task: int) -> None:
    """The task waits again."""
    tasks.status[task], tasks.node[task], tasks.card[task] = PENDING, -1, -1
    tasks.words[task, :] = 0
