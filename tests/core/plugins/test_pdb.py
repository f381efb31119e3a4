"""pdb: budgets as they are read and counted, cumulatively."""

from __future__ import annotations

import pytest

from scheduler_core.algorithms.allowance import may_go
from scheduler_core.framework.disruption_budgets import DisruptionBudgets
from scheduler_core.framework.session import Session
from scheduler_core.model.errors import BadInput
from scheduler_core.model.memory import Memory
from scheduler_core.model.policy import Policy
from scheduler_core.state.workspace import Workspace
from tests import builders as b


@pytest.mark.parametrize(
    ("least", "missing", "expected", "healthy", "answer"),
    [
        ("2", "", 3, 3, 1),
        ("2", "", 3, 2, 0),
        ("2", "", 3, 1, 0),
        ("50%", "", 5, 5, 2),
        ("", "1", 3, 3, 1),
        ("", "1", 3, 2, 0),
        ("", "25%", 5, 5, 2),
        ("", "0", 5, 5, 0),
        ("", "", 5, 5, 0),
    ],
)
def test_how_many_may_go(least, missing, expected, healthy, answer):
    assert may_go(least, missing, expected=expected, healthy=healthy) == answer


def budget(name="guard", labels=None, allowed=None, **spec):
    made = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels or {}}, **spec},
    }
    return made if allowed is None else {**made, "status": {"disruptionsAllowed": allowed}}


def violations(*budgets, pods=3, leaving=0, labels=None):
    """Numbers of the pods that are refused, gone through in their order."""
    made = [
        b.pod(f"p-{i}", "g", node="n1", labels=labels or {"app": "a"}, deleted=5 if i < leaving else None)
        for i in range(pods)
    ]
    given = b.snapshot(b.node("n1"), b.pod_group("g", "default"), made, budgets)
    rules = Policy(actions=("allocate",), tiers=())
    session = Session(given, rules, [], now=1.0, seed=0, memory=Memory(), workspace=Workspace())
    order = sorted((t for t in range(len(session.tasks)) if session.tasks.live[t]), key=session.tasks.keys.__getitem__)
    refused = DisruptionBudgets(session).violations(order)
    return [place for place, task in enumerate(order) if task in refused]


@pytest.mark.parametrize(
    ("budgets", "refused"),
    [
        ([], []),
        ([budget(labels={"app": "a"}, allowed=1)], [1, 2]),
        ([budget(labels={"app": "a"}, allowed=0)], [0, 1, 2]),
        ([budget(labels={"app": "b"}, allowed=0)], []),
        ([budget(allowed=2)], [2]),
        ([budget(labels={"app": "a"}, minAvailable=2)], [1, 2]),
        ([budget("one", allowed=2), budget("two", allowed=1)], [1, 2]),
    ],
)
def test_candidates_use_budgets_up_one_after_the_other(budgets, refused):
    assert violations(*budgets) == refused


def test_the_controller_knows_of_those_that_it_counted():
    counted = budget(labels={"app": "a"}, allowed=0)
    counted["status"]["disruptedPods"] = {"p-0": "2026-01-01T00:00:00Z"}
    assert violations(counted) == [1, 2]


def test_pods_that_leave_are_not_healthy():
    assert violations(budget(labels={"app": "a"}, minAvailable=2), leaving=1) == [0, 1, 2]


def test_no_selector_selects_nothing():
    made = budget(allowed=0)
    del made["spec"]["selector"]
    assert violations(made) == []


@pytest.mark.parametrize("spec", [{"minAvailable": "half"}, {"maxUnavailable": -1}, {"minAvailable": [1]}])
def test_what_cannot_be_is_refused(spec):
    with pytest.raises(BadInput):
        b.snapshot(budget(**spec))
