"""How useless what is left of nodes becomes with one more task, and which card a share wastes least.

As :class:`scheduler_core.plugins.fragmentation.Fragmentation` says it.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler_core.algorithms.compiled import compiled_loop, from_python, int64
from scheduler_core.algorithms.fragmentation import Mix, Task, best_card, fullness, growth_score, of_one, take_whole
from scheduler_core.framework.kernels.columns import Cards, Classes, Log, Nodes
from scheduler_core.model.resources import MILLI
from scheduler_core.state.axes import CPU, MEMORY
from scheduler_core.state.status import Floats, Ints

# Of ``Fragments.last``: class, cpu, memory, number of cards; then what is left of each card, and its type.
_CLASS, _CPU, _MEMORY, _SIZE, _CARDS = range(5)


class Fragments(NamedTuple):
    """What the score needs (own arrays).

    ``mix``, the usual tasks; ``most`` int64 (3,), the most cpu, memory and milli-cards of any node; ``before`` float64
    (N,), expected fragmentation of the nodes as of ``place`` int64 (1,) of the log, -1 = not counted yet, no entry = no
    plugin scores by it; ``left``, ``kind`` int64 (cards of a node,), scratch; ``last`` int64 (any,), what was scored
    last, and ``said`` float64 (1,), its score.
    """

    mix: Mix
    most: Ints
    before: Floats
    place: Ints
    left: Ints
    kind: Ints
    last: Ints
    said: Floats


@compiled_loop
@from_python
def bring_up(nodes: Nodes, cards: Cards, fragments: Fragments, log: Log) -> None:
    """Count the fragments of nodes that have changed, O(changes); of all nodes the first time."""
    if fragments.place[0] < 0:
        for node in range(fragments.before.shape[0]):
            fragments.before[node] = _now(nodes, cards, fragments, node)
    else:
        for i in range(fragments.place[0], log.length[0]):
            fragments.before[log.nodes[i]] = _now(nodes, cards, fragments, int64(log.nodes[i]))
    fragments.place[0] = log.length[0]


@compiled_loop
def fragments_score(nodes: Nodes, cards: Cards, classes: Classes, fragments: Fragments, cls: int, node: int) -> float:
    """0 to 101: 50 where nothing changes, more where fragments go; 0 where the task does not fit.

    O(M x cards^2) for a share, else one power less; a node just like the last one has its score.
    """
    cpu = nodes.future[CPU, node] - classes.request[cls, CPU]
    memory = nodes.future[MEMORY, node] - classes.request[cls, MEMORY]
    if cpu < 0 or memory < 0:
        return 0.0
    if not _like_the_last(cards, fragments, cls, node, cpu, memory):
        _note(cards, fragments, cls, node, cpu, memory)
        size = fragments.last[_SIZE]
        fragments.said[0] = _score(fragments, _task(classes, cls), size, cpu, memory, fragments.before[node])
    return float(fragments.said[0])


@compiled_loop
def _like_the_last(cards: Cards, fragments: Fragments, cls: int, node: int, cpu: int, memory: int) -> bool:
    """The class is the one that was scored last, and the node has the same left of everything."""
    last = fragments.last
    if last[_CLASS] != cls or last[_CPU] != cpu or last[_MEMORY] != memory:
        return False
    at = _CARDS
    for card in range(cards.counts.shape[0]):
        first = cards.start[card, node]
        for row in range(first, first + cards.counts[card, node]):
            left = MILLI - cards.used[row] + cards.releasing[row] - cards.pipelined[row]
            if at == last.shape[0] or last[at] != left or last[at + 1] != card:
                return False
            at += 2
    return bool(at == _CARDS + 2 * last[_SIZE])


@compiled_loop
def _note(cards: Cards, fragments: Fragments, cls: int, node: int, cpu: int, memory: int) -> None:
    """Gather the cards of a node and note what is scored."""
    last, size = fragments.last, _gather(cards, fragments, int64(node))
    last[_CLASS], last[_CPU], last[_MEMORY], last[_SIZE] = cls, cpu, memory, size
    for i in range(size):
        last[_CARDS + 2 * i], last[_CARDS + 2 * i + 1] = fragments.left[i], fragments.kind[i]


@compiled_loop
def _score(fragments: Fragments, task: Task, size: int, cpu: int, memory: int, before: float) -> float:
    left, kind, held = fragments.left, fragments.kind, 0
    for i in range(size):
        held += left[i]
    if task.share > 0:
        score, place = best_card(left, kind, size, cpu, memory, before, task, fragments.mix)
        if place < 0:
            return 0.0
        held -= task.share
    elif task.whole == 0 or take_whole(left, kind, size, task):
        score = growth_score(before, of_one(left, kind, size, cpu, memory, fragments.mix))
        held -= task.whole * MILLI
    else:
        return 0.0
    return score + fullness(cpu, memory, held, fragments.most)


@compiled_loop
@from_python
def wished_card(
    nodes: Nodes, cards: Cards, classes: Classes, fragments: Fragments, cls: int, view: int, node: int
) -> int:
    """Number of the card of the view's type where a share wastes least, -1 = none."""
    request = classes.request[cls]
    task = Task(request[CPU], request[MEMORY], classes.whole[cls], classes.share[cls], classes.card[view : view + 1])
    cpu, memory = nodes.future[CPU, node] - task.cpu, nodes.future[MEMORY, node] - task.memory
    size = _gather(cards, fragments, int64(node))
    left, kind, before = fragments.left, fragments.kind, fragments.before[node]
    _, place = best_card(left, kind, size, cpu, memory, before, task, fragments.mix)
    number = 0 if place >= 0 else -1
    for i in range(place):
        if kind[i] == kind[place]:
            number += 1
    return number


@compiled_loop
def _task(classes: Classes, cls: int) -> Task:
    first, last = classes.view_start[cls], classes.view_start[cls + 1]
    request = classes.request[cls]
    return Task(request[CPU], request[MEMORY], classes.whole[cls], classes.share[cls], classes.card[first:last])


@compiled_loop
def _now(nodes: Nodes, cards: Cards, fragments: Fragments, node: int) -> float:
    size = _gather(cards, fragments, int64(node))
    left, kind = fragments.left, fragments.kind
    return of_one(left, kind, size, nodes.future[CPU, node], nodes.future[MEMORY, node], fragments.mix)


@compiled_loop
def _gather(cards: Cards, fragments: Fragments, node: int) -> int:
    """Write what is left of the node's cards of all types, and their types, into scratch; return how many there are."""
    size = 0
    for card in range(cards.counts.shape[0]):
        first = cards.start[card, node]
        for row in range(first, first + cards.counts[card, node]):
            fragments.left[size] = MILLI - cards.used[row] + cards.releasing[row] - cards.pipelined[row]
            fragments.kind[size] = card
            size += 1
    return size
