"""Where intent, last push and live part, field by field; no database."""

from __future__ import annotations

import json

import pytest

from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.quota.drift_fields import changed_by, compare, digest, fields_of, live_part, live_state

H200, A100 = "NVIDIA-H200", "NVIDIA-A100"


def queue(cards=None, **more):
    fields = {"service_type": "training", "weight": 2, "priority": 20000, "reclaimable": True, "cpu_milli": 8000}
    return manifests.queue("train", card_quota={H200: 8} if cards is None else cards, **(fields | more))


def live_of(manifest, **spec):
    live = json.loads(json.dumps(manifest))
    live["spec"] |= spec
    return live


def differences(intent, live, pushed=None):
    told = None if pushed is None else fields_of(pushed, state="Open")
    found = compare(fields_of(intent, state="Open"), told, fields_of(live, state="Open"))
    return {row.field: (row.intent, row.pushed, row.live) for row in found}


def test_the_same_amount_written_otherwise_is_no_drift():
    live = live_of(queue(), capability={"cpu": "8", "memory": "9Gi"})
    assert differences(queue(), live, queue()) == {}
    live["metadata"]["annotations"]["volcano.sh/card.quota"] = f'{{"{A100}": 0, "{H200}": 8.0}}'
    assert differences(queue(), live, queue()) == {}


@pytest.mark.parametrize(
    "text", ["[" * 99_999, '{"a": 1%s}' % ("0" * 400), '{"a\\u0000": 1}', '{"a\\ud800": 1}', "[1]"]
)
def test_a_card_quota_that_cannot_be_read_is_one_field(text):
    live = live_of(queue())
    live["metadata"]["annotations"]["volcano.sh/card.quota"] = text
    assert differences(queue(), live, queue())["annotations[volcano.sh/card.quota]"] == (None, None, text)


def test_a_card_that_nobody_asked_for_is_in_the_quota():
    live = live_of(queue({H200: 12, A100: 1}))
    assert differences(queue(), live, queue()) == {
        "card_quota.NVIDIA-H200": ("8", "8", "12"),
        "card_quota.NVIDIA-A100": ("0", "0", "1"),
    }
    assert differences(queue({}), live, queue({}))["card_quota.NVIDIA-A100"] == ("0", "0", "1")


def test_a_quota_that_cannot_be_read_is_shown_as_it_stands():
    live = live_of(queue())
    live["metadata"]["annotations"]["volcano.sh/card.quota"] = "eight"
    found = differences(queue(), live, queue())
    assert found["annotations[volcano.sh/card.quota]"] == (None, None, "eight")
    assert found["card_quota.NVIDIA-H200"] == ("8", "8", "0")


def test_what_is_on_its_way_is_no_drift_but_a_change_by_hand_beneath_it_is():
    assert differences(queue(weight=3), live_of(queue()), queue()) == {}
    assert differences(queue(weight=3), live_of(queue(), weight=7), queue()) == {"spec.weight": ("3", "2", "7")}
    assert differences(queue(weight=3), live_of(queue(), weight=3), queue()) == {}


def test_fields_of_others_are_left_alone_and_a_field_that_was_removed_is_missed():
    live = live_of(queue(), extendClusters=["x"], capability={"cpu": "8", "nvidia.com/gpu": "4"})
    live["metadata"]["labels"]["team"] = "x"
    assert differences(queue(), live, queue()) == {}
    del live["spec"]["priority"]
    assert differences(queue(), live, queue()) == {"spec.priority": ("20000", "20000", None)}


def test_without_a_known_push_the_intent_is_what_was_told():
    assert differences(queue(), live_of(queue(), weight=7)) == {"spec.weight": ("2", None, "7")}


def test_a_class_is_compared_with_the_defaults_of_kubernetes():
    wanted = manifests.priority_class("pc-x", value=7, global_default=False, preemption_policy="PreemptLowerPriority")
    live = {"kind": "PriorityClass", "metadata": {"name": "pc-x"}, "value": 7}
    assert compare(fields_of(wanted), None, fields_of(live)) == []
    live["value"] = 8
    assert [row.field for row in compare(fields_of(wanted), None, fields_of(live))] == ["value"]


@pytest.mark.parametrize(
    ("status", "wanted", "said"),
    [
        ({}, "Open", "Open"),
        ({"state": "Unknown"}, "Open", "Open"),
        ({"state": "Closed"}, "Open", "Closed"),
        ({"state": "Closing"}, "Closed", "Closed"),
        ({"state": "Open"}, "Closed", "Open"),
    ],
)
def test_a_queue_that_drains_counts_as_closed(status, wanted, said):
    assert live_state({"status": status}, wanted) == said


def test_the_newest_other_manager_of_the_field_is_named():
    managed = [
        {"manager": "tidesched", "time": "2026-11-20T10:00:00Z", "fieldsV1": {"f:spec": {"f:weight": {}}}},
        {"manager": "old", "time": "2026-11-20T09:00:00Z", "fieldsV1": {"f:spec": {"f:weight": {}}}},
        {
            "manager": "kubectl-edit",
            "time": "2026-11-20T11:00:00Z",
            "fieldsV1": {
                "f:spec": {".": {}, "f:weight": {}, "f:capability": {"f:cpu": {}}},
                "f:metadata": {"f:annotations": {"f:volcano.sh/card.quota": {}}},
            },
        },
    ]
    at = "2026-11-20T11:00:00Z"
    assert changed_by(managed, "spec.weight") == ("kubectl-edit", at)
    assert changed_by(managed, "spec.capability.cpu") == ("kubectl-edit", at)
    assert changed_by(managed, "card_quota.NVIDIA-H200") == ("kubectl-edit", at)
    assert changed_by(managed, "spec.priority") == ("", "")
    assert changed_by([], "spec.weight") == ("", "")


def test_another_change_by_hand_has_another_digest():
    def drift(weight):
        intent, live = fields_of(queue()), fields_of(live_of(queue(), weight=weight))
        return digest(compare(intent, None, live))

    assert drift(7) == drift(7) != drift(8)


def test_of_a_live_object_its_own_part_is_kept():
    live = live_of(queue()) | {"status": {"state": "Open", "running": 3}}
    live["metadata"] |= {"uid": "1", "managedFields": [{}]}
    kept = live_part(live)
    assert kept["status"] == {"state": "Open"}
    assert set(kept["metadata"]) == {"name", "labels", "annotations"} - (
        {"labels"} if not live["metadata"]["labels"] else set()
    )
