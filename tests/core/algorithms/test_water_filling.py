"""Water-filling: the vectors of volcano-semantics 9, exactness and what must hold of every answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.algorithms.water_filling import Claim, real_capability, water_filling

NO_LIMIT = 2**62


def fill(total, *claims):
    """``claims``: (weight, request) or (weight, request, limit, guarantee) of one resource."""
    made = [Claim(w, [r], [rest[0] if rest else NO_LIMIT], [rest[1] if rest else 0]) for w, r, *rest in claims]
    return [amounts[0] for amounts in water_filling([total], made)]


@pytest.mark.parametrize(
    ("total", "claims", "deserved"),
    [
        (9, [(1, 1), (2, 10)], [1, 8]),
        (9, [(1, 1, 9, 4), (2, 10, 5, 0)], [4, 5]),
        (9, [(1, 10), (2, 10)], [3, 6]),
        (10, [(1, 20), (1, 20), (1, 20)], [3, 3, 3]),
        (8, [(1, 20), (1, 20), (1, 0)], [4, 4, 0]),
        (9, [(1, 2), (1, 2)], [2, 2]),
        (9, [(1, 20, 2, 0), (1, 20)], [2, 7]),
        (0, [(1, 2)], [0]),
        (9, [], []),
    ],
)
def test_what_each_deserves(total, claims, deserved):
    assert fill(total, *claims) == deserved


def test_rounds_lose_nothing():
    """Three thirds of what is left are all of it, however often thirds were taken before."""
    claims = [(1, 100), (1, 100), (1, 100), (4, 1), (9, 2), (13, 3)]
    assert fill(36, *claims) == [10, 10, 10, 1, 2, 3]


def test_wishes_that_cross_end():
    """One wants the first resource, one the second: all of each goes to who wants it, in so many rounds as can be."""
    claims = [Claim(1, [9, 1], [NO_LIMIT] * 2, [0, 0]), Claim(1, [1, 9], [NO_LIMIT] * 2, [0, 0])]
    assert water_filling([8, 8], claims) == [[7, 1], [1, 7]]


def test_a_guarantee_comes_before_what_others_leave():
    """Four each, the first raised to five; the three that are left are shared on top of that."""
    assert fill(12, (1, 12, NO_LIMIT, 5), (1, 12), (1, 0)) == [6, 5, 0]


def test_each_resource_is_shared_by_itself():
    claims = [Claim(1, [8, 0], [NO_LIMIT] * 2, [0, 0]), Claim(1, [8, 6], [NO_LIMIT] * 2, [0, 0])]
    assert water_filling([10, 10], claims) == [[5, 0], [5, 6]]


@pytest.mark.parametrize(
    ("total", "guaranteed", "own", "capability", "real"),
    [(9, 4, 4, None, 9), (9, 4, 0, None, 5), (9, 4, 0, 3, 3), (9, 12, 2, None, 2), (9, 0, 0, 0, 0)],
)
def test_the_most_that_a_queue_may_use(total, guaranteed, own, capability, real):
    assert real_capability([total], [guaranteed], [own], [capability]) == [real]


@given(
    total=st.integers(0, 10**9),
    claims=st.lists(st.tuples(st.integers(1, 65535), st.integers(0, 10**9), st.integers(0, 10**9)), max_size=12),
)
def test_nobody_gets_more_than_it_asks_for_and_nothing_is_left_that_somebody_wants(total, claims):
    deserved = fill(total, *((w, r, limit, 0) for w, r, limit in claims))
    wanted = [min(r, limit) for _, r, limit in claims]
    assert all(0 <= d <= w for d, w in zip(deserved, wanted, strict=True))
    assert sum(deserved) <= total
    assert sum(deserved) >= min(total, sum(wanted)) - len(claims)
