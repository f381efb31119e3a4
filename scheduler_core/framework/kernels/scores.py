"""The score of nodes for a task class, term by term."""

from __future__ import annotations

import math

from scheduler_core.algorithms.compiled import compiled_loop
from scheduler_core.algorithms.scoring import evenness, free_percent, off_mean, used_part, used_percent
from scheduler_core.framework.kernels.columns import Cards, Classes, Nodes, Scores, Views
from scheduler_core.framework.kernels.terms import BALANCED, LEAST, MOST, STATIC
from scheduler_core.state.axes import CPU, MEMORY

# Rows of ``Views.amounts``: what the nodes have, and what would be used of it, of cpu, memory and cards; a sum.
_HAVE_CPU, _HAVE_MEMORY, _HAVE_CARDS, _USE_CPU, _USE_MEMORY, _USE_CARDS, _OWN = range(7)
AMOUNTS = 7


@compiled_loop
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
        else:
            for i in range(count):
                value[i] += own[i]
                own[i] = 0.0


@compiled_loop
def score_node(nodes: Nodes, cards: Cards, classes: Classes, scores: Scores, cls: int, node: int) -> float:
    """The score of one node for one class; the same sum as :func:`score_nodes` makes."""
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
        else:
            total += own
            own = 0.0
    return total
