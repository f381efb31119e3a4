"""Every plugin and every action has a story."""

from __future__ import annotations

from pathlib import Path

import yaml

from scheduler_core.actions import ACTIONS
from scheduler_core.plugins import PLUGINS
from scheduler_core.serde.policy import parse_policy
from tests import builders as b


def test_nobody_is_left_out():
    plugins, actions = set(PLUGINS), set(ACTIONS)
    for file in Path(__file__).parent.glob("*.yaml"):
        for case in yaml.safe_load(file.read_text())["cases"].values():
            policy = parse_policy(case["policy"]) if "policy" in case else b.founding_policy()
            actions -= set(policy.actions)
            plugins -= {option.name for tier in policy.tiers for option in tier}
    assert (plugins, actions) == (set(), set())
