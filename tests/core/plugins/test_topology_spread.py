"""predicates and nodeorder: topology spread constraints. Tables after Kubernetes' own cases."""

from __future__ import annotations

import pytest

from scheduler_core.model.node import Taint
from scheduler_core.model.pod import NodeSelectorRequirement, Toleration
from scheduler_core.model.relations import PodSubject, Relations, SpreadConstraint
from tests.core.open_session import allowed, scores
from tests.core.small_cluster import binds, decide, gang, node, policy, service, snapshot, training

FOO = {"foo": ""}


def constraint(skew, key, *, hard=True, value="", **more):
    subject = PodSubject(("ns",), None, (NodeSelectorRequirement("foo", "In", (value,)),))
    return SpreadConstraint(subject=subject, topology_key=key, max_skew=skew, hard=hard, **more)


def spread(*constraints, labels=FOO, **pod):
    return {"relations": Relations(spread=constraints), "labels": labels, **pod}


def nodes(**zones):
    """``nodes(zone1="ab")``: nodes a and b in zone1."""
    return [
        node(name, labels={"zone": zone, "node": name}) for zone, members in sorted(zones.items()) for name in members
    ]


def cluster(where, pod, *on, **extra):
    """``on``: node names that hold a pod with label foo, as often as they hold one."""
    pods = [gang(f"o{i}", 1, 0, "training", on=[name], labels=FOO) for i, name in enumerate(on)]
    more = [
        gang(f"p{i}", 1, 0, "training", on=[name], **given) for i, (name, given) in enumerate(extra.get("others", ()))
    ]
    return snapshot(where, [training()], *pods, *more, gang("x", 1, 0, "training", **pod))


FOUR = nodes(zone1="ab", zone2="xy")


@pytest.mark.parametrize(
    ("where", "pod", "on", "left"),
    [
        pytest.param(FOUR, spread(constraint(1, "zone")), "", "abxy", id="no pods yet"),
        pytest.param(FOUR, spread(constraint(1, "zone")), "ay", "abxy", id="even zones"),
        pytest.param(FOUR, spread(constraint(1, "zone")), "aby", "xy", id="the emptier zone"),
        pytest.param(FOUR, spread(constraint(2, "zone")), "abby", "xy", id="more skew, still too much"),
        pytest.param(FOUR, spread(constraint(2, "zone")), "aby", "abxy", id="more skew is allowed"),
        pytest.param(FOUR, spread(constraint(1, "node")), "aabyyy", "x", id="the only empty node"),
        pytest.param(FOUR, spread(constraint(1, "node")), "abxy", "abxy", id="each node has one"),
        pytest.param(
            FOUR, spread(constraint(1, "zone"), constraint(1, "node")), "abyyy", "", id="zone and node contradict"
        ),
        pytest.param(FOUR, spread(constraint(1, "zone"), constraint(1, "node")), "aby", "x", id="zone and node agree"),
        pytest.param(
            FOUR,
            spread(constraint(1, "zone"), labels={}),
            "aby",
            "abxy",
            id="does not count itself, zones differ by one",
        ),
        pytest.param(FOUR, spread(constraint(1, "zone"), labels={}), "ab", "xy", id="does not count itself, by two"),
        pytest.param(FOUR, spread(constraint(1, "zone", value="none"), labels={}), "aby", "abxy", id="matches nobody"),
        pytest.param(
            [*FOUR, node("z", labels={"node": "z"})], spread(constraint(1, "zone")), "ay", "abxy", id="no such label"
        ),
        pytest.param(
            [*FOUR, node("z", labels={"node": "z"})],
            spread(constraint(1, "zone"), constraint(1, "node")),
            "abxyz",
            "abxy",
            id="a node that lacks one label counts for none",
        ),
        pytest.param(FOUR, spread(constraint(1, "zone", min_domains=2)), "ay", "abxy", id="enough places"),
        pytest.param(FOUR, spread(constraint(1, "zone", min_domains=3)), "ay", "", id="too few places: none is empty"),
        pytest.param(FOUR, spread(constraint(1, "zone", min_domains=3)), "a", "xy", id="too few places"),
        pytest.param(FOUR, spread(constraint(2, "zone", min_domains=3)), "ay", "abxy", id="too few, with more skew"),
        pytest.param(
            FOUR, spread(constraint(1, "zone"), node_selector={"zone": "zone1"}), "aab", "ab", id="honours the selector"
        ),
        pytest.param(
            FOUR,
            spread(constraint(1, "zone", honor_affinity=False), node_selector={"zone": "zone1"}),
            "aab",
            "",
            id="ignores the selector",
        ),
    ],
)
def test_hard_constraints(where, pod, on, left):
    assert "".join(allowed(cluster(where, pod, *on), "x-0")) == left


