"""nodegroup: queues and the groups of nodes that their gangs may use."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core.model.queue import NodeGroups
from tests.core.open_session import may_go, own_scores, with_plugin
from tests.core.small_cluster import binds, decide, gang, node, policy, snapshot, training

NODES = [node(f"n-{group or 'none'}", labels={"volcano.sh/nodegroup-name": group} if group else {}) for group in "ABC"]
NODES.append(node("n-none"))


def cluster(groups):
    queue = training(node_groups=groups)
    return snapshot(NODES, [queue], gang("x", 1, 0, "training"))


@pytest.mark.parametrize(
    ("groups", "arguments", "where", "where_upstream"),
    [
        pytest.param(None, {}, "", "", id="a queue that says nothing"),
        pytest.param(None, {"strict": False}, "none", "none", id="says nothing, not strict"),
        pytest.param(NodeGroups(required=("A",)), {}, "A", "A", id="required"),
        pytest.param(NodeGroups(required=("A",), preferred=("B",)), {}, "AB", "AB", id="required or preferred"),
        pytest.param(NodeGroups(required=("A",)), {"strict": False}, "A", "A", id="strict is for the silent"),
        pytest.param(NodeGroups(preferred=("A", "B"), denied=("B",)), {}, "A", "A", id="denied wins"),
        pytest.param(NodeGroups(preferred=("A",), avoided=("C",)), {}, "AC", "AC", id="avoided is allowed"),
        pytest.param(NodeGroups(denied=("B",)), {}, "AC", "", id="only denied"),
        pytest.param(NodeGroups(avoided=("B",)), {}, "ABC", "B", id="only avoided"),
    ],
)
def test_where_a_queue_may_be(groups, arguments, where, where_upstream):
    rules = with_plugin("nodegroup", **arguments)
    upstream = msgspec.structs.replace(rules, compatibility="volcano")

    def found(rules):
        return "".join(name.removeprefix("n-") for name in may_go(cluster(groups), "x-0", rules))

    assert found(rules) == where
    assert found(upstream) == where_upstream


@pytest.mark.parametrize(
    ("groups", "arguments", "scores"),
    [
        (None, {}, [0, 0, 0, 0]),
        (NodeGroups(required=("A",), preferred=("B",), avoided=("C",)), {}, [100, 50, -1, 0]),
        (NodeGroups(preferred=("B", "A")), {"enablePreferredOrder": True}, [25, 50, 0, 0]),
        (NodeGroups(preferred=("C", "B", "A")), {"enablePreferredOrder": True}, [50 / 3, 100 / 3, 50, 0]),
    ],
)
def test_what_a_queue_prefers(groups, arguments, scores):
    assert list(own_scores(cluster(groups), "x-0", "nodegroup", **arguments).values()) == pytest.approx(scores)


def test_two_queues_share_a_cluster():
    queues = [
        training("a", node_groups=NodeGroups(required=("A",))),
        training("b", node_groups=NodeGroups(denied=("A",), preferred=("C",))),
    ]
    given = snapshot(NODES, queues, gang("x", 1, 1, "a"), gang("y", 1, 1, "b"))
    assert binds(decide(given, with_plugin("nodegroup", policy()))) == {"x-0": "n-A", "y-0": "n-C"}
