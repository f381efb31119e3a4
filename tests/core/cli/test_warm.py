"""Compiling the engine takes minutes at a first start: it says how far it is."""

import threading

import numba
import numpy as np

from scheduler_core.algorithms.compiled import compilable
from scheduler_core.algorithms.heap import heap_push
from scheduler_core.cli import warm
from tests.waiting import until


def test_the_compiler_says_how_many_functions_of_how_many_and_for_how_long() -> None:
    said: list[str] = []
    threads = threading.active_count()

    def fresh(number: int) -> int:
        return number + 1

    with warm.progress(said.append, every=0.05):
        numba.njit(fresh)(1)  # as Numba's own functions: none of the engine's
        numba.njit(heap_push.py_func)(np.zeros(4, np.int64), 0, np.zeros((2, 1), np.int64), 1)
        both = len(said) + 1  # the next line but one begins after both were compiled
        until(lambda: len(said) > both)
    assert said[-1].startswith(f"compiling the scheduler: 1 of at most {compilable()} functions, ")
    assert said[-1].endswith(" s")
    assert compilable() > 50
    assert threading.active_count() <= threads, "nobody is left who could say more"
