"""The score of nodes for a task class, term by term."""

from __future__ import annotations

import math
from typing import NamedTuple

from scheduler_core.algorithms.binpack import packed_part
from scheduler_core.algorithms.capacity_shape import on_line, utilization_with
from scheduler_core.algorithms.compiled import compiled_apart, compiled_loop, from_python
from scheduler_core.algorithms.scoring import evenness, free_percent, off_mean, used_part, used_percent
from scheduler_core.framework.kernels.columns import Cards, Classes, Named, Nodes, Views
from scheduler_core.framework.kernels.fragments import Fragments, fragments_score
from scheduler_core.framework.kernels.terms import BALANCED, FRAGMENTS, LEAST, MOST, OWN, PACK, SHAPE, STATIC
from scheduler_core.state.axes import CPU, MEMORY
from scheduler_core.state.status import Floats, Index

# Rows of ``Views.amounts``: what the nodes have, and what would be used of it, of cpu, memory and cards; a sum.
_HAVE_CPU, _HAVE_MEMORY, _HAVE_CARDS, _USE_CPU, _USE_MEMORY, _USE_CARDS, _OWN = range(7)
AMOUNTS = 7


class Scores(NamedTuple):
    """The terms of the node score, in the order in which the plugins add them (own arrays).

    ``kind`` int32 (terms,); ``weight`` float64 (terms,); ``row_of`` int32 (terms, K), for static terms the row of
    ``rows`` float64 (any, N), for own ones that of ``given`` float64 (own terms, N), -1 = nothing. ``given`` is what
    Python has answered for the nodes of ``Views.where``; ``fragments`` are those of the one term that counts them.
    """

    kind: Index
    weight: Floats
    row_of: Index
    rows: Floats
    given: Floats
    named: Named
    fragments: Fragments


@compiled_apart
@from_python
def score_nodes(
    nodes: Nodes, cards: Cards, classes: Classes, scores: Scores, views: Views, cls: int, count: int
) -> None:
    """Set ``views.value`` of the first ``count`` nodes of ``views.where`` for one class, O(count x terms)."""
    where, table, value = views.where, views.amounts, views.value
    have_cpu, have_memory, have_cards = table[_HAVE_CPU], table[_HAVE_MEMORY], table[_HAVE_CARDS]
    use_cpu, use_memory, use_cards, own = table[_USE_CPU], table[_USE_MEMORY], table[_USE_CARDS], table[_OWN]
    cpu, memory, milli = classes.request[cls, CPU], classes.request[cls, MEMORY], classes.milli[cls]
    all_cpu, free_cpu = nodes.allocatable[CPU], nodes.future[CPU]
    all_memory, free_memory = nodes.allocatable[MEMORY], nodes.future[MEMORY]
    all_cards, free_cards = cards.total, cards.left
    for i in range(count):
        n = where[i]
        have_cpu[i], use_cpu[i] = all_cpu[n], all_cpu[n] - free_cpu[n] + cpu
        have_memory[i], use_memory[i] = all_memory[n], all_memory[n] - free_memory[n] + memory
        have_cards[i], use_cards[i] = all_cards[n], all_cards[n] - free_cards[n] + milli
        own[i] = value[i] = 0.0
    for term in range(scores.kind.shape[0]):
        kind, weight = scores.kind[term], scores.weight[term]
        if kind == STATIC:
            row = scores.row_of[term, cls]
            if row >= 0:
                vector = scores.rows[row]
                for i in range(count):
                    own[i] += vector[where[i]]
        elif kind == LEAST:
            for i in range(count):
                free = free_percent(have_cpu[i], use_cpu[i]) + free_percent(have_memory[i], use_memory[i])
                own[i] += weight * math.floor(free / 2.0)
        elif kind == MOST:
            for i in range(count):
                used = used_percent(have_cpu[i], use_cpu[i]) + used_percent(have_memory[i], use_memory[i])
                own[i] += weight * math.floor(used / 2.0)
        elif kind == BALANCED:
            for i in range(count):
                a, b, c = have_cpu[i], have_memory[i], have_cards[i]
                x, y, z = used_part(a, use_cpu[i]), used_part(b, use_memory[i]), used_part(c, use_cards[i])
                rows = (1.0 if a > 0.0 else 0.0) + (1.0 if b > 0.0 else 0.0) + (1.0 if c > 0.0 else 0.0)
                rows = max(1.0, rows)
                mean = (x + y + z) / rows
                spread = off_mean(a, x, mean) + off_mean(b, y, mean) + off_mean(c, z, mean)
                own[i] += weight * evenness(spread, rows)
        elif kind == PACK:
            for i in range(count):
                own[i] += _packing(nodes, cards, scores.named, term, weight, cls, where[i])
        elif kind == SHAPE:
            for i in range(count):
                own[i] += _on_shape(nodes, cards, scores.named, term, weight, cls, where[i])
        elif kind == FRAGMENTS:
            for i in range(count):
                own[i] += fragments_score(nodes, cards, classes, scores.fragments, cls, where[i]) * weight
        elif kind == OWN:
            for i in range(count):
                own[i] += scores.given[scores.row_of[term, cls], i]
        else:
            for i in range(count):
                value[i] += own[i]
                own[i] = 0.0


