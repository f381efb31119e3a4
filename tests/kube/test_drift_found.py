"""A queue that is changed by hand in a real API server: found within ten seconds, named, and healed on request."""

from __future__ import annotations

import time

import pytest

from tests.web.changes.ground import H200
from tests.web.test_drift import fields, opened
from tidesched_web.clusters.kubernetes.paths import PRIORITY_CLASS
from tidesched_web.quota.services import drift


@pytest.mark.django_db
def test_a_change_by_hand_is_found_and_healed(server, monkeypatch) -> None:
    monkeypatch.setattr(drift, "wake_push", lambda: True)
    scene = opened(server)
    try:
        began = time.monotonic()
        scene.cards("acme-online", {H200: 9})
        row = scene.row("acme-online")
        found = time.monotonic() - began
        assert found < 10
        assert fields(row) == {"card_quota.NVIDIA-H200": ("6", "6", "9")}
        assert row.fields[0]["changed_by"] == "kubectl-edit"
        assert row.fields[0]["changed_at"]
        scene.push()
        assert "9" in str(scene.live("acme-online")["metadata"]["annotations"])
        drift.repush(drifts=[row], access=scene.ground.access("root"), reason="six")
        scene.push()
        assert scene.row("acme-online", state="resolved").end == "pushed"
        assert '{"NVIDIA-H200":6}' in str(scene.live("acme-online")["metadata"]["annotations"])

        scene.delete("acme-train")
        gone = scene.row("acme-train")
        assert gone.what == "missing"
        drift.repush(drifts=[gone], access=scene.ground.access("root"), reason="needed")
        scene.push()
        scene.row("acme-train", state="resolved")
        scene.live("acme-train")
        assert scene.client.get(PRIORITY_CLASS.path())["items"]
    finally:
        scene.cache.stop()
        scene.client.close()
