"""Card quota with choices: the vectors of volcano-semantics 4.10 and 9, and a brute-force flow."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.algorithms.card_quota import first_excess

A, H = 0, 1


@pytest.mark.parametrize(("asked", "fits"), [(4, True), (5, True), (6, False)])
def test_job_mode(asked, fits):
    left = [5 - 2, 3 - 1]
    assert (first_excess({(A, H): asked}, {}, left) is None) == fits


def test_a_promised_choice_counts_against_both_of_its_cards():
    assert first_excess({(A,): 3}, {(A, H): 3}, [3, 2]) is not None
    assert first_excess({(A,): 2}, {(A, H): 3}, [3, 2]) is None


def test_an_old_breach_elsewhere_is_not_the_new_ones_fault():
    assert first_excess({(A,): 1}, {}, [1, -5]) is None
    assert first_excess({(H,): 1}, {}, [1, -5]) is not None


def _possible(demands, left):
    """Is there a way to serve the demands, unit by unit?"""
    units = [choice for choice, amount in demands for _ in range(amount)]
    return any(
        all(sum(1 for pick in picks if pick == card) <= have for card, have in enumerate(left))
        for picks in product(*units)
    )


choices = st.sampled_from([(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])


@given(
    choices,
    st.integers(1, 3),
    st.dictionaries(choices, st.integers(1, 2), max_size=2),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
)
def test_against_all_ways_to_serve(choice, amount, promised, left):
    if not _possible(list(promised.items()), left):
        return
    expected = _possible([(choice, amount), *promised.items()], left)
    assert (first_excess({choice: amount}, promised, left) is None) == expected
