"""The tables of a session in one object, for a loop that is entered many times: a call hands over one address, not 130
arrays."""

from __future__ import annotations

from scheduler_core.algorithms.compiled import OneAddress, compiled, compiled_object
from scheduler_core.framework.kernels.columns import Quota, Tables, Views
from scheduler_core.framework.kernels.scores import Scores
from scheduler_core.framework.kernels.single import ACT, TURNS, do
from scheduler_core.framework.kernels.turns import Rules, Turns, take_turns
from scheduler_core.state.status import Ints


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
def hold(
    tables: Tables,
    quota: Quota,
    scores: Scores,
    views: Views,
    turns: Turns,
    rules: Rules,
    act: Ints,
) -> Held:
    """Everything that is read and written; ``act`` int64 (4,), see :mod:`scheduler_core.framework.kernels.single`."""
    return Held(tables, quota, scores, views, turns, rules, act)


@compiled
def go_on(held: Held) -> int:
    """Do what ``act`` says: as :func:`take_turns`, or :func:`do`."""
    if held.act[ACT] == TURNS:
        return take_turns(held.tables, held.quota, held.scores, held.views, held.turns, held.rules)
    return do(held.tables, held.quota, held.scores, held.views, held.turns, held.rules, held.act)
