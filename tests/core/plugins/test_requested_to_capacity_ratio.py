"""requested-to-capacity-ratio: the line of document 003, number by number, and what a policy may write."""

from __future__ import annotations

import pytest

from scheduler_core import parse_policy
from scheduler_core.model.errors import BadInput
from tests.core.open_session import own_scores
from tests.core.small_cluster import gang, node, snapshot, training

BEND = ((0, 0), (50, 8), (100, 10))


def score(used, capacity, request, line=BEND, **weight):
    nodes = [node("n1", 0, cpu=capacity[0], memory=capacity[-1])]
    held = gang("held", 1, 0, "training", on=["n1"], cpu=used[0], memory=used[-1])
    given = snapshot(nodes, [training()], held, gang("x", 1, 0, "training", cpu=request[0], memory=request[-1]))
    shape = [{"utilization": at, "score": value} for at, value in line]
    arguments = {"functionshape": shape, "resourcetoweightmap": weight or {"cpu": 1}, "maxScore": 100}
    return own_scores(given, "x-0", "requested-to-capacity-ratio", **arguments)["n1"]


def test_the_line_with_three_points():
    """One more quarter each time: u = 25, 50, 75, 100."""
    assert [score([used], [100], [25]) for used in (0, 25, 50, 75)] == [4, 8, 9, 10]


def test_zero_scores_stay_in_the_divisor():
    assert score([0, 0], [100, 100], [50, 0], cpu=1, memory=1) == 4
    assert score([0, 0], [100, 100], [50, 0], cpu=3, memory=1) == 6


def test_a_node_without_the_resource_is_full_of_it():
    assert score([0], [0], [0]) == 10


def test_flat_before_the_first_point_and_after_the_last():
    assert [score([used], [100], [10], line=((20, 3), (80, 9))) for used in (0, 10, 40, 85)] == [3, 3, 6, 9]


def conf(arguments):
    return f"actions: allocate\ntiers:\n- plugins:\n  - name: requested-to-capacity-ratio\n    arguments: {arguments}\n"


def test_both_spellings_say_the_same():
    old = "{functionshape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}], resourcetoweightmap: {cpu: 3}}"
    new = "{shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}], resources: [{name: cpu, weight: 3}]}"
    assert parse_policy(conf(old)).tiers == parse_policy(conf(new)).tiers


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("{shape: [{utilization: 50, score: 1}, {utilization: 50, score: 2}]}", "rises in utilization"),
        ("{shape: [{utilization: 50, score: 101}]}", "is 0 to 100"),
        ("{shape: [{utilization: 101, score: 1}]}", "is 0 to 100"),
        ("{shape: [{utilization: 50}]}", "is a list of {utilization, score}"),
        ("{shape: 7}", "is a list of {utilization, score}"),
        ("{shape: []}", "at least one point"),
        ("{shape: [{utilization: 0, score: 11}], maxScore: 10}", "more than maxScore 10"),
        ("{resources: {cpu: -1}}", "is 0 to"),
        ("{resources: {cpu: 0}}", "gives no resource a weight"),
        ("{resources: [{name: cpu}, {name: cpu}]}", "names cpu twice"),
        ("{resources: cpu}", "is a mapping of names to numbers"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(arguments, says):
    with pytest.raises(BadInput) as caught:
        parse_policy(conf(arguments))
    assert says in str(caught.value)
    assert caught.value.line == 5
