"""Buckets of tasks that want to be on one node."""

from __future__ import annotations

import pytest

from scheduler_core.algorithms.buckets import Member, attraction, fill, wishes


def members(text):
    """``"ps*2 worker*3@1"``: two tasks without a node, three on node 1; names in that order."""
    found = []
    for part in text.split():
        what, _, node = part.partition("@")
        role, _, count = what.partition("*")
        for i in range(int(count or 1)):
            where = int(node) if node else -1
            found.append(Member(len(found), role, where, 1, f"{role}-{i}"))
    return found


@pytest.mark.parametrize(
    ("near", "apart", "order", "tasks", "expected"),
    [
        pytest.param(["ps,worker"], [], "", "ps worker", ["ps worker"], id="together"),
        pytest.param([], ["ps"], "", "ps*2", ["ps", "ps"], id="a role that keeps apart"),
        pytest.param(
            ["ps,worker"], ["ps"], "", "ps*2 worker*4", ["ps worker worker", "ps worker worker"], id="ps with workers"
        ),
        pytest.param(["ps,worker"], [], "", "ps worker chief", ["ps worker"], id="who wants nothing is in no bucket"),
        pytest.param(["worker"], [], "", "worker*3", ["worker worker worker"], id="a role by itself"),
        pytest.param(
            ["ps,worker"], ["ps"], "", "ps@0 ps@3 worker*2", ["ps worker", "ps worker"], id="buckets of nodes"
        ),
        pytest.param(
            ["a,b"], ["b,c"], "c,b,a", "a b c", ["c", "b a"], id="in the order given; apart opens a new bucket"
        ),
    ],
)
def test_buckets(near, apart, order, tasks, expected):
    wanted = wishes(
        [roles.split(",") for roles in near], [roles.split(",") for roles in apart], order.split(",") if order else []
    )
    buckets = fill(wanted, members(tasks))
    assert [" ".join(one.role for one in bucket.members) for bucket in buckets] == expected


def test_what_attracts():
    wanted = wishes([["ps", "worker"]], [["ps"]], [])
    assert attraction(wanted, "ps", {"ps": 1, "worker": 3}) == 2
    assert attraction(wanted, "worker", {"ps": 1, "worker": 3}) == 1
    assert attraction(wanted, "ps", {"ps": 1, "worker": 3}, only_apart=True) == -1
