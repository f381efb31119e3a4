"""Scores of nodes in a session against the same formulas in whole numbers and plain loops."""

from __future__ import annotations

import random
import statistics
from fractions import Fraction

import pytest

from scheduler_core.model.resources import MAX_CPU_MILLI, MAX_MEMORY_MIB
from scheduler_core.plugins.nodeorder import NodeOrder
from tests.core.open_session import view_of
from tests.core.plugins.opening import opened
from tests.core.small_cluster import gang, node, snapshot, training

SIZES = (0, 1, 3, 999, 1000, 8000, 256_000, 2**31, MAX_CPU_MILLI, MAX_CPU_MILLI - 1, MAX_MEMORY_MIB)
KINDS = LEAST, MOST, BALANCED = "leastrequested.weight", "mostrequested.weight", "balancedresource.weight"


def amounts(seed):
    """Milli-cores, MiB and milli-cards that 500 nodes have, and those in use."""
    rng = random.Random(seed)
    have = [(rng.choice(SIZES), rng.choice(SIZES), rng.choice((0, 1000, 3000))) for _ in range(500)]
    plain = [[max(0, rng.choice((0, h // 3, h - 2, h - 1, h, 2 * h, rng.randint(0, h)))) for h in a[:2]] for a in have]
    return have, [(*u, rng.choice((0, h[2] // 3, h[2]))) for h, u in zip(have, plain, strict=True)]


def scored(have, used, *kinds, asked=1):
    """The plugin with some scores alone, and its view of a pod that asks for so much of everything."""
    nodes = [node(f"{n:03}", c // 1000, cpu=a, memory=b) for n, (a, b, c) in enumerate(have)]
    held = [gang(f"h{n}", 1, c / 1000, "training", on=[f"{n:03}"], cpu=a, memory=b) for n, (a, b, c) in enumerate(used)]
    given = snapshot(nodes, [training()], *held, gang("x", 1, asked / 1000, "training", cpu=asked, memory=asked))
    plugin = opened(NodeOrder, given, **{name: int(name in kinds) for name in (*KINDS, "tainttoleration.weight")})
    return plugin, view_of(plugin.kept, "x-0")


@pytest.mark.parametrize(("kind", "part"), [(LEAST, lambda have, use: have - use), (MOST, lambda _, use: use)])
def test_percents_are_those_of_integer_division(kind, part):
    have, used = amounts(1)
    rows = [[(h[i], u[i] + 1) for i in (0, 1)] for h, u in zip(have, used, strict=True)]
    expected = [sum(part(h, u) * 100 // h if u <= h else 0 for h, u in row) // 2 for row in rows]
    assert scored(have, used, kind)[1].score.tolist() == expected


def test_evenness_is_that_of_the_rows_that_a_node_has():
    have, used = amounts(2)
    for h3, u3, score in zip(have, used, scored(have, used, BALANCED)[1].score.tolist(), strict=True):
        parts = [min(Fraction(1), Fraction(u + 1, h)) for h, u in zip(h3, u3, strict=True) if h]
        assert score == pytest.approx(100 - 100 * statistics.pstdev(parts or [0]), abs=1.0)
        assert score in range(101)


def test_some_of_the_nodes_score_as_they_do_among_all():
    plugin, view = scored(*amounts(3), *KINDS)
    for where in (slice(None, None, 2), view.score.argsort()):
        assert plugin.node_order(view.cls, where).tolist() == view.score[where].tolist()


@pytest.mark.parametrize(("kind", "expected"), [(LEAST, [75, 50]), (MOST, [25, 50]), (BALANCED, [100, 50])])
def test_scores_by_hand(kind, expected):
    assert scored([(4000, 8000, 0)] * 2, [(1000, 2000, 0), (4000, 0, 0)], kind, asked=0)[1].score.tolist() == expected
