"""Claims, volumes and storage classes as they are read."""

from __future__ import annotations

import pytest

from scheduler_core.model.errors import BadInput
from scheduler_core.model.selector import NodeSelectorRequirement as Line
from scheduler_core.model.storage import StorageClass, Volume, VolumeClaim
from tests.builders import node, pod, snapshot


def thing(kind, spec=None, *, status=None, **more):
    group = "storage.k8s.io/v1" if kind == "StorageClass" else "v1"
    meta = {"name": "x", **({"namespace": "ns"} if kind.endswith("Claim") else {}), **more.pop("metadata", {})}
    body = {"apiVersion": group, "kind": kind, "metadata": meta, **more}
    return body | ({"spec": spec} if spec is not None else {}) | ({"status": status} if status else {})


def claim(spec=None, **more):
    return snapshot(thing("PersistentVolumeClaim", spec, **more)).claims[0]


def volume(spec=None, **more):
    return snapshot(thing("PersistentVolume", spec, **more)).volumes[0]


def storage_class(**more):
    return snapshot(thing("StorageClass", **more)).storage_classes[0]


def test_a_claim():
    found = claim(
        {
            "volumeName": "v",
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "resources": {"requests": {"storage": "1500m"}},
            "volumeMode": "Block",
            "selector": {"matchLabels": {"speed": "fast"}},
        },
        metadata={
            "annotations": {"volume.kubernetes.io/selected-node": "n1"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        status={"phase": "Lost"},
    )
    assert found == VolumeClaim(
        namespace="ns",
        name="x",
        volume="v",
        storage_class="fast",
        access_modes=("ReadOnlyMany", "ReadWriteOnce"),
        mode="Block",
        size=2,
        selector=(Line("speed", "In", ("fast",)),),
        selected_node="n1",
        lost=True,
        leaving=True,
    )
    assert found.key == "ns/x"


def test_a_claim_that_says_nothing():
    assert claim() == VolumeClaim(namespace="ns", name="x")
    assert claim({"storageClassName": ""}).storage_class == ""
    legacy = {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}
    assert claim({}, metadata=legacy).storage_class == "old"


def test_a_volume():
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["1"]}]}]
    found = volume(
        {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "claimRef": {"namespace": "ns", "name": "c"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            "csi": {"driver": "disk.example", "volumeHandle": "h"},
        },
        metadata={"labels": {"zone": "a"}},
        status={"phase": "Bound"},
    )
    assert found == Volume(
        name="x",
        storage_class="fast",
        access_modes=("ReadWriteOnce",),
        capacity=2**30,
        claim="ns/c",
        nodes=((Line("disk", "In", ("1",)),),),
        labels={"zone": "a"},
        driver="csi-disk.example",
        handle="h",
        available=False,
    )


@pytest.mark.parametrize(
    ("source", "driver", "handle"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "aws-ebs", "vol-1"),
        ({"gcePersistentDisk": {"pdName": "pd"}}, "gce-pd", "pd"),
        ({"azureDisk": {"diskName": "d"}}, "azure-disk", "d"),
        ({"cinder": {"volumeID": "c"}}, "cinder", "c"),
        ({"hostPath": {"path": "/"}}, "", "x"),
        ({}, "", "x"),
    ],
)
def test_what_attaches_a_volume(source, driver, handle):
    found = volume(source)
    assert (found.driver, found.handle) == (driver, handle)


def test_a_storage_class():
    found = storage_class(
        provisioner="disk.example",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=[{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}],
        metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    )
    zones = ((Line("zone", "In", ("a", "b")),),)
    assert found == StorageClass(name="x", provisioner="disk.example", waits=True, default=True, topologies=zones)
    assert storage_class() == StorageClass(name="x")


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        (thing("StorageClass", volumeBindingMode="Later"), "bad_value", "items[0].volumeBindingMode"),
        (
            thing("PersistentVolumeClaim", {"resources": {"requests": {"storage": "much"}}}),
            "bad_quantity",
            "items[0].spec.resources.requests.storage",
        ),
        (thing("PersistentVolume", {"capacity": {"storage": -1}}), "bad_quantity", "items[0].spec.capacity.storage"),
        (
            thing(
                "PersistentVolume",
                {
                    "nodeAffinity": {
                        "required": {"nodeSelectorTerms": [{"matchFields": [{"key": "a", "operator": "Is"}]}]}
                    }
                },
            ),
            "bad_value",
            "items[0].spec.nodeAffinity.required.nodeSelectorTerms[0].matchFields[0].operator",
        ),
        (thing("PersistentVolumeClaim", {"accessModes": "all"}), "malformed_object", "items[0].spec.accessModes"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(body, code, path):
    with pytest.raises(BadInput) as caught:
        snapshot(body)
    assert (caught.value.code, caught.value.path) == (code, path)


def test_what_a_pod_mounts_and_what_a_node_takes():
    body = node("n", extended={"attachable-volumes-csi-disk.example": "2", "attachable-volumes-aws-ebs": 39})
    mounts = {
        "volumes": [{"name": "e", "ephemeral": {}}, {"name": "c", "persistentVolumeClaim": {"claimName": "data"}}]
    }
    taken = snapshot(body, pod("p", spec=mounts))
    assert taken.nodes[0].volume_limits == {"csi-disk.example": 2, "aws-ebs": 39}
    assert taken.nodes[0].scalars == {}
    assert taken.pods[0].claims == ("data", "p-e")
