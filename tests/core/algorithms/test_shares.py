"""Dominant shares, exactly, and over a tree of queues."""

from __future__ import annotations

from fractions import Fraction

import pytest

from scheduler_core.algorithms.dominant_share import dominant_share, may_take
from scheduler_core.algorithms.hierarchical_share import ShareTree, read_path


@pytest.mark.parametrize(
    ("held", "total", "share"),
    [
        ([2, 1], [10, 10], Fraction(1, 5)),
        ([1, 3], [10, 9], Fraction(1, 3)),
        ([0, 0], [10, 0], Fraction(0)),
        ([0, 1], [10, 0], Fraction(1)),
        ([], [], Fraction(0)),
    ],
)
def test_the_largest_part_counts(held, total, share):
    assert dominant_share(held, total) == share


@pytest.mark.parametrize(
    ("mine", "theirs", "allowed"),
    [
        (Fraction(1, 4), Fraction(1, 3), True),
        (Fraction(1, 3), Fraction(1, 3), True),
        (Fraction(1, 3) + Fraction(1, 10**6), Fraction(1, 3), True),
        (Fraction(1, 3) + Fraction(2, 10**6), Fraction(1, 3), False),
        (Fraction(1, 2), Fraction(1, 3), False),
    ],
)
def test_who_may_take(mine, theirs, allowed):
    assert may_take(mine, theirs) is allowed


class TestTree:
    """The tree of the H-DRF paper: n1 with one user, n2 with two below it, all on two resources of 10."""

    def tree(self, **held):
        tree = ShareTree([10, 10])
        for number, (name, path) in enumerate(
            {"a": [("n1", 1)], "b": [("n2", 1), ("b", 1)], "c": [("n2", 1), ("c", 1)]}.items()
        ):
            tree.add_queue(number, path)
            tree.set_gang(number, number, held.get(name, [0, 0]), [10, 10])
        tree.settle()
        return tree

    def test_the_poorer_side_goes_first(self):
        tree = self.tree(a=[3, 0], b=[1, 0], c=[1, 0])
        assert max(range(3), key=tree.key) == 0

    def test_siblings_count_as_the_poorest_of_them(self):
        """b has 4 and c 2: scaled to the poorer one the branch holds 2 + 2 of different things, not 6."""
        tree = self.tree(a=[3, 0], b=[4, 0], c=[0, 2])
        assert tree.key(1)[1] == (False, 0.2)
        assert sorted(range(3), key=tree.key) == [2, 1, 0]

    def test_weights_divide(self):
        tree = ShareTree([10])
        tree.add_queue(0, [("a", 1)])
        tree.add_queue(1, [("b", 3)])
        tree.set_gang(0, 0, [2], [9])
        tree.set_gang(1, 1, [3], [9])
        tree.settle()
        assert tree.key(1) < tree.key(0)

    def test_who_can_get_nothing_more_goes_last(self):
        tree = ShareTree([10, 10])
        for queue in (0, 1):
            tree.add_queue(queue, [(str(queue), 1)])
        tree.set_gang(0, 0, [1, 0], [1, 0])
        tree.set_gang(1, 1, [5, 0], [9, 0])
        tree.settle()
        assert tree.key(1) < tree.key(0)
        tree.set_gang(1, 1, [9, 0], [10, 0])
        tree.settle()
        assert tree.key(0) < tree.key(1), "the cluster is full: both wait for nothing"

    def test_a_change_is_seen_up_to_the_root_and_taken_back(self):
        tree = self.tree(a=[3, 0], b=[1, 0], c=[1, 0])
        before = [tree.key(q) for q in range(3)]
        tree.set_gang(2, 2, [5, 0], [10, 10])
        tree.settle()
        assert [tree.key(q) for q in range(3)] != before
        tree.set_gang(2, 2, [1, 0], [10, 10])
        tree.settle()
        assert [tree.key(q) for q in range(3)] == before


@pytest.mark.parametrize(
    ("text", "weights", "path"),
    [
        ("root/sci/dev", "1/2/8", (("sci", 2.0), ("dev", 8.0))),
        ("root", "1", ()),
        (" root / a ", "1 / 0.5", (("a", 0.5),)),
    ],
)
def test_a_path(text, weights, path):
    assert read_path(text, weights) == path


@pytest.mark.parametrize(
    ("text", "weights", "why"),
    [
        ("sci/dev", "1/2", "not a path from the root"),
        ("root//dev", "1/1/1", "not a path from the root"),
        ("root/dev", "1", "1 weights for the 2 names"),
        ("root/dev", "1/0", "'0' is not a number above zero"),
        ("root/dev", "1/many", "'many' is not a number"),
        ("root/dev", "1/inf", "'inf' is not a number"),
        ("root", "", "'' is not a number"),
    ],
)
def test_a_path_that_cannot_be_read(text, weights, why):
    with pytest.raises(ValueError, match=why):
        read_path(text, weights)
