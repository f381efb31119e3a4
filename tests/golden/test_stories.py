"""Golden stories: a cluster and a policy in, hand-written binds, evictions and reasons out, then rest.

Each ``<story>.yaml`` holds ``cases``: a cluster written with the builders of ``tests/builders.py`` (or as plain
Kubernetes objects), what the session must decide, optionally what the sessions after it must decide, and then five
more rounds in which nothing may move (not with ``once``: there the reader makes the pods, and nobody can bind them
for good). Before a round of ``later`` pods may ``finish``, gangs may ``arrive`` (entries as in ``cluster``) and
objects may be ``deleted``, by name.
"""

from __future__ import annotations

import pytest

from scheduler_core import run_session
from tests import builders as b
from tests.core.open_session import scores
from tests.golden.stories import HAPPENS, cases, happened, objects_of, policy_of, told
from tests.reference.aftermath import carry_out
from tests.reference.invariants import broken
from tests.reference.plugins import NAIVE
from tests.reference.session import ACTIONS, FOUNDING, decide

STEP = 40
CALM_ROUNDS = 5


def check(found, expected, where):
    for part in ("binds", "evictions", "pipelined"):
        assert found[part] == expected.get(part, type(found[part])()), f"{where}: {part}"
    if "events" in expected:
        assert found["events"] == expected["events"], f"{where}: events"
    for part in set(expected) - {"binds", "evictions", "pipelined", "scores"} - HAPPENS:
        for name, value in expected[part].items():
            assert name in found[part], f"{where}: {part} has no {name}, only {found[part]}"
            actual = found[part][name]
            if part == "numbers":
                actual = {key: actual.get(key) for key in value}
            assert actual == value, f"{where}: {part} of {name}"


def has_naive_version(policy):
    """The naive scheduler knows every plugin and action of the policy."""
    plugins = {option.name for tier in policy.tiers for option in tier}
    if policy.action_arguments.get("preempt", {}).get("enableTopologyAwarePreemption"):
        return False
    # The service that the naive extender speaks for answers nobody here.
    return not policy.compatibility and plugins <= NAIVE.keys() - {"extender"} and set(policy.actions) <= ACTIONS.keys()


@pytest.mark.parametrize("case", list(cases()))
def test_story(case):
    options, policy, objects = case.get("options", {}), policy_of(case), objects_of(case)
    seconds, memory, seen = case.get("now", 10_000), None, None
    rounds = [case["expect"], *case.get("later", [])]
    calm = 0 if case.get("once") else CALM_ROUNDS
    for number in range(len(rounds) + calm):
        moment = seconds + number * STEP
        objects = happened(objects, rounds[number] if number < len(rounds) else {})
        taken = b.taken(objects)
        before = memory
        result, memory = run_session(taken, policy, now=b.now(moment), memory=memory, check=True)
        expected = rounds[number] if number < len(rounds) else {}
        for pod, points in expected.get("scores", {}).items():
            found = scores(taken, f"default/{pod}", policy)
            assert {node: round(score, 2) for node, score in found.items()} == points, f"scores of {pod}"
        check(told(result), expected, f"round {number + 1}")
        if "policy" not in case:
            assert broken(taken, result, {**FOUNDING, **options}, b.now(moment)) == []
        if "policy" not in case or has_naive_version(policy):
            spoken = None if "policy" not in case else policy
            theirs = decide(taken, now=b.now(moment), policy=spoken, options=options, memory=before, before=seen)
            seen = theirs["seen"]
            assert theirs["binds"].keys() == {bind.pod for bind in result.binds}
            assert theirs["evictions"] == sorted((e.pod, e.reclaimer) for e in result.evictions)
        objects = carry_out(objects, result, moment)
