"""Mode schedule binds no pod that could not run where it is bound: volumes away, fields that are not acted on."""

from __future__ import annotations

from typing import Any

from tests.cluster.objects import template
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tidesched_web.clusters.kubernetes.paths import POD, STORAGE_CLASS, VOLUME, VOLUME_CLAIM
from tidesched_web.workloads.models import Gang

CLASS = "local"


def serve(stage: Stage, name: str, **spec: Any) -> None:
    manifest = template(1)
    manifest["metadata"] |= {"name": name}
    manifest["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] = "serve"
    manifest["spec"] |= {"schedulerName": "tidesched", "priorityClassName": "pc-high", **spec}
    stage.send(POD.path(NAMESPACE_NAME), manifest)


def waits(stage: Stage, name: str, code: str) -> Gang:
    stage.sessions_until(lambda: Gang.objects.filter(reason_code=code).exists())
    assert stage.bound(name) == 0
    return Gang.objects.get(reason_code=code)


def test_a_claim_waits_for_its_only_volume_which_is_away(stage: Stage) -> None:
    """WaitForFirstConsumer: the claim is bound once its pod has a node, and no node reaches the volume."""
    away = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["elsewhere"]}
    stage.send(
        STORAGE_CLASS.path(),
        {
            "metadata": {"name": CLASS},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    stage.send(
        VOLUME.path(),
        {
            "metadata": {"name": "only"},
            "spec": {
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": CLASS,
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [away]}]}},
            },
            "status": {"phase": "Available"},
        },
    )
    stage.send(
        VOLUME_CLAIM.path(NAMESPACE_NAME),
        {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": CLASS,
                "resources": {"requests": {"storage": "5Gi"}},
            },
        },
    )
    serve(stage, "mounts", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    gang = waits(stage, "mounts", "NoNodeMatches")
    assert list(gang.reason_numbers["nodes"]) == ["no volume to bind"]


def test_a_claim_that_does_not_exist(stage: Stage) -> None:
    serve(stage, "mounts", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "nowhere"}}])
    assert list(waits(stage, "mounts", "NoNodeMatches").reason_numbers["nodes"]) == ["volume claim missing"]


def test_a_field_that_is_not_acted_on_is_named(stage: Stage) -> None:
    serve(stage, "claims", resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}])
    assert waits(stage, "claims", "NotSupported").reason_numbers["field"] == "spec.resourceClaims"
