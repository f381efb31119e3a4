"""Gangs take turns: the best gang of the best queue gets its places or none, until no gang is left.

The same decisions as :class:`scheduler_core.actions.allocate.Allocate` takes gang by gang.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler_core.algorithms.best_of_blocks import NOWHERE
from scheduler_core.algorithms.compiled import compiled_loop
from scheduler_core.algorithms.heap import heap_pop, heap_push
from scheduler_core.framework.kernels.columns import (
    Cards,
    Classes,
    Gangs,
    Ledger,
    Log,
    Nodes,
    Quota,
    Scores,
    Tasks,
    Views,
)
from scheduler_core.framework.kernels.moves import choose, forget_place, put
from scheduler_core.framework.kernels.views import best_node, fits
from scheduler_core.state.axes import CPU, LEDGER_CARDS, MEMORY, NO_LIMIT
from scheduler_core.state.status import ALLOCATED, PENDING, PIPELINED, Bools, Floats, Index, Ints


class Turns(NamedTuple):
    """Who waits, and in which order (own arrays).

    ``task`` int32 flat, waiting tasks in task order, those of gang g at ``start[g]:start[g + 1]``; ``plain`` bool
    (G,), the loop may place the gang; ``before``, ``after`` int64 (G,), ranks in the job order on either side of "is
    ready"; ``gang_at`` int32 (G,), the gang of each rank ``after``; ``heap`` int64 flat, those of queue q at
    ``heap_start[q]`` of which ``heap_size[q]`` wait; ``queue_before``, ``queue_after`` int64 (Q,), ranks in the queue
    order on either side of the share; ``share`` float64 (Q,); ``failed`` int64 (K,), the turn in which the class was
    last refused; ``undo`` int32 (any,), what this turn has placed; ``kept`` bool (G,), the gang got something;
    ``turn`` int64 (1,), a counter.
    """

    task: Index
    start: Ints
    plain: Bools
    before: Ints
    after: Ints
    gang_at: Index
    heap: Ints
    heap_start: Ints
    heap_size: Ints
    queue_before: Ints
    queue_after: Ints
    share: Floats
    failed: Ints
    undo: Index
    kept: Bools
    turn: Ints


class Rules(NamedTuple):
    """What the policy asks for: a gang is ready by its members; it may wait by them; it gives up when its minimum is
    out of reach; readiness is part of the job order; a queue's share is part of the queue order; ``allocatable`` is a
    quota."""

    by_members: bool
    waits_by_members: bool
    gives_up: bool
    ready_orders: bool
    share_orders: bool
    quota: bool


@compiled_loop
def queue_share(ledger: Ledger, limits: Ints, queue: int) -> float:
    """Largest used part of a limit of the queue; 1 where something is used of which nothing is allowed."""
    share = 0.0
    for row in range(limits.shape[0]):
        used, limit = ledger.allocated[row, queue] + ledger.pipelined[row, queue], limits[row, queue]
        if used > 0 and limit < NO_LIMIT:
            share = max(share, used / limit if limit != 0 else 1.0)
    return share


@compiled_loop
def is_ready(gangs: Gangs, rules: Rules, gang: int) -> bool:
    """Enough members are in place."""
    return not rules.by_members or gangs.ready[gang] >= gangs.least[gang]


@compiled_loop
def push(gangs: Gangs, turns: Turns, rules: Rules, gang: int, ready: bool) -> None:
    """Let a gang wait for its turn, at the place that it has now."""
    late = 1 if rules.ready_orders and ready else 0
    key = (turns.before[gang] * 2 + late) * gangs.least.shape[0] + turns.after[gang]
    queue = gangs.queue[gang]
    first = turns.heap_start[queue]
    heap_push(turns.heap[first : turns.heap_start[queue + 1]], turns.heap_size[queue], key)
    turns.heap_size[queue] += 1


@compiled_loop
def push_all(gangs: Gangs, turns: Turns, rules: Rules, waiting: Index, ready: Bools) -> None:
    """Let several gangs wait; ``ready`` bool (G,)."""
    for gang in waiting:
        push(gangs, turns, rules, gang, ready[gang])


@compiled_loop
def next_gang(gangs: Gangs, turns: Turns) -> int:
    """Take the best gang of the best queue, -1 when no gang waits; O(queues + log gangs)."""
    found = -1
    for queue in range(turns.heap_size.shape[0]):
        if turns.heap_size[queue] and (found < 0 or _goes_before(turns, queue, found)):
            found = queue
    if found < 0:
        return -1
    first = turns.heap_start[found]
    key = heap_pop(turns.heap[first : turns.heap_start[found + 1]], turns.heap_size[found])
    turns.heap_size[found] -= 1
    return int(turns.gang_at[key % gangs.least.shape[0]])


@compiled_loop
def _goes_before(turns: Turns, a: int, b: int) -> bool:
    if turns.queue_before[a] != turns.queue_before[b]:
        return bool(turns.queue_before[a] < turns.queue_before[b])
    if turns.share[a] != turns.share[b]:
        return bool(turns.share[a] < turns.share[b])
    return bool(turns.queue_after[a] < turns.queue_after[b])


@compiled_loop
def take_turns(
    nodes: Nodes,
    cards: Cards,
    classes: Classes,
    tasks: Tasks,
    gangs: Gangs,
    ledger: Ledger,
    quota: Quota,
    scores: Scores,
    views: Views,
    log: Log,
    turns: Turns,
    rules: Rules,
) -> int:
    """Serve gangs until one comes that the loop may not place; return it (its turn is the caller's), -1 = all done.

    -2 = ``log.nodes`` may not have room for the next turn.
    """
    while True:
        if log.nodes.shape[0] - log.length[0] < 4 * turns.undo.shape[0]:
            return -2
        gang = next_gang(gangs, turns)
        if gang < 0 or not turns.plain[gang]:
            return gang
        turns.turn[0] += 1
        if not _place_gang(nodes, cards, classes, tasks, gangs, ledger, quota, scores, views, log, turns, rules, gang):
            continue
        queue = gangs.queue[gang]
        if rules.share_orders:
            turns.share[queue] = queue_share(ledger, quota.limits, queue)
        if is_ready(gangs, rules, gang) and _has_more(tasks, turns, gang):
            push(gangs, turns, rules, gang, gangs.ready[gang] >= gangs.least[gang])


@compiled_loop
def _place_gang(
    nodes: Nodes,
    cards: Cards,
    classes: Classes,
    tasks: Tasks,
    gangs: Gangs,
    ledger: Ledger,
    quota: Quota,
    scores: Scores,
    views: Views,
    log: Log,
    turns: Turns,
    rules: Rules,
    gang: int,
) -> bool:
    """One turn; True when something was placed and is kept."""
    turn, placed = turns.turn[0], 0
    for i in range(turns.start[gang], turns.start[gang + 1]):
        task = turns.task[i]
        cls = tasks.cls[task]
        if tasks.status[task] != PENDING or turns.failed[cls] == turn:
            continue
        if place_task(nodes, cards, classes, tasks, gangs, ledger, quota, scores, views, log, rules, task):
            turns.undo[placed] = task
            placed += 1
            if is_ready(gangs, rules, gang):
                break
        else:
            turns.failed[cls] = turn
            if rules.gives_up and needed(gangs, gang) > _left(tasks, turns, gang):
                break
    reached = is_ready(gangs, rules, gang)
    if not rules.by_members or needed(gangs, gang) == 0:
        if not reached:
            for i in range(placed):
                hold(nodes, cards, classes, tasks, gangs, ledger, log, turns.undo[i])
        turns.kept[gang] = True
        return placed > 0
    for i in range(placed - 1, -1, -1):
        task = turns.undo[i]
        put(nodes, cards, classes, tasks, gangs, ledger, log, task, tasks.status[task] == PIPELINED, -1)
        forget_place(tasks, task)
    return False


@compiled_loop
def needed(gangs: Gangs, gang: int) -> int:
    """How many more members it takes to reach minMember, promised ones counted as there."""
    return int(max(0, gangs.least[gang] - gangs.ready[gang] - gangs.counts[PIPELINED, gang]))


@compiled_loop
def _left(tasks: Tasks, turns: Turns, gang: int) -> int:
    """Waiting members of classes that were not refused in this turn."""
    left, turn = 0, turns.turn[0]
    for i in range(turns.start[gang], turns.start[gang + 1]):
        task = turns.task[i]
        left += tasks.status[task] == PENDING and turns.failed[tasks.cls[task]] != turn
    return left


@compiled_loop
def _has_more(tasks: Tasks, turns: Turns, gang: int) -> bool:
    turn = turns.turn[0]
    for i in range(turns.start[gang], turns.start[gang + 1]):
        task = turns.task[i]
        if tasks.status[task] == PENDING and turns.failed[tasks.cls[task]] != turn:
            return True
    return False


@compiled_loop
def hold(
    nodes: Nodes, cards: Cards, classes: Classes, tasks: Tasks, gangs: Gangs, ledger: Ledger, log: Log, task: int
) -> None:
    """What the gang could have at once becomes a promise too: none of its members starts yet."""
    if tasks.status[task] == ALLOCATED:
        put(nodes, cards, classes, tasks, gangs, ledger, log, task, False, -1)
        tasks.status[task] = PIPELINED
        put(nodes, cards, classes, tasks, gangs, ledger, log, task, True, 1)


@compiled_loop
def place_task(
    nodes: Nodes,
    cards: Cards,
    classes: Classes,
    tasks: Tasks,
    gangs: Gangs,
    ledger: Ledger,
    quota: Quota,
    scores: Scores,
    views: Views,
    log: Log,
    rules: Rules,
    task: int,
) -> bool:
    """Allocate the task where it fits at once, else promise it a place; False when there is none."""
    cls, queue = tasks.cls[task], gangs.queue[tasks.gang[task]]
    half = classes.card.shape[0]
    for stage in range(2):
        later = stage == 1
        found, most = -1, NOWHERE
        for view in range(classes.view_start[cls], classes.view_start[cls + 1]):
            if rules.quota and not within(ledger, quota, classes, queue, view):
                continue
            node = best_node(nodes, cards, classes, scores, views, log, view, later)
            if node < 0:
                continue
            score = views.key[view + half if later else view, node]
            if found < 0 or score > most or (score == most and node < found):
                found, most = node, score
        if found < 0:
            continue
        for view in range(classes.view_start[cls], classes.view_start[cls + 1]):
            if rules.quota and not within(ledger, quota, classes, queue, view):
                continue
            if fits(nodes, cards, classes, view, found, later):
                tasks.node[task], tasks.card[task] = found, classes.card[view]
                if classes.card[view] >= 0:
                    choose(cards, tasks, task, classes.card[view], found, classes.whole[cls], classes.share[cls], later)
                tasks.status[task] = PIPELINED if later else ALLOCATED
                put(nodes, cards, classes, tasks, gangs, ledger, log, task, later, 1)
                return True
    return False


@compiled_loop
def within(ledger: Ledger, quota: Quota, classes: Classes, queue: int, view: int) -> bool:
    """The queue's quota has room for one more task on the view's card type."""
    cls, card = classes.of_view[view], classes.card[view]
    for row in (CPU, MEMORY):
        asked = classes.charge[row, cls]
        if asked > 0 and _used(ledger, row, queue) + asked > quota.limits[row, queue]:
            return False
    if card >= 0 and (quota.named[cls] or quota.counted[queue]):
        row = LEDGER_CARDS + card
        return bool(_used(ledger, row, queue) + classes.milli[cls] <= quota.limits[row, queue])
    return True


@compiled_loop
def _used(ledger: Ledger, row: int, queue: int) -> int:
    return int(ledger.allocated[row, queue] + ledger.pipelined[row, queue])
