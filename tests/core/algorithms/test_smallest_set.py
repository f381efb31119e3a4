"""The cheapest set that is enough, against every set there is."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.algorithms.smallest_set import cost, everything, go_together, smallest_set
from scheduler_core.algorithms.victims import Unit


def whole(name, *, level=0, work=0, size=1):
    return Unit(name, name, (0, level), work, size, ())


def single(gang, name, spare, *, level=0, work=0, size=1):
    return Unit(f"{gang} {name}", gang, (0, level), work, size, (), spare)


def frees(need):
    return lambda units: sum(unit.size for unit in units) >= need


def names(units):
    return None if units is None else [unit.name for unit in units]


def by_trying(units, enough):
    """Every set that may go together."""
    best = None
    for number in range(len(units) + 1):
        for chosen in combinations(units, number):
            if all(go_together(chosen[:n], unit) for n, unit in enumerate(chosen)) and enough(chosen):
                price = (max((unit.level for unit in chosen), default=(0, 0)), cost(chosen))
                best = min(best, price) if best else price
    return best


def nothing_known(pool):
    return None


def test_the_lowest_level_that_is_enough():
    units = [whole("low", level=1, work=9, size=1), whole("high", level=2, work=1, size=4)]
    assert names(smallest_set(units, frees(1), nothing_known)) == ["low"]
    assert names(smallest_set(units, frees(2), nothing_known)) == ["high"]
    assert names(smallest_set(units, frees(5), nothing_known)) == ["high", "low"]
    assert smallest_set(units, frees(6), nothing_known) is None
    assert smallest_set([], frees(0), nothing_known) is None


def test_least_work_then_fewest_gangs_then_least_freed_then_names():
    assert names(smallest_set([whole("a", work=2), whole("b", work=1)], frees(1), nothing_known)) == ["b"]
    units = [whole("a", size=1), whole("b", size=1), whole("c", size=2)]
    assert names(smallest_set(units, frees(2), nothing_known)) == ["c"]
    assert names(smallest_set([whole("a", size=5), whole("b", size=3)], frees(2), nothing_known)) == ["b"]
    assert names(smallest_set([whole("b"), whole("a")], frees(1), nothing_known)) == ["a"]


def test_no_more_members_than_a_gang_can_spare():
    units = [single("g", name, 2) for name in "xyz"]
    assert names(smallest_set(units, frees(2), nothing_known)) == ["g x", "g y"]
    assert smallest_set(units, frees(3), nothing_known) is None
    assert everything([*units, whole("g", size=9)]) == [whole("g", size=9)]


def test_a_start_that_takes_too_many_is_trimmed():
    units = [whole(f"u{i:02}", work=i) for i in range(20)]
    assert names(smallest_set(units, frees(3), list)) == ["u00", "u01", "u02"]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(1, 4)), min_size=1, max_size=7),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(1, 4)), max_size=3),
    st.integers(1, 3),
    st.integers(1, 12),
)
def test_small_cases_are_exact(wholes, singles, spare, need):
    units = [whole(f"w{i}", level=level, work=work, size=size) for i, (level, work, size) in enumerate(wholes)][:6]
    units += [single("g", f"s{i}", spare, level=1, work=work, size=size) for i, (_, work, size) in enumerate(singles)][
        : 8 - len(units)
    ]
    enough = frees(need)
    found, best = smallest_set(units, enough, nothing_known), by_trying(units, enough)
    assert (None if found is None else (max(unit.level for unit in found), cost(found))) == best
