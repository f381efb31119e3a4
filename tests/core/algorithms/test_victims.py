"""The victim search against every subset, on small cases."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_core.algorithms import victims_room as r
from scheduler_core.algorithms.victims_choice import new_choice
from scheduler_core.algorithms.victims_heap import new_heap
from scheduler_core.algorithms.victims_search import fill_heap, solve


class Unit(NamedTuple):
    """``cards``: node -> (card, milli-cards) held there; ``spare``: the unit is one of its gang, so many may go."""

    name: str
    level: int
    work: int
    cards: dict[int, list[tuple[int, int]]]
    gang: str = ""
    spare: int = 0


def held(cards: dict[int, list[int]]) -> dict[int, list[tuple[int, int]]]:
    return {node: [(card, 1000) for card in at] for node, at in cards.items()}


class Case:
    """Nodes with cards of some types, all held by units or by a task that stays, and equal tasks that want some.

    ``free`` is by type and node, the milli-cards of each card.
    """

    def __init__(self, free: list[list[list[int]]], whole: int, share: int, limits: list[int], units: list[Unit]):
        self.units = sorted(units, key=lambda unit: unit.name)
        self.limits = np.array(limits, dtype=np.int64)
        nodes = len(free[0])
        gangs = sorted({unit.gang or unit.name for unit in units})
        table = np.zeros((len(units), r.UNIT_COLUMNS), dtype=np.int64)
        pieces: list[list[int]] = []
        of_unit: list[list[int]] = [[] for _ in units]
        for number, unit in enumerate(self.units):
            size = sum(milli for at in unit.cards.values() for _, milli in at)
            gang, single = gangs.index(unit.gang or unit.name), number if unit.spare else -1
            table[number] = [gang, single, unit.level, unit.work, unit.spare, 0, 0, size, 0]
            for node, at in unit.cards.items():
                for card, milli in at:
                    kind = 0 if card < len(free[0][node]) else 1
                    bit = 1 << (card - (len(free[0][node]) if kind else 0))
                    both = (-1, number) if unit.spare else (number, -1)
                    pieces.append([node, *both, 0, kind, milli, 0, 0, 0, 0, -1, 0, bit])
        pieces.sort(key=lambda piece: piece[r.NODE])
        for row, piece in enumerate(pieces):
            of_unit[max(piece[r.WHOLE], piece[r.SINGLE])].append(row)
        flat: list[int] = []
        for number, rows in enumerate(of_unit):
            table[number, [r.FIRST, r.LAST]] = len(flat), len(flat) + len(rows)
            flat += rows
        at = np.zeros((len(free), nodes, 2), dtype=np.int64)
        cards: list[int] = []
        for kind, by_node in enumerate(free):
            for node, there in enumerate(by_node):
                at[kind, node] = len(cards), len(there)
                cards += there
        width = r.WORDS + 1
        array = np.array(pieces, dtype=np.int64).reshape(-1, width)
        start = np.searchsorted(array[:, r.NODE], np.arange(nodes + 1)).astype(np.int64)
        none = np.zeros((1, 1), dtype=np.int64)
        self.field = r.Field(
            array, start, table, np.array(flat, dtype=np.int64), none, np.zeros((1, nodes), dtype=np.int64), at,
            np.array(cards, dtype=np.int64),
        )  # fmt: skip
        self.ask = r.Ask(
            np.zeros((2, 0), dtype=np.int64), np.arange(len(free), dtype=np.int64), np.ones(nodes, dtype=np.bool_),
            np.zeros(nodes, dtype=np.bool_), np.ones(len(units), dtype=np.bool_), whole, share, r.FREES_MILLI,
            1000 * whole or share,
        )  # fmt: skip
        self.choice = new_choice(self.field, len(free), len(gangs))
        self.nodes = nodes

    def total(self, chosen: list[int]) -> int:
        """Tasks that fit when these units leave."""
        ok = np.zeros(len(self.units), dtype=np.bool_)
        ok[chosen] = True
        sums = np.zeros(len(self.limits), dtype=np.int64)
        for node in range(self.nodes):
            out = np.zeros(len(self.limits), dtype=np.int64)
            r.capacity(self.field, self.ask, self.limits, ok, r.NEVER, node, out)
            sums += out
        return int(np.minimum(sums, self.limits).sum())

    def solve(self, count: int) -> list[str] | None:
        """Names of the units to take, level by level."""
        for level in sorted({unit.level for unit in self.units}):
            heap = new_heap(self.nodes)
            fill_heap(self.field, self.ask, self.choice, level, heap, np.arange(self.nodes), self.nodes)
            found = solve(self.field, self.ask, self.limits, self.choice, level, heap, count)
            assert not self.choice.chosen.any()
            assert not self.choice.gangs[:, :2].any()
            if found.size:
                return [self.units[i].name for i in found.tolist()]
        return None

    def cost(self, chosen: list[int]) -> Any:
        units = [self.units[i] for i in chosen]
        size = sum(milli for unit in units for at in unit.cards.values() for _, milli in at)
        work, gangs = sum(unit.work for unit in units), len({unit.gang or unit.name for unit in units})
        return max(unit.level for unit in units), work, gangs, size, sorted(unit.name for unit in units)


@st.composite
def cases(draw):
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
            units.append(Unit(f"g{i}", draw(st.integers(0, 2)), draw(st.integers(0, 5)), held(cards)))
    # Every card is held by some unit or by a task that stays.
    rooms = [[[0] * each for _ in range(nodes)]]
    return Case(rooms, draw(st.integers(1, each)), 0, [draw(st.integers(1, 4))], units)


@given(cases(), st.integers(1, 3))
@settings(max_examples=300, deadline=None)
def test_the_answer_is_the_best_of_all_subsets(case, count):
    everyone = range(len(case.units))
    subsets = chain.from_iterable(combinations(everyone, size) for size in range(1, len(case.units) + 1))
    enough = [list(chosen) for chosen in subsets if case.total(list(chosen)) >= count]
    answer = case.solve(count)
    if not enough:
        assert answer is None
        return
    assert answer is not None
    place = {unit.name: i for i, unit in enumerate(case.units)}
    assert case.cost([place[name] for name in answer]) == min(case.cost(subset) for subset in enough)


def test_what_everybody_holds_is_not_enough():
    case = Case([[[0, 0]]], 1, 0, [5], [Unit("a", 0, 1, held({0: [0]})), Unit("b", 0, 1, held({0: [1]}))])
    assert case.solve(2) == ["a", "b"]
    assert case.solve(3) is None


def test_the_quota_of_a_card_type_limits_what_it_can_serve():
    # Node 0 has a card of the first type, node 1 one of the second, which is the only one with quota left.
    units = [Unit("first", 0, 1, held({0: [0]})), Unit("second", 0, 9, held({1: [0]}))]
    assert Case([[[0], []], [[], [0]]], 1, 0, [0, 1], units).solve(1) == ["second"]


def test_only_so_many_members_of_a_surplus_may_go():
    units = [Unit(f"g pod-{i}", 0, 1, held({0: [i]}), gang="g", spare=1) for i in range(3)]
    case = Case([[[0, 0, 0]]], 1, 0, [5], units)
    assert case.solve(1) == ["g pod-0"]
    assert case.solve(2) is None


def test_where_only_others_stand_in_the_way_room_begins_when_one_leaves():
    # A card of node 0 is free, but who is there keeps the tasks away.
    case = Case([[[1000, 0]]], 1, 0, [5], [Unit("a", 0, 1, held({0: [1]}))])
    assert case.solve(2) is None
    case.ask.blocked[0] = True
    assert case.total([]) == 0
    assert case.solve(1) == ["a"]
    assert case.solve(2) == ["a"]


def test_shares_need_room_on_one_card():
    units = [Unit("half", 0, 1, {0: [(0, 600)]}), Unit("other", 0, 1, {0: [(1, 600)]})]
    case = Case([[[400, 400]]], 0, 800, [5], units)
    assert case.solve(1) == ["half"]
    assert case.solve(2) == ["half", "other"]


def test_gangs_that_make_room_on_several_nodes_go_before_many_small_ones():
    small = [Unit(f"s{i:02}", 0, 2, held({i: [0]})) for i in range(16)]
    wide = [Unit("wide", 0, 9, held({i: [1] for i in range(16)}))]
    case = Case([[[0, 0]] * 16], 1, 0, [99], [*small, *wide])
    assert case.solve(16) == ["wide"]
