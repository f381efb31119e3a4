"""How the votes of admission plugins come together: the vectors of volcano-semantics 9 with the plugins themselves."""

from __future__ import annotations

import pytest

from scheduler_core import run_session
from scheduler_core.serde.policy import parse_policy
from tests import builders as b

POLICY = """\
actions: "enqueue, allocate"
tiers:
"""


def phase(tiers, *, minimum=20, note="1s", limit=None):
    """Phase of one gang that asks for ``minimum`` of ten cores and has waited an hour."""
    text = POLICY + "".join(
        f"- plugins: [{', '.join(f'{{name: {name}}}' for name in tier.split())}]\n" for tier in tiers
    )
    objects = [
        b.node("n1", cpu=10),
        b.queue("q", cpu=limit),
        b.job("x", "q", 1, template={"spec": {"containers": [{"resources": {"requests": {"cpu": minimum}}}]}}),
        b.pod_group(
            "x",
            "q",
            owner=b.owned_by("Job", "x"),
            min_resources={"cpu": minimum},
            annotations={"volcano.sh/sla-waiting-time": note} if note else None,
        ),
    ]
    result, _ = run_session(b.snapshot(objects), parse_policy(text), now=b.now(3600), check=True)
    return {outcome.name: outcome.phase.value for outcome in result.podgroups}["default/x"]


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        (["sla", "overcommit"], "Inqueue"),
        (["sla overcommit"], "Pending"),
        (["overcommit", "sla"], "Pending"),
        (["overcommit"], "Pending"),
        (["gang"], "Inqueue"),
        ([], "Inqueue"),
    ],
    ids=["permit above", "permit then reject in one tier", "reject above", "reject", "nobody votes", "nobody at all"],
)
def test_votes(tiers, expected):
    assert phase(tiers or ["priority"]) == expected


def test_before_its_deadline_sla_abstains_and_the_next_tier_decides():
    assert phase(["sla", "overcommit"], note="2h") == "Pending"
    assert phase(["sla", "overcommit"], note="2h", minimum=10) == "Inqueue"


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_a_tier_above_that_permits_hides_the_ceiling_below(plugin):
    assert phase([f"overcommit {plugin}"], minimum=9, limit=8, note=None) == "Pending"
    assert phase(["overcommit", plugin], minimum=9, limit=8, note=None) == "Inqueue"
    assert phase(["overcommit", plugin], minimum=8, limit=8, note=None) == "Inqueue"


def test_the_switch_takes_the_vote_away():
    assert phase(["overcommit"]) == "Pending"
    text = POLICY + "- plugins: [{name: overcommit, enableJobEnqueued: false}]\n"
    assert "job_enqueued" in parse_policy(text).tiers[0][0].switches