TAINTED = [
    *nodes(zone1="ab"),
    node("x", labels={"zone": "zone2", "node": "x"}, taints=(Taint("team", "", "NoSchedule"),)),
]


@pytest.mark.parametrize(
    ("honour", "tolerated", "left"),
    [(False, False, ""), (True, False, "ab"), (True, True, "x"), (False, True, "x")],
)
def test_tainted_nodes_are_places_or_not(honour, tolerated, left):
    tolerations = {"tolerations": (Toleration("team", "Exists"),)} if tolerated else {}
    pod = spread(constraint(1, "zone", honor_taints=honour), **tolerations)
    assert "".join(allowed(cluster(TAINTED, pod, *"ab"), "x-0")) == left


def test_pods_that_leave_and_pods_of_other_namespaces_do_not_count():
    others = [("a", {"labels": FOO, "deleted": 900.0}), ("b", {"labels": FOO, "namespace": "other", "group": ""})]
    given = cluster(FOUR, spread(constraint(1, "zone")), "y", others=others)
    assert "".join(allowed(given, "x-0")) == "ab"


def test_placements_of_the_session_count():
    given = snapshot(FOUR, [training()], service("x", 6, 0, "training", **spread(constraint(1, "zone"))))
    placed = sorted(binds(decide(given)).values())
    assert sum(1 for name in placed if name in "ab") == sum(1 for name in placed if name in "xy") == 3


def test_the_filter_can_be_switched_off():
    off = policy(predicates={"predicate.PodTopologySpreadEnable": False})
    assert "".join(allowed(cluster(FOUR, spread(constraint(1, "zone")), *"aab"), "x-0", off)) == "abxy"


ONLY = {f"{name}.weight": 0 for name in ("leastrequested", "balancedresource", "tainttoleration")}


@pytest.mark.parametrize(
    ("where", "pod", "on", "expected"),
    [
        # cost = count x ln(size + 2), rounded; score = 100 x (max + min - cost) // max.
        pytest.param(FOUR, spread(constraint(1, "zone", hard=False)), "", (100, 100, 100, 100), id="nobody there"),
        pytest.param(FOUR, spread(constraint(1, "zone", hard=False)), "aay", (33, 33, 100, 100), id="by zone"),
        pytest.param(FOUR, spread(constraint(1, "node", hard=False)), "aabbbbx", (42, 0, 71, 100), id="by node"),
        pytest.param(
            [*FOUR, node("z", labels={"node": "z"})],
            spread(constraint(1, "zone", hard=False)),
            "aay",
            (33, 33, 100, 100, 0),
            id="without the label",
        ),
        pytest.param(FOUR, spread(constraint(4, "zone", hard=False)), "aay", (66, 66, 100, 100), id="more skew"),
    ],
)
def test_soft_constraints(where, pod, on, expected):
    only = policy(nodeorder={**ONLY, "podtopologyspread.weight": 1})
    given = cluster(where, pod, *on)
    assert tuple(scores(given, "x-0", only).values()) == expected
    assert len(allowed(given, "x-0")) == len(where)
