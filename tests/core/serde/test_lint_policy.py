"""Lint of policies."""

from __future__ import annotations

import json

import pytest

from scheduler_core.framework import registry
from scheduler_core.model.errors import BadInput
from scheduler_core.serde.lint import lint_policy
from scheduler_core.serde.policy.founding import FOUNDING_POLICY

GANG = ("gang", "predicates")


def shaped(*points):
    shape = [{"utilization": u, "score": s} for u, s in points]
    return {"name": "requested-to-capacity-ratio", "arguments": {"functionshape": shape}}


def policy(actions="enqueue, allocate, backfill", plugins=("priority", "gang", "predicates", "capacity-card")):
    entries = [{"name": p} if isinstance(p, str) else p for p in plugins]
    return json.dumps({"actions": actions, "tiers": [{"plugins": entries}]})


def codes(text):
    return [finding.code for finding in lint_policy(text)]


def test_the_founding_policy_is_as_it_should_be():
    assert codes(FOUNDING_POLICY) == []


def test_what_is_installed_is_looked_up_once_for_all_policies(monkeypatch):
    """The files of all installed packages were read at each lint, several times for each plugin."""
    codes(FOUNDING_POLICY)
    looks = []
    monkeypatch.setattr(registry, "entry_points", lambda group: looks.append(group) or [])
    assert codes(FOUNDING_POLICY) == []
    assert looks == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (policy(actions="enqueue, backfill"), "nothing-allocates"),
        (policy(actions="enqueue, reclaim, allocate"), "before-allocate"),
        (policy(actions="allocate, enqueue"), "enqueue-late"),
        (policy(plugins=("priority", "predicates", "capacity-card")), "no-gangs"),
        (policy(plugins=("priority", "gang", "capacity-card")), "no-predicates"),
        (policy(actions="enqueue, allocate, reclaim", plugins=("priority", "predicates")), "no-reclaim-voter"),
        (policy(actions="enqueue, allocate, reclaim", plugins=("gang", "predicates")), "gang-protects"),
        (
            policy(plugins=(*GANG, {"name": "tdm", "arguments": {"tdm.revocable-zone.z": "08:00-08:00"}})),
            "window-always-open",
        ),
        (
            policy(plugins=(*GANG, {"name": "tdm", "arguments": {"tdm.revocable-zone.z": "20:00-06:00"}})),
            "stays-after-window",
        ),
        (policy(plugins=(*GANG, {"name": "tdm", "arguments": {"tdm.revocable-zone.z": "8 to 9"}})), "bad_argument"),
        (policy(plugins=(*GANG, shaped((0, 0), (100, 100)))), "score-out-of-range"),
        (policy(plugins=(*GANG, shaped((0, 5), (100, 5)))), "flat-shape"),
        (policy(plugins=(*GANG, "capacity-card", "proportion")), "two-quotas"),
        (policy(plugins=(*GANG, "reservation")), "no-effect"),
        (policy(actions="enqueue, allocate, elect", plugins=GANG), "no-effect"),
        (policy(actions="allocate", plugins=(*GANG, "overcommit")), "no-effect"),
        (policy(actions="enqueue, allocate, reclaim, gangreclaim", plugins=(*GANG, "capacity-card")), "twice"),
        (policy(plugins=("priority", "gnag", "predicates")), "unknown_plugin"),
        (policy(plugins=({"name": "gang", "enableNothing": True}, "predicates")), "unknown_switch"),
    ],
)
def test_each_rule_finds_what_it_is_for(text, code):
    assert code in codes(text)


def test_a_finding_names_its_place_and_what_is_right():
    (found,) = lint_policy(
        policy(actions="enqueue, reclaim, allocate", plugins=("gang", "predicates", "capacity-card"))
    )
    assert (found.severity, found.object, found.path) == ("warning", "policy", "actions")
    assert found.fix == "put reclaim after allocate"


def test_a_misspelt_name_comes_with_the_nearest_one():
    (found,) = lint_policy(policy(plugins=("priority", "gnag")))
    assert "gang" in found.fix
    assert found.path == "tiers[0].plugins[1].name"


def test_all_that_is_wrong_is_told_at_once():
    found = lint_policy(
        policy(
            actions="enqueue, alocate, shuffle",
            plugins=(
                {"name": "gang", "enableReclaimeable": False},
                {"name": "capacity-card", "arguments": {"overCommitFactor": 0.5, "cardUnlimited": True}},
                {"name": "tdm", "arguments": {"tdm.revocable-zone.z": "08:00-08:00"}},
                shaped((0, 0), (100, 1000)),
            ),
        )
    )
    assert [finding.code for finding in found] == [
        "unknown_action",
        "unknown_switch",
        "bad_argument",
        "unknown_argument",
        "bad_argument",
        "window-always-open",
    ]
    assert all(finding.fix for finding in found)


def test_what_is_no_policy_at_all_is_bad_input():
    with pytest.raises(BadInput) as caught:
        lint_policy("tiers: [", "x.conf")
    assert caught.value.code == "malformed_yaml"
