"""The victim search against every subset, on small cases."""

from __future__ import annotations

from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.algorithms.victims import Freed, Puzzle, Room, Unit


def unit(name, level, work, cards, gang=None, spare=0):
    """``cards``: node -> indices of the cards held there."""
    frees = {node: Freed((), (tuple((card, 1000) for card in held),)) for node, held in cards.items()}
    size = 1000 * sum(len(held) for held in cards.values())
    return Unit(name, gang or name, (0, level), work, size, (), frees, spare)


@st.composite
def puzzles(draw):
    nodes = draw(st.integers(1, 3))
    each = draw(st.integers(1, 4))
    free = {(n, c): True for n in range(nodes) for c in range(each)}
    units = []
    for i in range(draw(st.integers(1, 6))):
        cards: dict[int, list[int]] = {}
        for place in draw(st.lists(st.sampled_from(sorted(free)), unique=True, min_size=1, max_size=4)):
            if free.get(place):
                free[place] = False
                cards.setdefault(place[0], []).append(place[1])
        if cards:
            units.append(unit(f"g{i}", draw(st.integers(0, 2)), draw(st.integers(0, 5)), cards))
    # Every card is held by some unit or by somebody who stays.
    rooms = {n: Room((), (tuple(0 for _ in range(each)),)) for n in range(nodes)}
    return Puzzle([], draw(st.integers(1, each)), 0, [draw(st.integers(1, 4))], rooms, units)


def cost(puzzle, chosen):
    top = max(puzzle.units[i].level for i in chosen)
    return (top, *puzzle.cost(chosen))


@given(puzzles(), st.integers(1, 3))
@settings(max_examples=300, deadline=None)
def test_the_answer_is_the_best_of_all_subsets(puzzle, count):
    everyone = range(len(puzzle.units))
    subsets = chain.from_iterable(combinations(everyone, size) for size in range(1, len(puzzle.units) + 1))
    enough = [list(chosen) for chosen in subsets if puzzle._total(list(chosen)) >= count]
    answer = puzzle.solve(count)
    if not enough:
        assert answer is None
        return
    assert answer is not None
    place = {u.name: i for i, u in enumerate(puzzle.units)}
    chosen = [place[u.name] for u in answer]
    best = min(enough, key=lambda subset: cost(puzzle, subset))
    assert cost(puzzle, chosen)[:4] == cost(puzzle, best)[:4]


def test_most_is_what_fits_when_everybody_leaves():
    rooms = {0: Room((), ((0, 0),))}
    puzzle = Puzzle([], 1, 0, [5], rooms, [unit("a", 0, 1, {0: [0]}), unit("b", 0, 1, {0: [1]})])
    assert puzzle.most() == 2
    assert puzzle.solve(3) is None


def test_the_quota_of_a_card_type_limits_what_it_can_serve():
    freed = Freed((), (((0, 1000),), ()))
    on_second = Freed((), ((), ((0, 1000),)))
    first = Unit("first", "first", (0, 0), 1, 1000, (), {0: freed})
    second = Unit("second", "second", (0, 0), 9, 1000, (), {1: on_second})
    rooms = {0: Room((), ((0,), ())), 1: Room((), ((), (0,)))}
    puzzle = Puzzle([], 1, 0, [0, 1], rooms, [first, second])
    assert [u.name for u in puzzle.solve(1) or []] == ["second"]


def test_only_so_many_members_of_a_surplus_may_go():
    units = [unit(f"g pod-{i}", 0, 1, {0: [i]}, gang="g", spare=1) for i in range(3)]
    puzzle = Puzzle([], 1, 0, [5], {0: Room((), ((0, 0, 0),))}, units)
    assert puzzle.most() == 3  # an upper bound: any of the three may be the one
    assert len(puzzle.solve(1) or []) == 1
    assert puzzle.solve(2) is None


def test_shares_need_room_on_one_card():
    half = Unit("half", "half", (0, 0), 1, 600, (), {0: Freed((), (((0, 600),),))})
    other = Unit("other", "other", (0, 0), 1, 600, (), {0: Freed((), (((1, 600),),))})
    rooms = {0: Room((), ((400, 400),))}
    puzzle = Puzzle([], 0, 800, [5], rooms, [half, other])
    assert len(puzzle.solve(1) or []) == 1
    assert len(puzzle.solve(2) or []) == 2
