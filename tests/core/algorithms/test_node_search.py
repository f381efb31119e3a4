"""Node search as upstream does it: the vectors of volcano-semantics 9, and the walk."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler_core.algorithms.node_search import NodeSearch, enough_nodes


@pytest.mark.parametrize(
    ("nodes", "enough"),
    [(0, 0), (7, 7), (100, 100), (101, 100), (250, 120), (1000, 420), (1500, 570), (6000, 300), (50_000, 2500)],
)
def test_how_many_nodes_are_enough(nodes, enough):
    assert enough_nodes(nodes) == enough


def test_it_goes_on_where_it_ended():
    search, feasible = NodeSearch(1000), np.ones(1000, dtype=np.bool_)
    feasible[:10] = False
    assert np.flatnonzero(search.looked_at(feasible)).tolist() == list(range(10, 430))
    assert np.flatnonzero(search.looked_at(feasible)).tolist() == list(range(430, 850))
    assert np.flatnonzero(search.looked_at(feasible)).tolist() == [*range(10, 280), *range(850, 1000)]


def test_it_walks_through_all_where_there_are_never_enough():
    search, feasible = NodeSearch(1000), np.zeros(1000, dtype=np.bool_)
    feasible[[5, 900]] = True
    assert search.looked_at(feasible).tolist() == feasible.tolist()
    assert search.looked_at(feasible).tolist() == feasible.tolist()


def test_small_clusters_are_looked_at_in_full():
    search = NodeSearch(100)
    assert not search.samples
    feasible = np.ones(100, dtype=np.bool_)
    assert search.looked_at(feasible).all()
