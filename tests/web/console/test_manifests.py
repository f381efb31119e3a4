"""The manifests that a queue's page offers start in that queue, as a session decides it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from scheduler_core import run_session
from scheduler_core.serde.lint import lint_workloads
from tests import builders
from tidesched_web.clusters.models import Cluster
from tidesched_web.console import manifests
from tidesched_web.quota.models import Queue

QUEUES = {"inference": "serve", "training": "train"}
CARDS = {
    "NVIDIA-H200": builders.node("n1", "NVIDIA-H200", 8),
    "NVIDIA-H200/mig-1g.18gb-mixed": builders.node("n1", "NVIDIA-H200", mig={"1g.18gb": 7}),
    "NVIDIA-H800/mps-80g*1/2": builders.node("n1", "NVIDIA-H800", shares=8, shares_per_card=2),
}


def pods_of(manifest: dict[str, Any], template: dict[str, Any], replicas: int, owner: str) -> list[dict[str, Any]]:
    """What a controller makes of the manifest."""
    name = manifest["metadata"]["name"]
    notes = dict(template["metadata"]["annotations"])
    inherited = {}
    if owner == "Job":
        inherited = {field: manifest["spec"][field] for field in ("schedulerName", "priorityClassName")}
        notes |= {"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": "worker"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{number}",
                "namespace": manifest["metadata"]["namespace"],
                "uid": f"uid-{number}",
                "labels": template["metadata"].get("labels", {}),
                "annotations": notes,
                "creationTimestamp": builders.at(1),
                "ownerReferences": [builders.owned_by(owner, name)],
            },
            "spec": inherited | template["spec"],
            "status": {"phase": "Pending"},
        }
        for number in range(replicas)
    ]


def outcome(card: str, *objects: dict[str, Any]) -> Any:
    queues = [
        builders.queue(name, {card: 4}, **(builders.INFERENCE if kind == "inference" else builders.TRAINING))
        for kind, name in QUEUES.items()
    ]
    found = builders.snapshot(CARDS[card], *queues, *builders.priority_classes(), *objects, schedulers=("tidesched",))
    result, _memory = run_session(found, builders.founding_policy(), now=builders.now(10))
    return result


@pytest.mark.parametrize("card", CARDS)
def test_the_deployment_starts_in_its_queue(card: str) -> None:
    manifest = yaml.safe_load(manifests.inference_deployment("serve", card, "tidesched"))
    result = outcome(card, *pods_of(manifest, manifest["spec"]["template"], manifest["spec"]["replicas"], "ReplicaSet"))
    assert [bind.card for bind in result.binds] == [card] * 2
    assert {group.queue for group in result.podgroups} == {"serve"}
    assert {group.service_type for group in result.podgroups} == {"inference"}


@pytest.mark.parametrize("card", CARDS)
def test_the_job_starts_as_a_gang_in_its_queue(card: str) -> None:
    manifest = yaml.safe_load(manifests.training_job("train", card, "tidesched"))
    task = manifest["spec"]["tasks"][0]
    result = outcome(card, manifest, *pods_of(manifest, task["template"], task["replicas"], "Job"))
    assert [bind.card for bind in result.binds] == [card] * 2
    (gang,) = result.podgroups
    assert (gang.name, gang.queue) == ("default/my-training", "train")
    assert (gang.service_type, gang.min_member) == ("training", 2)


@pytest.mark.parametrize("card", CARDS)
def test_lint_finds_nothing_in_them(card: str) -> None:
    for text in (
        manifests.inference_deployment("serve", card, "tidesched"),
        manifests.training_job("train", card, "tidesched"),
    ):
        assert [finding.message for finding in lint_workloads(text)] == []


def test_a_queue_without_a_card_quota_is_offered_none() -> None:
    assert manifests.for_queue(Queue(name="x", service_type="training"), []) == []


@pytest.mark.parametrize(("granted", "namespace"), [(["search", "shop"], "search"), ([], "default"), (None, "default")])
def test_manifests_stand_in_a_namespace_that_may_use_the_queue(granted: list[str] | None, namespace: str) -> None:
    queue = Queue(name="x", service_type="training", cluster=Cluster(scheduler_names=["tidesched"]))
    for manifest in manifests.for_queue(queue, ["NVIDIA-H200"], granted):
        assert yaml.safe_load(manifest.text)["metadata"]["namespace"] == namespace
