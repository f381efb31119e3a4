"""The tables of a session in one object, for a loop that is entered many times: a call hands over one address, not 130
arrays."""

from __future__ import annotations

from scheduler_core.algorithms.compiled import OneAddress, compiled, compiled_object
from scheduler_core.framework.kernels.columns import Cards, Classes, Gangs, Ledger, Log, Nodes, Quota, Tasks, Views
from scheduler_core.framework.kernels.scores import Scores
from scheduler_core.framework.kernels.turns import Rules, Turns, take_turns


@compiled_object
class Held(OneAddress):
    """What :func:`hold` returns."""

    nodes: Nodes
    cards: Cards
    classes: Classes
    tasks: Tasks
    gangs: Gangs
    ledger: Ledger
    quota: Quota
    scores: Scores
    views: Views
    log: Log
    turns: Turns
    rules: Rules


@compiled
def hold(
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
) -> Held:
    """Everything that the turns of gangs read and write."""
    return Held(nodes, cards, classes, tasks, gangs, ledger, quota, scores, views, log, turns, rules)


@compiled
def go_on(held: Held) -> int:
    """As :func:`take_turns`."""
    return take_turns(
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
        held.turns,
        held.rules,
    )
