"""Queues as a tree, and what each of them may have."""

from __future__ import annotations

import pytest

from scheduler_core.algorithms.hierarchy import QueueTree
from scheduler_core.algorithms.queue_entitlements import (
    Written,
    below_guarantee,
    beyond_line,
    entitlements,
    within_line,
)

#           root
#       a         d
#     b   c       e
NAMES, PARENTS = ["a", "b", "c", "d", "e"], ["root", "a", "a", "", "d"]
A, B, C, D, E = range(5)


def tree(names=NAMES, parents=PARENTS, *, hierarchical=True):
    return QueueTree(names, parents, hierarchical=hierarchical)


class TestTree:
    def test_places(self):
        made = tree()
        assert (made.path(B), made.path(D), made.below(A), made.top) == ([A, B], [D], [A, B, C], [A, D])
        assert [made.common(B, q) for q in (B, C, A, E)] == [2, 1, 1, 0]
        assert [made.leaf(q) for q in range(5)] == [False, True, True, False, True]
        assert made.top_down() == [A, B, C, D, E]

    def test_flat_all_hang_on_the_root(self):
        made = tree(hierarchical=False)
        assert (made.top, made.problems) == ([0, 1, 2, 3, 4], {})
        assert all(made.leaf(q) for q in range(5))

    def test_the_root_may_be_written_and_is_nobodys_child(self):
        made = tree(["root", "a"], ["", "root"])
        assert (made.root, made.top, made.leaf(0), made.leaf(1)) == (0, [1], False, True)

    def test_an_unknown_parent(self):
        made = tree(["a", "b"], ["", "nowhere"])
        assert made.problems == {1: "its parent queue nowhere does not exist"}

    def test_whoever_stands_below_a_broken_place(self):
        made = tree(["a", "b", "c"], ["b", "nowhere", ""])
        assert made.problems[0] == "queue b above it is out of place: its parent queue nowhere does not exist"
        assert list(made.problems) == [1, 0]

    def test_a_circle(self):
        made = tree(["a", "b", "c"], ["c", "a", "b"])
        assert list(made.problems) == [2, 0, 1]
        assert "above its own parent" in made.problems[2]


def worked_out(total, *queues, hierarchical=True):
    """``queues``: (name, parent, capability, guarantee, deserved) of one resource."""
    made = tree([q[0] for q in queues], [q[1] for q in queues], hierarchical=hierarchical)
    written = [Written(name, [cap], [least], [line]) for name, _, cap, least, line in queues]
    return made, entitlements(made, [total], written)


class TestEntitlements:
    def test_flat_as_the_formula_says(self):
        _, lines = worked_out(
            10, ("a", "", 6, 2, 8), ("b", "", None, None, 3), ("c", "", None, 4, None), hierarchical=False
        )
        assert lines.real == [[6], [4], [8]]
        assert lines.deserved == [[6], [3], [4]]

    def test_the_most_is_handed_down(self):
        _, lines = worked_out(
            20,
            ("a", "", 10, None, None),
            ("b", "a", None, 3, None),
            ("c", "a", 8, None, None),
            ("d", "", None, 5, None),
        )
        assert lines.real == [[10], [10], [7], [17]]
        assert lines.guarantee[A] == [3]

    def test_a_parent_deserves_what_its_children_do(self):
        _, lines = worked_out(20, ("a", "", None, None, None), ("b", "a", None, None, 3), ("c", "a", None, None, 4))
        assert lines.deserved == [[7], [3], [4]]

    @pytest.mark.parametrize(
        ("parent", "child", "expected"),
        [
            (("a", "", 5, None, None), ("b", "a", 6, None, None), (5, 0, None)),
            (("a", "", None, 2, None), ("b", "a", None, 3, None), (20, 2, 2)),
            (("a", "", None, None, 2), ("b", "a", None, None, 3), (20, 0, 2)),
        ],
    )
    def test_what_a_child_has_above_its_parent_is_cut(self, parent, child, expected):
        made, lines = worked_out(20, parent, child, ("c", "", None, None, None))
        assert (lines.real[1], lines.guarantee[1], lines.deserved[1]) == tuple([one] for one in expected)
        assert made.problems == {}

    def test_the_ceiling_of_the_root_is_that_of_all(self):
        _, lines = worked_out(20, ("root", "", 12, None, None), ("a", "", None, 3, None), ("b", "", 15, None, None))
        assert lines.real == [[12], [12], [9]]


@pytest.mark.parametrize(
    ("asked", "used", "line", "ours", "upstream"),
    [
        ([2, 0], [1, 9], [3, 1], True, True),
        ([2, 1], [1, 9], [3, 1], False, True),
        ([2, 1], [1, 9], [3, None], True, True),
        ([2, 1], [2, 9], [3, None], False, False),
        ([2, 1], [0, 0], [None, None], False, False),
    ],
)
def test_within_the_line(asked, used, line, ours, upstream):
    assert within_line(asked, used, line, one=False) is ours
    assert within_line(asked, used, line, one=True) is upstream


@pytest.mark.parametrize(
    ("used", "line", "asked", "ours", "upstream"),
    [
        ([4, 4], [3, 9], [1, 0], True, True),
        ([3, 4], [3, 3], [1, 0], False, True),
        ([3, 4], [None, 3], [1, 0], True, True),
        ([3, 3], [None, 3], [1, 0], False, False),
        ([3, 3], [None, None], [1, 0], True, True),
    ],
)
def test_beyond_the_line(used, line, asked, ours, upstream):
    held = [1, 1]
    assert beyond_line(used, line, held, asked, other=False) is ours
    assert beyond_line(used, line, held, asked, other=True) is upstream


@pytest.mark.parametrize(
    ("used", "least", "held", "below"), [(4, 3, 1, False), (4, 3, 2, True), (4, 0, 4, False), (2, 3, 0, False)]
)
def test_below_a_guarantee(used, least, held, below):
    assert below_guarantee([used], [least], [held]) is below
