"""One task after the other: places given at once, and taken back."""

from __future__ import annotations

from scheduler_core.algorithms.best_of_blocks import NOWHERE
from scheduler_core.algorithms.compiled import compiled
from scheduler_core.framework.kernels.held import Held
from scheduler_core.framework.kernels.turns import ASKS_TASKS, NEEDS_LOG, is_open, place_task, take_off, take_on
from scheduler_core.framework.kernels.views import ASK_TASK, ASK_WANTED, NEEDS_TASK, NO_TASK, best_node

# A place that becomes a promise changes its node twice.
_CHANGES = 2


@compiled
def place_one(held: Held, task: int) -> int:
    """Allocate the task on the best node where it fits at once; 1, 0 when there is none, or what is asked."""
    if held.log.nodes.shape[0] - held.log.length[0] < _CHANGES:
        return NEEDS_LOG
    alone = held.turns.asks[held.tasks.gang[task]] & ASKS_TASKS != 0
    return place_task(
        held.nodes,
        held.cards,
        held.classes,
        held.tasks,
        held.gangs,
        held.ledger,
        held.quota,
        held.scores,
        held.views,
        held.log,
        held.rules,
        alone,
        task,
    )


@compiled
def place_on(held: Held, task: int, node: int, card: int) -> int:
    """As :func:`place_one`, on one node; ``card``: of this type only, -1 = of any."""
    classes, views, log, rules = held.classes, held.views, held.log, held.rules
    if log.nodes.shape[0] - log.length[0] < _CHANGES:
        return NEEDS_LOG
    if rules.asks_quota and views.ask[ASK_TASK] != task:
        views.ask[ASK_WANTED] = task
        return NEEDS_TASK
    cls, queue = held.tasks.cls[task], held.gangs.queue[held.tasks.gang[task]]
    for view in range(classes.view_start[cls], classes.view_start[cls + 1]):
        if card >= 0 and classes.card[view] != card:
            continue
        if not is_open(held.ledger, held.quota, classes, views, rules, queue, view):
            continue
        found = best_node(held.nodes, held.cards, classes, held.scores, views, log, view, False)
        if found < -1:
            return found
        if views.key[views.row[view], node] != NOWHERE:
            return take_on(
                held.nodes,
                held.cards,
                classes,
                held.tasks,
                held.gangs,
                held.ledger,
                held.scores,
                views,
                log,
                rules,
                task,
                view,
                node,
                False,
            )
    views.ask[ASK_TASK] = NO_TASK
    return 0


@compiled
def give_back(held: Held, task: int, promise: bool) -> int:
    """Take back a place or a promise, or turn a place into a promise; 1, or what is asked."""
    log = held.log
    if log.nodes.shape[0] - log.length[0] < _CHANGES:
        return NEEDS_LOG
    take_off(held.nodes, held.cards, held.classes, held.tasks, held.gangs, held.ledger, log, task, promise)
    return 1
