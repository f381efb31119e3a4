"""The best of many, after each of many changes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from scheduler_core.algorithms.best_of_blocks import NOWHERE, best, blocks_of, set_all, set_key, sort_key
from scheduler_core.algorithms.heap import heap_pop, heap_push


@pytest.mark.parametrize("size", [0, 1, 2, 63, 64, 65, 130, 500, 4097, 9000])
def test_it_finds_what_looking_at_all_finds(size):
    rng = random.Random(size)
    values = [NOWHERE, 0, 1, 7, -3]
    key = np.array([rng.choice(values) for _ in range(size)], dtype=np.int64)
    bound, stale = np.zeros(blocks_of(size), dtype=np.int64), np.zeros(blocks_of(size), dtype=np.bool_)
    group = np.zeros(blocks_of(len(bound)), dtype=np.int64)
    set_all(key, bound, stale, group)
    for _ in range(300):
        top = max(key.tolist(), default=NOWHERE)
        assert best(key, bound, stale, group) == (key.tolist().index(top) if top > NOWHERE else -1)
        for _ in range(rng.randint(0, 3) if size else 0):
            set_key(key, bound, stale, group, rng.randrange(size), rng.choice(values))


def test_keys_are_in_the_order_of_the_numbers():
    numbers = sorted([0.0, 1.0, -1.0, 1e-300, -1e-300, 1e300, -1e300, 0.1, 100.0, -100.5, np.inf, -np.inf])
    keys = [sort_key(int(np.float64(number).view(np.int64))) for number in numbers]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    assert min(keys) > NOWHERE


def test_a_heap_gives_its_keys_in_order():
    rng = random.Random(0)
    keys = np.array([(rng.randrange(3), rng.randrange(3), number) for number in range(50)], dtype=np.int64)
    heap, size, model = np.zeros(50, dtype=np.int64), 0, []
    for _ in range(2000):
        out = sorted(set(range(50)) - set(model))
        if not out or (model and rng.random() < 0.5):
            assert heap_pop(heap, size, keys) == model.pop(0)
            size -= 1
        else:
            number = rng.choice(out)
            heap_push(heap, size, keys, number)
            model = sorted([*model, number], key=lambda one: tuple(keys[one]))
            size += 1
