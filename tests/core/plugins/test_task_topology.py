"""task-topology: tasks of a gang that want to be on one node, or rather not."""

from __future__ import annotations

import msgspec

from scheduler_core.model.pod import PodPhase
from tests.core.open_session import opened, own_scores, task_of, with_plugin
from tests.core.small_cluster import binds, code, decide, gang, node, snapshot, training

NEAR, APART, ORDER = (f"volcano.sh/task-topology-{kind}" for kind in ("affinity", "anti-affinity", "task-order"))
PS_AND_WORKERS = {NEAR: "ps,worker", APART: "ps"}


def roles(notes, counts, *, on=None, cards=1, nodes=None):
    """One gang with several roles: ``{"ps": 2, "worker": 4}``; ``on``: node by pod name."""
    pods = []
    for role, count in counts.items():
        group, members = gang("x", count, cards, "training", role=role, group={"annotations": notes})
        for i, pod in enumerate(members):
            where = (on or {}).get(f"{role}-{i}", "")
            extra = {"node": where, "phase": PodPhase.RUNNING, "started": 0.0} if where else {}
            pods.append(msgspec.structs.replace(pod, name=f"x-{role}-{i}", **extra))
    group = msgspec.structs.replace(group, min_member=len(pods))
    return snapshot(nodes or [node(f"n{i}", 3) for i in range(4)], [training()], (group, pods))


def test_each_parameter_server_gets_its_workers():
    placed = binds(decide(roles(PS_AND_WORKERS, {"ps": 2, "worker": 4}), with_plugin("task-topology")))
    by_node = {}
    for pod, where in placed.items():
        by_node.setdefault(where, []).append(pod.split("-")[1])
    assert sorted(map(sorted, by_node.values())) == [["ps", "worker", "worker"], ["ps", "worker", "worker"]]


def test_order_in_a_bucket_and_out_of_it():
    given = roles({**PS_AND_WORKERS, ORDER: "worker,ps"}, {"ps": 1, "worker": 2, "chief": 1})
    session = opened(given, with_plugin("task-topology"))
    order = [session.tasks.keys[t].removeprefix("ns/x-") for t in session.pending_tasks(0)]
    assert order == ["worker-0", "worker-1", "ps-0", "chief-0"]


def test_bigger_buckets_go_first():
    given = roles({APART: "a,d", NEAR: "a,b;d,e"}, {"a": 1, "b": 1, "d": 1, "e": 3})
    session = opened(given, with_plugin("task-topology"))
    order = [session.tasks.keys[t].removeprefix("ns/x-") for t in session.pending_tasks(0)]
    assert sorted(order[:4]) == ["d-0", "e-0", "e-1", "e-2"]


def test_score_counts_mates_there_and_mates_that_fit():
    nodes = [node("n0", 3), node("n1", 2), node("n2", 1), node("n3", 8)]
    on = {"ps-0": "n3"}
    given = roles({NEAR: "ps,worker"}, {"ps": 1, "worker": 3}, on=on, nodes=nodes)
    # Largest bucket 4; n3 holds one mate and has room for three more.
    assert own_scores(given, "x-worker-0", "task-topology") == {"n0": 75.0, "n1": 50.0, "n2": 25.0, "n3": 100.0}
    doubled = own_scores(given, "x-worker-0", "task-topology", **{"task-topology.weight": 2})
    assert doubled["n3"] == 200.0


def test_score_loses_for_those_it_wants_to_be_away_from():
    given = roles({APART: "ps"}, {"ps": 2}, on={"ps-0": "n1"})
    scores = own_scores(given, "x-ps-1", "task-topology")
    assert scores["n1"] < scores["n0"] == scores["n2"]


def test_gangs_that_say_nothing_are_left_as_they_are():
    given = roles({}, {"ps": 2})
    assert set(own_scores(given, "x-ps-0", "task-topology").values()) == {0.0}
    assert binds(decide(given, with_plugin("task-topology"))) == binds(decide(given))


def test_a_role_named_twice_is_a_fault():
    assert code(decide(roles({NEAR: "ps,ps"}, {"ps": 1}), with_plugin("task-topology")), "x") == "Misconfigured"
    assert code(decide(roles({NEAR: "ps,nobody"}, {"ps": 1}), with_plugin("task-topology")), "x") == ""


def test_upstream_passes_over_the_whole_annotation():
    upstream = msgspec.structs.replace(with_plugin("task-topology"), compatibility="volcano")
    for text in ("ps,ps", "ps,nobody"):
        given = roles({NEAR: text}, {"ps": 1})
        assert code(decide(given, upstream), "x") == ""
        session = opened(given, upstream)
        assert session.hooks.flat("task_node_order")[0][1](task_of(session, "x-ps-0")) is None
