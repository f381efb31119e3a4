"""What agents report of nodes, and namespaces, as they are read."""

from __future__ import annotations

import pytest

from scheduler_core.model.errors import BadInput
from scheduler_core.model.observed import Namespace, NodeMetrics, NumaTopology
from scheduler_core.model.queue import NodeGroups
from scheduler_core.serde.kubernetes.observed import cpu_set
from tests.builders import at, node, now, pod, queue, snapshot


def numa(**spec):
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": "n"},
        "spec": spec,
    }


def test_a_numa_topology():
    body = numa(
        policies={"CPUManagerPolicy": "static", "TopologyManagerPolicy": "restricted"},
        resReserved={"cpu": "1500m"},
        numares={"cpu": {"allocatable": "0-2,4", "capacity": 6}, "memory": {"allocatable": "", "capacity": 1}},
        cpuDetail={str(i): {"numa": i // 4, "socket": i // 4, "core": i % 4 // 2} for i in (4, 0, 1)},
    )
    assert snapshot(body).numa == (
        NumaTopology(
            name="n",
            policy="restricted",
            static_cpus=True,
            cells={0: 0, 1: 0, 4: 1},
            cores={0: 0, 1: 0, 4: 0},
            sockets={0: 0, 1: 0, 4: 1},
            free=(0, 1, 2, 4),
            reserved_milli=1500,
        ),
    )
    assert snapshot(numa()).numa == (NumaTopology(name="n"),)


@pytest.mark.parametrize(("text", "numbers"), [("", ()), ("3", (3,)), ("0-3,8", (0, 1, 2, 3, 8)), ("2, 1", (1, 2))])
def test_sets_of_cpus(text, numbers):
    assert cpu_set(text, ".x") == numbers


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"policies": {"TopologyManagerPolicy": "best"}}, "items[0].spec.policies.TopologyManagerPolicy"),
        ({"numares": {"cpu": {"allocatable": "3-1"}}}, "items[0].spec.numares.cpu.allocatable"),
        ({"numares": {"cpu": {"allocatable": "0-99999999"}}}, "items[0].spec.numares.cpu.allocatable"),
        ({"numares": {"cpu": {"allocatable": "a"}}}, "items[0].spec.numares.cpu.allocatable"),
        ({"cpuDetail": {"one": {}}}, "items[0].spec.cpuDetail.one"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(spec, path):
    with pytest.raises(BadInput) as caught:
        snapshot(numa(**spec))
    assert (caught.value.code, caught.value.path) == ("bad_value", path)


def metrics(**fields):
    return {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": {"name": "n"}, **fields}


def test_measured_use():
    taken = snapshot(metrics(timestamp=at(60), usage={"cpu": "1500000001n", "memory": "1Gi"}))
    assert taken.metrics == (NodeMetrics(name="n", at=now(60), cpu_milli=1501, memory_mib=1024),)
    assert taken.latest == now(60)


def test_a_bad_measurement():
    with pytest.raises(BadInput) as caught:
        snapshot(metrics(timestamp="yesterday"))
    assert (caught.value.code, caught.value.path) == ("bad_timestamp", "items[0].timestamp")


def test_a_namespace_has_its_name_as_a_label():
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {"team": "a"}}}
    labels = {"kubernetes.io/metadata.name": "ns", "team": "a"}
    assert snapshot(body).namespaces == (Namespace(name="ns", labels=labels),)


def test_images_have_a_tag():
    body = node("n")
    body["status"]["images"] = [{"names": ["r/a", "r:5000/b:1"], "sizeBytes": 7}, {"names": None}]
    taken = snapshot(
        body, pod("p", spec={"containers": [{"image": "r/a"}], "initContainers": [{"image": "x@sha256:1"}]})
    )
    assert taken.nodes[0].images == {"r/a:latest": 7, "r:5000/b:1": 7}
    assert taken.pods[0].images == ("x@sha256:1", "r/a:latest")


@pytest.mark.parametrize(
    ("resources", "cpus"),
    [
        ({"limits": {"cpu": 2, "memory": "1Gi"}}, (2,)),
        ({"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": 2, "memory": "1Gi"}}, (2,)),
        ({"limits": {"cpu": "1500m", "memory": "1Gi"}}, (0,)),
        ({"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": 1}}, ()),
        ({"limits": {"cpu": 2}}, ()),
        ({"requests": {"cpu": 2, "memory": "1Gi"}}, ()),
    ],
)
def test_whole_cpus_of_a_guaranteed_pod(resources, cpus):
    notes = {"volcano.sh/numa-topology-policy": "restricted"}
    (taken,) = snapshot(pod("p", annotations=notes, spec={"containers": [{"resources": resources}]})).pods
    assert (taken.numa_policy, taken.whole_cpus) == ("restricted", cpus)


def test_node_groups_of_a_queue():
    body = queue("q")
    required, preferred = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
    body["spec"]["affinity"] = {
        "nodeGroupAffinity": {required: ["a", "a"], preferred: ["c", "b"]},
        "nodeGroupAntiAffinity": {required: ["d"], preferred: ["e"]},
    }
    groups = NodeGroups(required=("a",), preferred=("c", "b"), denied=("d",), avoided=("e",))
    assert next(q for q in snapshot(body).queues if q.name == "q").node_groups == groups
    body["spec"]["affinity"] = {"nodeGroupAffinity": {}}
    assert next(q for q in snapshot(body).queues if q.name == "q").node_groups is None
