"""Zones take turns."""

from __future__ import annotations

import pytest

from scheduler_core.algorithms.zones import interleaved


@pytest.mark.parametrize(
    ("zones", "rank"),
    [
        ([], []),
        (["a"], [0]),
        (["a", "a", "b"], [0, 2, 1]),
        (["b", "a", "b", "a", ""], [2, 1, 4, 3, 0]),
    ],
)
def test_each_zone_in_turn(zones, rank):
    assert interleaved(zones).tolist() == rank
