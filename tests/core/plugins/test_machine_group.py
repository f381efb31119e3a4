"""machine-group: both directions of the filter."""

from __future__ import annotations

import pytest

from scheduler_core import PluginOption, Policy
from tests.core.small_cluster import binds, decide, gang, node, snapshot, training

POLICY = Policy(actions=("allocate",), tiers=((PluginOption(name="gang"), PluginOption(name="machine-group")),))
LABEL = "tidesched.io/machine-group"


@pytest.mark.parametrize(
    ("group", "expected"), [("", "n3"), ("vision", "n1"), ("speech", "n2"), ("nobody", None), ("Vision", None)]
)
def test_where_a_pod_lands(group, expected):
    nodes = [node("n1", labels={LABEL: "vision"}), node("n2", labels={LABEL: "speech"}), node("n3")]
    labels = {LABEL: group} if group else {}
    result = decide(snapshot(nodes, [training()], gang("x", 1, 1, "training", labels=labels)), POLICY)
    assert binds(result).get("x-0") == expected
