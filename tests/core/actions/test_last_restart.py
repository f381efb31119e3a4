"""A gang of which an eviction is the last one: Volcano's controllers fail a job at its maxRetry."""

from __future__ import annotations

import pytest

from scheduler_core import run_session
from tests import builders as b


def cluster(policy="RestartJob", max_retry=None, retries=None):
    """A running training job, and a service that takes its cards back."""
    gang = b.training("held", "qt", 1, "A", 4, nodes=["n1"], evicted=policy, started=1)
    if max_retry is not None:
        gang[0]["spec"]["maxRetry"] = max_retry
    if retries is not None:
        gang[0]["status"] = {"state": {"phase": "Running"}, "retryCount": retries}
    return [
        *b.priority_classes(),
        b.queue("qi", {"A": 4}, **b.INFERENCE),
        b.queue("qt", {"A": 4}, **b.TRAINING),
        b.node("n1", "A", 4),
        *gang,
        *b.inference("wants", "qi", 1, "A", 2),
    ]


@pytest.mark.parametrize(
    ("given", "last"),
    [
        ({}, False),
        ({"retries": 1}, False),
        ({"retries": 2}, True),
        ({"retries": 3}, True),
        ({"max_retry": 0, "retries": 2}, True),
        ({"max_retry": 1}, True),
        ({"max_retry": 100, "retries": 98}, False),
        ({"max_retry": 100, "retries": 99}, True),
        ({"retries": 2, "policy": "AbortJob"}, False),
    ],
)
def test_the_reclaim_says_that_the_job_fails_by_it(given, last):
    result, _ = run_session(b.snapshot(cluster(**given)), b.founding_policy(), now=b.now(100))
    (reclaim,) = result.reclaims
    (victim,) = reclaim.victims
    assert (victim.gang, victim.last_restart) == ("default/held", last)
