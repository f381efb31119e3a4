"""Lint of workloads and queues."""

from __future__ import annotations

import copy
import json

import pytest

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.lint import lint_workloads

CARD = "NVIDIA-H200"


def template(**notes):
    return {
        "metadata": {"annotations": {"volcano.sh/card.name": CARD, **notes}},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        },
    }


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "template": template(
            **{"volcano.sh/preemptable": "false", "scheduling.volcano.sh/queue-name": "chat-inference"}
        ),
    },
}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {
        "name": "train",
        "annotations": {"volcano.sh/service.type": "training", "volcano.sh/card.request": json.dumps({CARD: 24})},
    },
    "spec": {
        "queue": "research",
        "schedulerName": "volcano",
        "minAvailable": 3,
        "maxRetry": 100,
        "policies": [{"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}],
        "tasks": [{"name": "worker", "replicas": 2, "template": template()}, {"name": "ps", "template": template()}],
    },
}
QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {
        "name": "research",
        "annotations": {"volcano.sh/card.quota": json.dumps({CARD: 8}), "tidesched.io/service-type": "training"},
    },
    "spec": {"reclaimable": True},
}


def codes(document):
    return [finding.code for finding in lint_workloads(json.dumps(document))]


@pytest.mark.parametrize("document", [DEPLOYMENT, JOB, QUEUE], ids=lambda d: d["kind"])
def test_nothing_is_found_in_what_is_as_it_should_be(document):
    assert codes(document) == []


def in_template(**changes):
    return {"spec": {"template": changes}}


NO_NOTE = "volcano.sh/preemptable"


@pytest.mark.parametrize(
    ("base", "change", "code"),
    [
        (DEPLOYMENT, in_template(metadata={"annotations": {NO_NOTE: None}}), "inference-not-protected"),
        (DEPLOYMENT, in_template(metadata={"annotations": {NO_NOTE: "true"}}), "inference-not-protected"),
        (DEPLOYMENT, in_template(spec={"schedulerName": None}), "other-scheduler"),
        (DEPLOYMENT, in_template(metadata={"annotations": {"volcano.sh/card.name": None}}), "card-not-named"),
        (DEPLOYMENT, in_template(spec={"containers": []}), "card-not-asked"),
        (
            DEPLOYMENT,
            in_template(metadata={"annotations": {"volcano.sh/card.name": f"{CARD}|{CARD}/mig-1g.18gb-mixed"}}),
            "alternatives-differ",
        ),
        (DEPLOYMENT, in_template(metadata={"annotations": {"volcano.sh/card.name": " | "}}), "card-name-empty"),
        (DEPLOYMENT, in_template(metadata={"annotations": {"tidesched.io/card-milli": "500"}}), "share-and-whole"),
        (DEPLOYMENT, in_template(metadata={"annotations": {"scheduling.volcano.sh/queue-name": None}}), "no-queue"),
        (DEPLOYMENT, {"metadata": {"annotations": {"volcano.sh/service.type": "serving"}}}, "bad_value"),
        (JOB, {"spec": {"minAvailable": 2}}, "gang-not-whole"),
        (JOB, {"spec": {"minAvailable": 4}}, "gang-never-complete"),
        (JOB, {"spec": {"policies": []}}, "no-evicted-policy"),
        (JOB, {"spec": {"policies": [{"event": "PodEvicted", "action": "AbortJob"}]}}, "evicted-looks-failed"),
        (JOB, {"spec": {"maxRetry": 3}}, "few-retries"),
        (JOB, {"spec": {"queue": None}}, "no-queue"),
        (JOB, {"metadata": {"annotations": {"volcano.sh/card.request": "{"}}}, "bad_quantity"),
        (JOB, {"metadata": {"annotations": {"volcano.sh/card.request": '{"NVIDIA-H200": 8}'}}}, "card-request-differs"),
        (QUEUE, {"metadata": {"annotations": {"volcano.sh/card.quota": "[8]"}}}, "bad_quantity"),
        (QUEUE, {"metadata": {"annotations": {"volcano.sh/card.quota": None}}}, "no-card-quota"),
        (QUEUE, {"spec": {"reclaimable": False}}, "training-not-reclaimable"),
        (QUEUE, {"metadata": {"annotations": {"tidesched.io/service-type": "inference"}}}, "inference-reclaimable"),
        (DEPLOYMENT, {"spec": {"replicas": "many"}}, "malformed_object"),
    ],
)
def test_each_rule_finds_what_it_is_for(base, change, code):
    assert code in codes(merged(base, change))


def test_a_job_of_several_roles_ends_with_the_first_of_them():
    several = merged(JOB, {})
    several["spec"]["policies"].append({"event": "TaskCompleted", "action": "CompleteJob"})
    assert codes(several) == ["completes-too-early"]
    several["spec"]["tasks"].pop()
    several["metadata"]["annotations"].pop("volcano.sh/card.request")
    assert "completes-too-early" not in codes(several)


def test_a_policy_of_each_role_is_as_good_as_one_of_the_job():
    by_role = merged(JOB, {"spec": {"policies": []}})
    for task in by_role["spec"]["tasks"]:
        task["policies"] = [{"event": "PodEvicted", "action": "RestartTask"}]
    assert codes(by_role) == []


def test_a_protection_on_the_deployment_alone_says_where_it_belongs():
    moved = merged(DEPLOYMENT, in_template(metadata={"annotations": {NO_NOTE: None}}))
    moved["metadata"]["annotations"] = {NO_NOTE: "false"}
    (found,) = lint_workloads(json.dumps(moved))
    assert found.path == "spec.template.metadata.annotations"
    assert "PodGroup at best" in found.message


def test_several_objects_of_a_list_are_named():
    broken = merged(JOB, {"spec": {"minAvailable": 2}})
    found = lint_workloads(json.dumps({"kind": "List", "apiVersion": "v1", "items": [DEPLOYMENT, broken]}))
    assert [finding.object for finding in found] == ["Job train"]


def test_a_file_without_workloads_is_bad_input():
    with pytest.raises(BadInput) as caught:
        lint_workloads(json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}))
    assert caught.value.code == "no_workload"


def merged(base, change):
    """``base`` with ``change`` laid over it; None takes a key away."""
    result = copy.deepcopy(base)
    _lay(result, change)
    return result


def _lay(target, change):
    for key, value in change.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _lay(target[key], value)
        else:
            target[key] = value