@compiled_loop
def score_node(nodes: Nodes, cards: Cards, classes: Classes, scores: Scores, cls: int, node: int) -> float:
    """The score of one node for one class, the first of ``views.where``; the same sum as :func:`score_nodes` makes."""
    a, b, c = float(nodes.allocatable[CPU, node]), float(nodes.allocatable[MEMORY, node]), float(cards.total[node])
    use_cpu = a - nodes.future[CPU, node] + classes.request[cls, CPU]
    use_memory = b - nodes.future[MEMORY, node] + classes.request[cls, MEMORY]
    use_cards = c - cards.left[node] + classes.milli[cls]
    own = total = 0.0
    for term in range(scores.kind.shape[0]):
        kind, weight = scores.kind[term], scores.weight[term]
        if kind == STATIC:
            row = scores.row_of[term, cls]
            if row >= 0:
                own += scores.rows[row, node]
        elif kind == LEAST:
            own += weight * math.floor((free_percent(a, use_cpu) + free_percent(b, use_memory)) / 2.0)
        elif kind == MOST:
            own += weight * math.floor((used_percent(a, use_cpu) + used_percent(b, use_memory)) / 2.0)
        elif kind == BALANCED:
            x, y, z = used_part(a, use_cpu), used_part(b, use_memory), used_part(c, use_cards)
            rows = max(1.0, (1.0 if a > 0.0 else 0.0) + (1.0 if b > 0.0 else 0.0) + (1.0 if c > 0.0 else 0.0))
            mean = (x + y + z) / rows
            own += weight * evenness(off_mean(a, x, mean) + off_mean(b, y, mean) + off_mean(c, z, mean), rows)
        elif kind == PACK:
            own += _packing(nodes, cards, scores.named, term, weight, cls, node)
        elif kind == SHAPE:
            own += _on_shape(nodes, cards, scores.named, term, weight, cls, node)
        elif kind == FRAGMENTS:
            own += fragments_score(nodes, cards, classes, scores.fragments, cls, node) * weight
        elif kind == OWN:
            own += scores.given[scores.row_of[term, cls], 0]
        else:
            total += own
            own = 0.0
    return total


@compiled_loop
def _packing(nodes: Nodes, cards: Cards, named: Named, term: int, scale: float, cls: int, node: int) -> float:
    """100 x scale x sum of the parts / sum of the weights of what is asked for, 0 over capacity."""
    total = filled = 0.0
    for row in range(named.start[term], named.start[term + 1]):
        if named.asked[row, cls] > 0:
            total += named.weight[row]
    if total <= 0.0:
        return 0.0
    for row in range(named.start[term], named.start[term + 1]):
        if named.asked[row, cls] > 0:
            used = _in_use(nodes, cards, named, row, node)
            part = packed_part(used, named.asked[row, cls], named.capacity[row, node], named.weight[row])
            if part < 0.0:
                return 0.0
            filled += part
    return 100.0 * scale * filled / total


@compiled_loop
def _on_shape(nodes: Nodes, cards: Cards, named: Named, term: int, scale: float, cls: int, node: int) -> float:
    """Scale x sum of line(utilization) x weight / sum of the weights."""
    first, last = named.line_start[term], named.line_start[term + 1]
    total = found = 0.0
    for row in range(named.start[term], named.start[term + 1]):
        used = _in_use(nodes, cards, named, row, node)
        full = utilization_with(used, named.asked[row, cls], named.capacity[row, node])
        found += on_line(full, named.at[first:last], named.height[first:last]) * named.weight[row]
        total += named.weight[row]
    return scale * found / total if total > 0.0 else 0.0


@compiled_loop
def _in_use(nodes: Nodes, cards: Cards, named: Named, row: int, node: int) -> int:
    """What is taken once all that leaves has left and all promises are kept; upstream does not count promises."""
    first, last, plain = named.card_start[row], named.card_start[row + 1], named.plain[row]
    if first < last:
        left = 0
        for i in range(first, last):
            card = named.card[i]
            left += cards.left_now[card, node] if named.upstream else cards.left_future[card, node]
        return int(named.capacity[row, node] - left)
    if plain < 0:
        return 0
    return int(nodes.used[plain, node] if named.upstream else named.capacity[row, node] - nodes.future[plain, node])
