"""rescheduling: what a policy may write."""

from __future__ import annotations

import pytest

from scheduler_core import parse_policy
from scheduler_core.model.errors import BadInput


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("{interval: often}", "is not a duration"),
        ("{thresholds: {cpu: 60}}", "the threshold of cpu is above its target"),
        ("{thresholds: {cpu: 101}}", "is 0 to 100"),
        ("{targetThresholds: {disk: 10}}", "not of disk"),
    ],
)
def test_what_cannot_be_is_refused(arguments, says):
    text = f"actions: shuffle\ntiers:\n- plugins:\n  - name: rescheduling\n    arguments: {arguments}\n"
    with pytest.raises(BadInput, match=says):
        parse_policy(text)
