"""nodeorder: which of the nodes that fit is taken."""

from __future__ import annotations

import pytest

from scheduler_core.model.node import Taint
from scheduler_core.model.pod import NodeSelectorRequirement, PreferredNodeTerm
from tests.core.small_cluster import binds, decide, gang, node, policy, snapshot, training

BUSY = gang("busy", 1, 0, "training", on=["n1"], cpu=32_000, memory=256_000)


def chosen(nodes, *gangs, pod=None, **weights):
    given = snapshot(nodes, [training()], *gangs, gang("x", 1, 0, "training", **(pod or {})))
    return binds(decide(given, policy(nodeorder=weights)))["x-0"]


def test_the_emptier_node_by_default():
    assert chosen([node("n1"), node("n2")], BUSY) == "n2"


def test_the_fuller_node_where_the_weights_say_so():
    assert chosen([node("n1"), node("n2")], BUSY, **{"leastrequested.weight": 0, "mostrequested.weight": 1}) == "n1"


def test_equal_scores_go_to_the_first_name():
    assert chosen([node("n2"), node("n1")]) == "n1"


def test_preferred_nodes():
    wish = (PreferredNodeTerm(10, (NodeSelectorRequirement("zone", "In", ("east",)),)),)
    nodes = [node("n1"), node("n2", labels={"zone": "east"})]
    assert chosen(nodes, pod={"preferred_nodes": wish}) == "n2"
    assert chosen(nodes, pod={"preferred_nodes": wish}, **{"nodeaffinity.weight": 0}) == "n1"


def test_soft_taints_are_avoided():
    nodes = [node("n1", taints=(Taint("slow", "", "PreferNoSchedule"),)), node("n2")]
    assert chosen(nodes) == "n2"
    assert chosen(nodes, **{"tainttoleration.weight": 0}) == "n1"


@pytest.mark.parametrize("weight", [0, 5])
def test_even_use_of_cpu_and_memory(weight):
    lopsided = gang("busy", 1, 0, "training", on=["n1"], cpu=0, memory=256_000)
    nodes = [node("n1", 0), node("n2", 0)]
    weights = {"leastrequested.weight": 0, "balancedresource.weight": weight}
    pod = {"cpu": 32_000, "memory": 1024}
    assert chosen(nodes, lopsided, pod=pod, **weights) == "n1"


def test_images_that_are_there():
    nodes = [node("n1"), node("n2", images={"big:1": 900 * 2**20})]
    pod = {"images": ("big:1",)}
    assert chosen(nodes, pod=pod) == "n2"
    assert chosen(nodes, pod=pod, **{"imagelocality.weight": 0}) == "n1"
