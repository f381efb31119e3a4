"""The tables of a session in one object, for a loop that is entered many times: a call hands over one address, not 130
arrays."""

from __future__ import annotations

from scheduler_core.algorithms.compiled import OneAddress, compiled, compiled_object
from scheduler_core.framework.kernels.columns import Quota, Tables, Views
from scheduler_core.framework.kernels.scores import Scores
from scheduler_core.framework.kernels.turns import (
    ASKS_TASKS,
    NEEDS_LOG,
    Rules,
    Turns,
    place_task,
    take_off,
    take_turns,
)
from scheduler_core.framework.kernels.views import ASK_OF, ASK_ON
from scheduler_core.state.status import Ints

# Of ``Held.act``: what is done, with which task, on which node, with cards of which type, -1 = any.
ACT, TASK, NODE, CARD = range(4)
# Turns of gangs; a task gets a place at once; its place becomes a promise; it is taken back.
TURNS, PLACE, PROMISE, TAKE_BACK = range(4)
# A place that becomes a promise changes its node twice.
_CHANGES = 2


@compiled_object
class Held(OneAddress):
    """What :func:`hold` returns."""

    tables: Tables
    quota: Quota
    scores: Scores
    views: Views
    turns: Turns
    rules: Rules
    act: Ints


@compiled
def hold(tables: Tables, quota: Quota, scores: Scores, views: Views, turns: Turns, rules: Rules, act: Ints) -> Held:
    """Everything that is read and written; ``act`` int64 (4,), what to do."""
    return Held(tables, quota, scores, views, turns, rules, act)


@compiled
def go_on(held: Held) -> int:
    """As :func:`take_turns`; or do one act with one task: 1, 0 when there is no place for it, or what is asked."""
    act, log = held.act, held.tables.log
    if act[ACT] == TURNS:
        return take_turns(held.tables, held.quota, held.scores, held.views, held.turns, held.rules)
    if log.nodes.shape[0] - log.length[0] < _CHANGES:
        return NEEDS_LOG
    if act[ACT] == PLACE:
        held.views.ask[ASK_ON], held.views.ask[ASK_OF] = act[NODE], act[CARD]
        asks = held.turns.asks[held.tables.tasks.gang[act[TASK]]] & ASKS_TASKS
        alone = act[NODE] < 0 and asks != 0
        return place_task(held.tables, held.quota, held.scores, held.views, held.rules, alone, act[TASK])
    take_off(held.tables, act[TASK], act[ACT] == PROMISE)
    return 1
