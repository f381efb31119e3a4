"""The best of many, after each of many changes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from scheduler_core.algorithms.heap import heap_pop, heap_push
from scheduler_core.algorithms.tournament import NOWHERE, best, change, play_all


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 8, 13, 64, 100])
def test_it_finds_what_looking_at_all_finds(size):
    rng = random.Random(size)
    values = [NOWHERE, 0.0, 1.0, 2.5, -3.0]
    score = np.array([rng.choice(values) for _ in range(size)], dtype=np.float64)
    winner = np.zeros(size, dtype=np.int32)
    play_all(score, winner)
    for _ in range(300):
        top = max(score.tolist(), default=NOWHERE)
        assert best(score, winner) == (score.tolist().index(top) if top > NOWHERE else -1)
        if size:
            change(score, winner, rng.randrange(size), rng.choice(values))


def test_a_heap_gives_its_keys_in_order():
    rng = random.Random(0)
    keys, size, model = np.zeros(50, dtype=np.int64), 0, []
    for _ in range(2000):
        if size and (size == 50 or rng.random() < 0.5):
            assert heap_pop(keys, size) == model.pop(0)
            size -= 1
        else:
            key = rng.randrange(1000)
            heap_push(keys, size, key)
            model = sorted([*model, key])
            size += 1
