"""Every plugin and every action decides something in a story: without it the story comes out in another way."""

from __future__ import annotations

import msgspec
import pytest

from scheduler_core import run_session
from scheduler_core.actions import ACTIONS
from scheduler_core.plugins import PLUGINS
from tests import builders as b
from tests.golden.stories import cases, objects_of, policy_of, told


def decided(case, policy):
    """What the first session of a story decides under a policy."""
    result, _memory = run_session(b.taken(objects_of(case)), policy, now=b.now(case.get("now", 10_000)))
    return told(result)


def without(policy, name):
    """The policy without a plugin or an action; None where it has neither."""
    tiers = tuple(tuple(option for option in tier if option.name != name) for tier in policy.tiers)
    actions = tuple(action for action in policy.actions if action != name)
    if tiers == policy.tiers and actions == policy.actions:
        return None
    return msgspec.structs.replace(policy, tiers=tiers, actions=actions)


# The service that this plugin asks answers in `tests/core/plugins/test_extender.py` alone: without it nothing differs.
NEEDS_A_SERVICE = {"extender"}


@pytest.mark.parametrize("name", sorted({*PLUGINS, *ACTIONS} - NEEDS_A_SERVICE))
def test_without_it_a_story_comes_out_in_another_way(name):
    tried = 0
    for case in (entry.values[0] for entry in cases()):
        policy = policy_of(case)
        other = without(policy, name)
        if other is None:
            continue
        tried += 1
        if decided(case, policy) != decided(case, other):
            return
    pytest.fail(f"{name} decides nothing in its {tried} stories")
