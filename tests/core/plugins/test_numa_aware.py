"""numa-aware: pods that want their CPUs from one NUMA cell."""

from __future__ import annotations

import msgspec
import pytest

from tests.core.algorithms.test_numa import machine
from tests.core.open_session import allowed, own_scores, with_plugin
from tests.core.small_cluster import binds, decide, gang, node, service, snapshot, training

NUMA = with_plugin("numa-aware")


def cluster(topologies, *gangs):
    """``topologies``: by node name; None = a node without one."""
    given = snapshot([node(name, 0) for name in topologies], [training()], *gangs)
    numa = tuple(msgspec.structs.replace(one, name=name) for name, one in sorted(topologies.items()) if one)
    return msgspec.structs.replace(given, numa=numa)


def pod(cpus=4, policy="single-numa-node", **more):
    return {"numa_policy": policy, "whole_cpus": (cpus,), "cpu": cpus * 1000, **more}


@pytest.mark.parametrize(
    ("asks", "where"),
    [
        pytest.param(pod(), ["n1", "n4"], id="policy, static CPUs and room"),
        pytest.param(pod(policy="restricted"), ["n2"], id="another policy"),
        pytest.param(pod(policy="best-effort"), [], id="nobody's policy"),
        pytest.param(pod(12), [], id="more than a cell has"),
        pytest.param(pod(12, "restricted"), ["n2"], id="two cells where there is no other way"),
        pytest.param(pod(3), ["n1", "n4"], id="fewer"),
        pytest.param({}, ["n1", "n2", "n3", "n4", "n5", "n6"], id="no wish"),
        pytest.param({**pod(), "whole_cpus": ()}, ["n1", "n2", "n3", "n4", "n5", "n6"], id="not Guaranteed"),
    ],
)
def test_where_a_pod_may_be(asks, where):
    topologies = {
        "n1": machine(),
        "n2": machine("restricted"),
        "n3": msgspec.structs.replace(machine(), static_cpus=False),
        "n4": machine(free=(2, 3, 4, 5)),
        "n5": machine(free=(0, 1, 8)),
        "n6": None,
    }
    given = cluster(topologies, gang("x", 1, 0, "training", **asks))
    assert allowed(given, "x-0", NUMA) == where


def test_fewer_cells_score_higher():
    topologies = {"n1": machine("best-effort", free=(0, 1, 8, 9)), "n2": machine("best-effort"), "n3": None}
    given = cluster(topologies, gang("x", 1, 0, "training", **pod(policy="best-effort")))
    assert own_scores(given, "x-0", "numa-aware") == {"n1": 0.0, "n2": 50.0, "n3": 0.0}
    assert own_scores(given, "x-0", "numa-aware", weight=3)["n2"] == 150.0


def test_placements_of_a_session_take_cpus_and_the_decision_is_noted():
    given = cluster({"n1": machine(), "n2": machine(free=range(8))}, service("x", 5, 0, "training", **pod(6)))
    result = decide(given, NUMA)
    assert sorted(binds(result).values()) == ["n1", "n1", "n2"]
    assert {bind.notes["volcano.sh/topology-decision"] for bind in result.binds} == {
        '{"numa":{"0":{"cpu":"6"}}}',
        '{"numa":{"1":{"cpu":"6"}}}',
    }


def test_nothing_is_noted_without_a_wish():
    result = decide(cluster({"n1": machine()}, gang("x", 1, 0, "training")), NUMA)
    assert [bind.notes for bind in result.binds] == [{}]


def test_best_effort_without_enough_cpus():
    given = cluster(
        {"n1": machine("best-effort", free=(0, 1))}, gang("x", 1, 0, "training", **pod(policy="best-effort"))
    )
    assert allowed(given, "x-0", NUMA) == []
    assert allowed(given, "x-0", msgspec.structs.replace(NUMA, compatibility="volcano")) == ["n1"]
