"""cdp: from when the cool-down counts."""

from __future__ import annotations

import pytest

from scheduler_core.plugins.cdp import Cdp
from tests import builders as b


class Tasks:
    def __init__(self, pod):
        self._pod = pod

    def pod(self, task):
        return self._pod


class Now:
    compat = False

    def __init__(self, pod, now):
        self.tasks, self.now = Tasks(pod), now


def protected(now, *, cooldown="1m", scheduled=None, **pod):
    made = b.pod("p", "g", **{"node": "n1", "created": 10, "started": 100, "annotations": {}, **pod})
    if cooldown:
        made["metadata"]["annotations"]["volcano.sh/cooldown-time"] = cooldown
    if scheduled is not None:
        made["status"]["conditions"] = [
            {"type": "Ready", "status": "True", "lastTransitionTime": b.at(5)},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": b.at(scheduled)},
        ]
    plugin = Cdp({})
    plugin.session = Now(b.snapshot(made).pods[0], b.now(now))
    return bool(plugin.preemptable(0, [1]).refused)


@pytest.mark.parametrize(("now", "expected"), [(89, True), (90, False)])
def test_from_the_moment_of_being_scheduled(now, expected):
    assert protected(now, scheduled=30) is expected


@pytest.mark.parametrize(("now", "expected"), [(159, True), (160, False)])
def test_else_from_the_start(now, expected):
    assert protected(now) is expected


def test_else_from_when_it_was_made():
    assert protected(69, phase="Pending")
    assert not protected(70, phase="Pending")


def test_a_label_will_do():
    assert protected(120, cooldown="", labels={"volcano.sh/cooldown-time": "1m"})


@pytest.mark.parametrize("cooldown", ["", "soon", "-1m"])
def test_who_has_none(cooldown):
    assert not protected(101, cooldown=cooldown)
