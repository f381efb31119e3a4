"""Compiled scores against the same formulas in whole numbers and plain loops."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from scheduler_core.algorithms.scoring import balanced, least_requested, most_requested
from scheduler_core.model.resources import MAX_CPU_MILLI, MAX_MEMORY_MIB

SIZES = (0, 1, 3, 999, 1000, 8000, 256_000, 2**31, MAX_CPU_MILLI, MAX_CPU_MILLI - 1, MAX_MEMORY_MIB)


def amounts(rng, rows, count):
    have = [[rng.choice(SIZES) for _ in range(count)] for _ in range(rows)]
    use = [[rng.choice((0, 1, h // 3, h // 2, h - 1 if h else 0, h, h + 1, 2 * h)) for h in row] for row in have]
    return np.array(have, dtype=np.int64), np.array(use, dtype=np.int64)


def whole_percent(part, have, use):
    return part(have, use) * 100 // have if have > 0 and use <= have else 0


@pytest.mark.parametrize(
    ("score", "part"), [(least_requested, lambda have, use: have - use), (most_requested, lambda _, use: use)]
)
def test_percents_are_those_of_integer_division(score, part):
    rng = random.Random(1)
    for rows in (1, 2, 3):
        have, use = amounts(rng, rows, 500)
        expected = [
            sum(whole_percent(part, int(have[r, n]), int(use[r, n])) for r in range(rows)) // rows for n in range(500)
        ]
        assert score(have, use).tolist() == expected


def test_evenness_is_that_of_the_rows_that_a_node_has():
    rng = random.Random(2)
    have, use = amounts(rng, 3, 500)
    for n, score in enumerate(balanced(have, use).tolist()):
        parts = [min(Fraction(1), Fraction(int(u), int(h))) for h, u in zip(have[:, n], use[:, n], strict=True) if h]
        count = max(1, len(parts))
        mean = sum(parts, Fraction(0)) / count
        exact = (1 - math.sqrt(sum((part - mean) ** 2 for part in parts) / count)) * 100
        assert score == pytest.approx(exact, abs=1.0)
        assert 0 <= score <= 100
        assert score == math.floor(score)


def test_a_slice_of_a_larger_table_scores_the_same():
    have, use = amounts(random.Random(3), 3, 40)
    for score in (least_requested, most_requested, balanced):
        assert score(have[:, ::2], use[:, ::2]).tolist() == score(have, use)[::2].tolist()
