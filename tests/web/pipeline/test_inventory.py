"""Alerts about objects that cannot be read."""

from __future__ import annotations

from tests import builders as b
from tidesched_web.scheduling.pipeline.inventory import _unreadable


def test_each_finding_has_an_alert_of_its_own() -> None:
    space = "n" * 60
    pods = [b.pod("x" * 60 + str(i), namespace=space, spec={"tolerations": [{"key": 5}]}) for i in range(3)]
    assert len(_unreadable(b.taken(pods))) == 3
    assert all(len(key) <= 120 and key.startswith("object_unreadable:") for key in _unreadable(b.taken(pods)))
    queues = [b.queue("p", capability={"cpu": 2}, deserved={"cpu": 2}), b.queue("a", parent="p", deserved={"cpu": 3})]
    assert [finding.severity for finding in b.taken(queues).findings] == ["warning"]
    assert _unreadable(b.taken(queues)) == {}
