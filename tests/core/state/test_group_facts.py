"""What PodGroups say, and where the pods of a gang are by their names."""

from __future__ import annotations

import math

import pytest

from scheduler_core.model.pod_notes import number_of
from scheduler_core.state.workspace import Workspace
from tests import builders as b


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("job-worker-12", 12),
        ("a-b-007", 7),
        ("worker-3", math.inf),
        ("job-worker-x3", math.inf),
        ("job-worker-", math.inf),
        ("7", math.inf),
        ("a-b-" + "9" * 400, math.inf),
    ],
)
def test_the_number_at_the_end_of_a_name(name, number):
    assert number_of(name) == number


def test_facts_follow_the_podgroups_of_the_snapshot():
    workspace = Workspace()
    first = [b.pod_group("b", "q", 2, created=5), b.pod_group("a", "q", 1, created=7)]
    workspace.load(b.snapshot(b.queue("q"), *first))
    assert workspace.group_names == ["default/a", "default/b"]
    assert workspace.facts.least.tolist() == [1, 2]
    assert workspace.facts.since.tolist() == [b.now(7), b.now(5)]
    forked = workspace.fork()
    second = [b.pod_group("b", "q", 3, created=5), b.pod_group("aa", "q", 4, created=1)]
    workspace.load(b.snapshot(b.queue("q"), *second))
    assert workspace.facts.least.tolist() == [4, 3]
    forked.load(b.snapshot(b.queue("q"), *first))
    assert forked.facts.least.tolist() == [1, 2]
