"""usage: nodes that are loaded, whatever was requested there."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core.model.errors import BadInput
from scheduler_core.model.observed import NodeMetrics
from scheduler_core.serde.policy import parse_policy
from tests.core.open_session import allowed, own_scores, with_plugin
from tests.core.small_cluster import gang, node, snapshot, training

NODES = [node(name, 0, cpu=10_000, memory=10_000) for name in ("n1", "n2", "n3")]


def cluster(*measured, at=1000.0):
    """``measured``: (cpu percent, memory percent) of n1, n2, … in turn; None = not measured."""
    given = snapshot(NODES, [training()], gang("x", 1, 0, "training"))
    metrics = tuple(
        NodeMetrics(name=f"n{i}", at=at, cpu_milli=use[0] * 100, memory_mib=use[1] * 100)
        for i, use in enumerate(measured, 1)
        if use
    )
    return msgspec.structs.replace(given, metrics=metrics)


@pytest.mark.parametrize(
    ("measured", "arguments", "where"),
    [
        ([(80, 80), (81, 10), (10, 81)], {}, ["n1"]),
        ([(50, 10), (51, 10), None], {"thresholds": {"cpu": 50}}, ["n1", "n3"]),
        ([(10, 81), (10, 61), None], {"thresholds": {"cpu": 50, "mem": 60}}, ["n3"]),
        ([(10, 81), (10, 61), None], {"thresholds": {"memory": 90}}, ["n1", "n2", "n3"]),
        ([None, None, None], {}, ["n1", "n2", "n3"]),
    ],
)
def test_loaded_nodes_take_nobody(measured, arguments, where):
    assert allowed(cluster(*measured), "x-0", with_plugin("usage", **arguments)) == where


def test_old_numbers_say_nothing():
    given = cluster((90, 90), (90, 90), (90, 90), at=699.0)
    assert allowed(given, "x-0", with_plugin("usage")) == ["n1", "n2", "n3"]
    assert set(own_scores(given, "x-0", "usage").values()) == {0.0}
    given = cluster((90, 90), (90, 90), (90, 90), at=700.0)
    assert allowed(given, "x-0", with_plugin("usage")) == []


@pytest.mark.parametrize(
    ("arguments", "scores"),
    [
        ({}, [400.0, 200.0, 0.0]),
        ({"usage.weight": 1}, [80.0, 40.0, 0.0]),
        ({"usage.weight": 1, "cpu.weight": 3}, [80.0, 50.0, 0.0]),
        ({"cpu.weight": 0, "memory.weight": 0}, [0.0, 0.0, 0.0]),
    ],
)
def test_the_less_loaded_the_better(arguments, scores):
    # n1 uses 20 % of both, n2 40 % of cpu and 80 % of memory, n3 was not measured.
    found = own_scores(cluster((20, 20), (40, 80)), "x-0", "usage", **arguments)
    assert [round(score, 9) for score in found.values()] == scores


def test_what_is_not_measured_cannot_have_a_threshold():
    text = """
actions: "allocate"
tiers:
- plugins:
  - name: usage
    arguments:
      thresholds: {disk: 50}
"""
    with pytest.raises(BadInput, match="disk is not measured"):
        parse_policy(text)
