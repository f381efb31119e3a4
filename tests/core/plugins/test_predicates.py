"""predicates: on which nodes a task may be."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core.model.node import Taint
from scheduler_core.model.pod import HostPort, NodeSelectorRequirement, Toleration
from tests.core.open_session import allowed
from tests.core.small_cluster import binds, decide, gang, node, policy, service, snapshot, training

PLAIN = node("a-plain")
ZONE = node("b-zone", labels={"zone": "east"})
TAINTED = node("c-tainted", labels={"zone": "west"}, taints=(Taint("team", "x", "NoSchedule"),))
CORDONED = node("d-cordoned", unschedulable=True, labels={"zone": "south"})
NODES = [PLAIN, ZONE, TAINTED, CORDONED]
EAST = ((NodeSelectorRequirement("zone", "In", ("east",)),),)


@pytest.mark.parametrize(
    ("pod", "where"),
    [
        ({"node_selector": {"zone": "east"}}, "b-zone"),
        ({"required_nodes": EAST}, "b-zone"),
        ({"node_selector": {"zone": "west"}}, None),
        ({"node_selector": {"zone": "west"}, "tolerations": (Toleration("team", "Exists"),)}, "c-tainted"),
        ({"node_selector": {"zone": "south"}}, None),
        (
            {
                "node_selector": {"zone": "south"},
                "tolerations": (Toleration("node.kubernetes.io/unschedulable", "Exists"),),
            },
            "d-cordoned",
        ),
        ({"required_nodes": ()}, None),
    ],
)
def test_where_a_pod_may_be(pod, where):
    result = decide(snapshot(NODES, [training()], gang("x", 1, 1, "training", **pod)))
    assert binds(result) == ({"x-0": where} if where else {})


def test_host_ports_are_taken_once_a_node_also_within_a_session():
    port = (HostPort(8080),)
    given = snapshot(
        [node("n1"), node("n2"), node("n3")],
        [training()],
        gang("runs", 1, 1, "training", on=["n1"], host_ports=port),
        service("x", 3, 1, "training", host_ports=port),
    )
    assert sorted(binds(decide(given)).values()) == ["n2", "n3"]


def test_the_number_of_pods_is_limited():
    result = decide(snapshot([node("n1", pods=2)], [training()], service("x", 3, 1, "training")))
    assert len(result.binds) == 2


@pytest.mark.parametrize(
    ("argument", "pod"),
    [
        ("predicate.NodeAffinityEnable", {"node_selector": {"zone": "nowhere"}}),
        ("predicate.TaintTolerationEnable", {"node_selector": {"zone": "west"}}),
    ],
)
def test_a_filter_can_be_switched_off(argument, pod):
    given = snapshot(NODES, [training()], gang("x", 1, 1, "training", **pod))
    assert not decide(given).binds
    assert decide(given, policy(predicates={argument: False})).binds


def test_ports_can_be_switched_off():
    port = (HostPort(8080),)
    held = gang("runs", 1, 1, "training", on=["n1"], host_ports=port)
    given = snapshot([node("n1")], [training()], held, gang("x", 1, 1, "training", host_ports=port))
    assert not decide(given).binds
    assert decide(given, policy(predicates={"predicate.NodePortsEnable": False})).binds


def test_a_port_that_is_being_left_is_free_later():
    port = (HostPort(8080),)
    leaving = gang("runs", 1, 1, "training", on=["n1"], host_ports=port, deleted=900.0)
    given = snapshot([node("n1")], [training()], leaving, gang("x", 1, 1, "training", host_ports=port))
    assert (allowed(given, "x-0", at_once=True), allowed(given, "x-0")) == ([], ["n1"])
    upstream = msgspec.structs.replace(policy(), compatibility="volcano")
    assert allowed(given, "x-0", upstream) == []
