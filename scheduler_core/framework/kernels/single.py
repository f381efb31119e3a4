"""One task after the other: places given at once, and taken back."""

from __future__ import annotations

from scheduler_core.algorithms.best_of_blocks import NOWHERE
from scheduler_core.algorithms.compiled import NO, compiled_apart, compiled_loop
from scheduler_core.framework.kernels.columns import Quota, Tables, Views
from scheduler_core.framework.kernels.scores import Scores
from scheduler_core.framework.kernels.turns import (
    ASKS_TASKS,
    NEEDS_LOG,
    Rules,
    Turns,
    is_open,
    place_task,
    take_off,
    take_on,
)
from scheduler_core.framework.kernels.views import ASK_TASK, ASK_WANTED, NEEDS_TASK, NO_TASK, best_node
from scheduler_core.state.status import Ints

# Of an act: what is done, with which task, on which node, with cards of which type, -1 = any.
ACT, TASK, NODE, CARD = range(4)
# Turns of gangs; a task gets the best node; it gets one node; its place becomes a promise; it is taken back.
TURNS, BEST, ON_NODE, PROMISE, TAKE_BACK = range(5)
# A place that becomes a promise changes its node twice.
_CHANGES = 2


@compiled_apart
def do(tables: Tables, quota: Quota, scores: Scores, views: Views, turns: Turns, rules: Rules, act: Ints) -> int:
    """Do one act with one task; 1, 0 when there is no place for it, or what is asked."""
    log, task = tables.log, act[TASK]
    if log.nodes.shape[0] - log.length[0] < _CHANGES:
        return NEEDS_LOG
    if act[ACT] == BEST:
        alone = turns.asks[tables.tasks.gang[task]] & ASKS_TASKS != 0
        return place_task(tables, quota, scores, views, rules, alone, task)
    if act[ACT] == ON_NODE:
        return _place_on(tables, quota, scores, views, rules, act)
    take_off(tables, task, act[ACT] == PROMISE)
    return 1


@compiled_loop
def _place_on(tables: Tables, quota: Quota, scores: Scores, views: Views, rules: Rules, act: Ints) -> int:
    """Allocate a task on one node, where it fits at once."""
    classes, task, node = tables.classes, act[TASK], act[NODE]
    if rules.asks_quota and views.ask[ASK_TASK] != task:
        views.ask[ASK_WANTED] = task
        return NEEDS_TASK
    cls, queue = tables.tasks.cls[task], tables.gangs.queue[tables.tasks.gang[task]]
    for view in range(classes.view_start[cls], classes.view_start[cls + 1]):
        if act[CARD] >= 0 and classes.card[view] != act[CARD]:
            continue
        if not is_open(tables.ledger, quota, classes, views, rules, queue, view):
            continue
        found = best_node(tables.nodes, tables.cards, classes, scores, views, tables.log, view, NO)
        if found < -1:
            return found
        if views.key[views.row[view], node] != NOWHERE:
            return take_on(tables, scores, views, rules, task, view, node, NO)
    views.ask[ASK_TASK] = NO_TASK
    return 0
