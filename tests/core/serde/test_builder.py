"""Objects one at a time: order does not matter, changes and deletions show, unread kinds are counted."""

import random

import pytest

from scheduler_core.model.errors import BadInput
from scheduler_core.serde.kubernetes import SnapshotBuilder
from scheduler_core.state.workspace import Workspace
from tests.builders import inference, job, listing, node, owned_by, pod, priority_classes, queue, snapshot, training
from tests.core.state.tables import tables

CLUSTER = listing(
    node("n1", "NVIDIA-H200", 8),
    node("n2", "Tesla-V100", 4),
    priority_classes(),
    queue("qi", {"NVIDIA-H200": 8}, priority=80000),
    queue("qt", {"NVIDIA-H200": 8}, priority=20000),
    training("t", "qt", 2, "NVIDIA-H200", 4, nodes=["n1"]),
    inference("i", "qi", 3, "NVIDIA-H200|Tesla-V100", 1),
)["items"]


def build(objects):
    builder = SnapshotBuilder()
    for body in objects:
        builder.upsert(body)
    return builder.build()


def test_the_order_of_objects_does_not_matter():
    shuffled = list(CLUSTER)
    random.Random(5).shuffle(shuffled)
    assert build(shuffled) == build(CLUSTER)


def test_changes_after_a_build_show_in_the_next():
    builder = SnapshotBuilder()
    for body in CLUSTER[1:]:
        builder.upsert(body)
    assert builder.build().nodes[0].name == "n2"
    builder.upsert(CLUSTER[0])
    assert builder.build() == build(CLUSTER)
    changed = pod("i-0", "i", node="n1", card="NVIDIA-H200|Tesla-V100", priority="pc-high")
    builder.upsert(changed)
    assert next(p for p in builder.build().pods if p.name == "i-0").node == "n1"
    builder.delete("Pod", "default", "i-0")
    builder.delete("Pod", "default", "never-was")
    assert [p.name for p in builder.build().pods] == ["i-1", "i-2", "t-0", "t-1"]


def test_a_card_type_that_appears_later_settles_the_pods_again():
    builder = SnapshotBuilder()
    builder.upsert(pod("p", resources={"nvidia.com/gpu": 2}))
    assert builder.build().pods[0].scalars == {"nvidia.com/gpu": 2}
    builder.upsert(node("n", "NVIDIA-H200", 8))
    assert builder.build().pods[0].card.milli == 2000
    builder.delete("Node", None, "n")
    assert builder.build().pods[0].card is None


def test_what_did_not_change_is_the_same_object_in_the_next_snapshot():
    builder = SnapshotBuilder()
    for body in CLUSTER:
        builder.upsert(body)
    first = builder.build()
    builder.upsert(pod("t-0", "t", node="n1", card="NVIDIA-H200", count=4, labels={"new": "label"}))
    second = builder.build()
    changed = [one.key for one, two in zip(first.pods, second.pods, strict=True) if one is not two]
    assert changed == ["default/t-0"]
    assert all(one is two for one, two in zip(first.pod_groups, second.pod_groups, strict=True))


def test_an_object_that_cannot_be_used_leaves_the_one_before():
    builder = SnapshotBuilder()
    builder.upsert(queue("q", {"A": 1}))
    with pytest.raises(BadInput):
        builder.upsert(queue("q", {"A": -1}))
    assert builder.build().queues[1].card_quota == {"A": 1000}


def test_kinds_that_are_not_read_are_counted_by_group():
    others = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "j"}},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "k"}},
    ]
    assert snapshot(others).passed_over == {"CronJob.batch": 2, "Secret": 1}


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("policy/v1", "PodDisruptionBudget"),
        ("v1", "ResourceQuota"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "PersistentVolume"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("topology.volcano.sh/v1alpha1", "HyperNode"),
        ("nodeinfo.volcano.sh/v1alpha1", "Numatopology"),
        ("metrics.k8s.io/v1beta1", "NodeMetrics"),
    ],
)
def test_kinds_of_which_only_the_form_is_read(version, kind):
    assert snapshot({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}).passed_over == {}
    with pytest.raises(BadInput) as caught:
        snapshot({"apiVersion": version, "kind": kind, "metadata": {}})
    assert caught.value.path == "items[0].metadata"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"apiVersion": "v1", "metadata": {"name": "x"}}, "items[0].kind"),
        ({"kind": "Pod", "metadata": {"name": "x"}}, "items[0].apiVersion"),
        ({"apiVersion": "v1", "kind": "Pod"}, "items[0]"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 7}}, "items[0].metadata.name"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": []}, "items[0].spec"),
    ],
)
def test_an_object_of_the_wrong_form_names_its_place(body, path):
    with pytest.raises(BadInput) as caught:
        snapshot(body)
    assert (caught.value.code, caught.value.path) == ("malformed_object", path)


BATCH = {
    "apiVersion": "workspace.brainpp.cn/v1alpha1",
    "kind": "BatchProcess",
    "metadata": {"name": "b", "namespace": "default", "annotations": {"scheduling.volcano.sh/queue-name": "qi"}},
    "spec": {
        "podGroup": {"replicas": 2, "minAvailable": 1, "timeoutSeconds": 10},
        "simpleProcesses": [{"replicas": 2, "minAvailable": 1}],
    },
}


class TestChanges:
    """A builder that is asked again and again gives what one gives that hears everything at once."""

    POOL = (
        *(node(f"n{i}", "NVIDIA-H200", 8) for i in range(3)),
        node("n0", "Tesla-V100", 4),
        node("n1", "NVIDIA-H200", 8, labels={"zone": "b"}),
        *priority_classes(),
        queue("qi", {"NVIDIA-H200": 8}),
        queue("qt", {"NVIDIA-H200": 4}),
        queue("qt", {"NVIDIA-H200": 6}),
        *training("t", "qt", 2, "NVIDIA-H200", 4, nodes=["n1"]),
        *training("t", "qt", 3, "NVIDIA-H200", 2),
        *training("u", "qi", 2, "Tesla-V100", 1),
        *inference("i", "qi", 3, "NVIDIA-H200|Tesla-V100", 1),
        pod("lone", resources={"nvidia.com/gpu": 2}),
        pod("t-0", "t", node="n1", card="NVIDIA-H200", count=4),
        pod("bad", "t", card="NVIDIA-H200", count=0),
        pod("bad", "u"),
        job("t", "qt", 3, min_available=2),
        BATCH,
        pod("b-0", owner=owned_by("BatchProcess", "b")),
    )

    @pytest.mark.parametrize("seed", range(60))
    def test_in_any_order_with_changes_and_deletions(self, seed):
        rng = random.Random(seed)
        kept, state = SnapshotBuilder(), {}
        workspace = Workspace()
        for _ in range(12):
            for _ in range(rng.choice([0, 1, 2, 8])):
                body = rng.choice(self.POOL)
                meta = body["metadata"]
                key = (body["kind"], meta.get("namespace"), meta["name"])
                if rng.random() < 0.3:
                    kept.delete(*key)
                    state.pop(key, None)
                else:
                    kept.upsert(body)
                    state[key] = body
            taken, expected = kept.build(), build(list(state.values()))
            assert taken == expected
            fresh = Workspace()
            workspace.load(taken)
            fresh.load(expected)
            assert tables(workspace) == tables(fresh)
