"""What stands for an object that cannot be read, and what a session makes of it."""

import pytest

from scheduler_core import run_session
from scheduler_core.serde.policy import parse_policy
from tests import builders as b

POLICY = parse_policy("""
actions: enqueue, allocate, preempt, reclaim, backfill
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
""")
CLASSES = [b.priority_class("high", 80000), b.priority_class("low", 100)]


def decided(*objects):
    return run_session(b.taken([b.node("n1", cpu=8), *objects]), POLICY, now=b.now(10), check=True)[0]


def gang(name, cls, *nodes, queue="default"):
    group = b.pod_group(name, queue, 1, priority=cls, annotations={"volcano.sh/preemptable": "true"})
    places = nodes or (None,)
    return [
        group,
        *(
            b.pod(f"{name}-{i}", name, cpu=4, node=node, priority=cls, preemptable="true")
            for i, node in enumerate(places)
        ),
    ]


@pytest.mark.parametrize(
    ("broken", "classes", "misconfigured"),
    [
        ({}, ("high", "low"), False),
        ({"preemptionPolicy": 7}, ("high", "low"), False),
        ({"value": "many"}, ("high", "low"), False),
        ({"value": None}, ("high", "low"), False),
        ({"value": "many", "globalDefault": True}, ("", "low"), False),
        ({"globalDefault": "yes"}, ("", "low"), False),
        ({"preemptionPolicy": 7}, ("low", "high"), False),
        ({"value": "many"}, ("low", "high"), True),
        ({"globalDefault": "yes"}, ("low", ""), True),
    ],
)
def test_nothing_is_a_victim_since_a_class_cannot_be_read(broken, classes, misconfigured):
    runs, comes = classes
    objects = (*gang("run", runs, "n1", "n1"), *gang("wait", comes))
    result = decided(CLASSES[0] | broken, CLASSES[1], *objects)
    assert [eviction.pod for eviction in result.evictions] == []
    codes = {reason.podgroup: reason.code for reason in result.reasons}
    assert (codes["default/wait"] == "Misconfigured") is misconfigured
    assert len(result.findings) == bool(broken)


def test_a_class_keeps_the_value_that_can_be_read():
    result = decided(CLASSES[0], CLASSES[1] | {"preemptionPolicy": 7}, *gang("run", "low", "n1"), *gang("wait", "high"))
    taken = b.taken([CLASSES[0] | {"metadata": {"name": "high", "uid": 5}}, *gang("run", "high")])
    assert {group.name: group.priority for group in taken.pod_groups} == {"run": 80000}
    assert [bind.pod for bind in result.binds] == ["default/wait-0"]


@pytest.mark.parametrize(
    "broken",
    [
        {"status": {"disruptionsAllowed": "x"}},
        {"status": {"disruptionsAllowed": 2}, "spec": {"selector": {"matchLabels": {"app": ["x"]}}}},
        {"status": {"disruptionsAllowed": 2}, "spec": {"selector": "all"}},
    ],
)
def test_a_budget_that_cannot_be_read_allows_nothing(broken):
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"selector": {}}}
    budget = {**budget, "metadata": {"name": "b", "namespace": "default"}, **broken}
    others = (*CLASSES, *gang("run", "low", "n1", "n1"), *gang("wait", "high"))
    assert [eviction.pod for eviction in decided(*others).evictions] == ["default/run-0"]
    assert [eviction.pod for eviction in decided(*others, budget).evictions] == []


@pytest.mark.parametrize(("kind", "name"), [("StatefulSet", "web"), ("ReplicaSet", "web"), ("Deployment", "web")])
def test_a_workload_keeps_its_annotations_and_its_pods(kind, name):
    notes = {"volcano.sh/preemptable": "false", "volcano.sh/service.type": "inference", "odd": ["no"]}
    workload = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "annotations": notes}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}
    owner = owner if kind == "Deployment" else {**owner, "kind": kind, "name": "web"}
    pods = [b.pod(f"web-{i}", cpu=4, node="n1", owner=owner) for i in range(2)]
    queues = (b.queue("default", weight=1), b.queue("other", weight=3))
    objects = (*queues, workload | {"spec": {"replicas": "two"}}, *pods, *gang("wait", "", queue="other"))
    found = {group.name: group for group in b.taken(objects).pod_groups}["podgroup-u"]
    assert (found.preemptable, found.service_type) == (False, "inference")
    assert found.problem.startswith("its workload web: ")
    assert [eviction.pod for eviction in decided(*objects).evictions] == []


def running(**spec):
    return b.pod("r", node="n1", cpu=6, spec=spec)


@pytest.mark.parametrize(
    "pod",
    [
        running(tolerations=[{"key": 5}] * 25),
        running(containers=[{"name": "c", "resources": {"requests": {"cpu": "x"}}}] * 25),
        running(containers=[{"resources": {"requests": {f"a.b/{i}": "x" for i in range(25)}}}]),
        running(volumes=[{"name": 5}] * 25),
        {key: value for key, value in running().items() if key != "apiVersion"},
        {**running(), "status": "x"},
    ],
)
def test_a_pod_that_runs_stays_and_closes_its_node(pod):
    taken = b.taken([b.node("n1", cpu=8), pod])
    assert [(one.key, one.node) for one in taken.pods] == [("default/r", "n1")]
    assert [(one.name, one.pods) for one in taken.nodes] == [("n1", 0)]
    assert len(taken.findings) == 1
    assert decided(pod, b.pod("w", cpu=1)).binds == ()


def test_a_queue_keeps_what_can_be_read():
    spec = {
        "parent": "p",
        "guarantee": {"resource": {"cpu": "4"}},
        "capability": {"cpu": "6", "memory": "many"},
        "weight": 3,
    }
    objects = [b.queue("p"), b.queue("q", {"A": 2}, annotations={"volcano.sh/odd": ["no"]}), *gang("g", "", queue="q")]
    objects[1]["spec"] |= spec
    taken = b.taken(objects)
    found = {queue.name: queue for queue in taken.queues}["q"]
    assert (found.parent, found.guarantee, found.cpu_milli, found.weight) == ("p", {"cpu": 4000}, 6000, 3)
    assert (found.card_quota, found.reclaimable) == ({"A": 2000}, False)
    assert {reason.code for reason in decided(*objects).reasons} == {"Misconfigured"}


def test_what_cannot_be_read_of_a_namespace_or_a_quota_takes_the_rest_not_along():
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"a": "b", "c": ["d"]}}}
    hard = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "h"}}
    taken = b.taken([space, hard | {"spec": {"hard": {"pods": "0", "requests.cpu": "x"}}}])
    assert [(one.name, one.labels) for one in taken.namespaces] == [
        ("default", {"a": "b", "kubernetes.io/metadata.name": "default"})
    ]
    assert len(taken.resource_quotas) == 1
    assert len(taken.findings) == 2


@pytest.mark.parametrize(
    ("name", "tree", "starts"), [("p", True, 0), ("root", True, 0), ("p", False, 1), ("root", False, 1)]
)
def test_nothing_starts_below_a_queue_that_cannot_be_read(name, tree, starts):
    plugins = f"[{{name: gang}}, {{name: predicates}}, {{name: capacity, enableHierarchy: {str(tree).lower()}}}]"
    policy = parse_policy(f"actions: enqueue, allocate\ntiers:\n- plugins: {plugins}\n")
    queues = [b.queue("root"), b.queue("p"), b.queue("a", parent="p")]
    queues = [one | {"spec": {"weight": -1}} if one["metadata"]["name"] == name else one for one in queues]
    objects = [b.node("n1", cpu=8), *queues, *gang("g", "", queue="a")]
    result, _ = run_session(b.taken(objects), policy, now=b.now(10), check=True)
    assert len(result.binds) == starts
    told = {reason.code: reason.message for reason in result.reasons}
    assert starts or f"queue {name} above it: spec.weight: -1 is below 1" in told["Misconfigured"]


@pytest.mark.parametrize(
    "body", [b.node("n"), b.queue("q"), b.pod_group("g", "q"), b.pod("p", node="n1"), b.job("j", "q", 1)]
)
def test_an_object_with_an_empty_name_is_left_aside_and_told(body):
    nameless = {**body, "metadata": {**body["metadata"], "name": ""}}
    taken = b.taken([b.node("n1", cpu=8), nameless])
    (found,) = taken.findings
    assert (found.object, found.path, bool(found.fix)) == ("items[1]", "metadata.name", True)
    assert (len(taken.pods), len(taken.pod_groups), [queue.name for queue in taken.queues]) == (0, 0, ["default"])
    assert [node.pods for node in taken.nodes] == [0 if body["kind"] == "Pod" else 110]


ROOM = (b.queue("org", parent="root"), b.queue("b", parent="root"), *gang("g", "", queue="b"))


@pytest.mark.parametrize("field", ["deserved", "guarantee"])
@pytest.mark.parametrize("amount", [{"cpu": "10Ei"}, {"cpu": "1e400"}, {"nvidia.com/gpu": "10Ei"}])
@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_what_a_queue_can_never_be_given_stops_no_other_queue(field, amount, plugin):
    policy = parse_policy(
        f"actions: enqueue, allocate\ntiers:\n- plugins: [{{name: gang}}, {{name: predicates}}, {{name: {plugin}}}]\n"
    )
    wrong = b.queue("wrong", **{field: amount})
    objects = [b.node("n1", cpu=16), *ROOM, wrong, *gang("w", "", queue="wrong")]
    result, _ = run_session(b.taken(objects), policy, now=b.now(10), check=True)
    assert [bind.pod for bind in result.binds] == ["default/g-0"]
    assert {reason.podgroup: reason.code for reason in result.reasons} == {"default/w": "Misconfigured"}
    (found,) = result.findings
    assert (found.object, found.path.startswith(f"spec.{field}")) == ("Queue wrong", True)


@pytest.mark.parametrize(
    ("annotation", "text", "closed"),
    [
        ("volcano.sh/preemptable", "maybe", False),
        ("volcano.sh/service.type", "neither", False),
        ("volcano.sh/task-priority", "first", False),
        ("tidesched.io/card-milli", "lots", True),
    ],
)
def test_an_annotation_of_a_pod_that_runs_is_told_and_closes_its_node_where_it_says_what_it_takes(
    annotation, text, closed
):
    taken = b.taken([b.node("n1", cpu=8), b.pod("r", cpu=6, node="n1", annotations={annotation: text})])
    (found,) = taken.findings
    assert (found.object, found.path) == ("Pod default/r", f'metadata.annotations["{annotation}"]')
    assert (text in found.message, bool(found.fix)) == (True, True)
    assert [(node.pods == 0) for node in taken.nodes] == [closed]
    assert [pod.cpu_milli for pod in taken.pods] == [0 if closed else 6000]


@pytest.mark.parametrize("kind", ["PodGroup", "Job", "StatefulSet"])
def test_what_a_workload_says_of_its_gang_is_told_of_the_workload(kind):
    notes = {"volcano.sh/preemptable": "maybe"}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "w", "uid": "u", "controller": True}
    body = {
        "PodGroup": b.pod_group("w", "default", annotations=notes),
        "Job": b.job("w", "default", 1, annotations=notes),
        "StatefulSet": {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w", "annotations": notes}},
    }[kind]
    taken = b.taken([body, b.pod("p", owner=owner)] if kind == "StatefulSet" else [body])
    (found,) = taken.findings
    assert (found.object, found.path) == (f"{kind} default/w", 'metadata.annotations["volcano.sh/preemptable"]')
    assert ["'maybe' is neither true nor false" in group.problem for group in taken.pod_groups] == [True]


@pytest.mark.parametrize(
    ("kind", "field", "value"), [("PersistentVolume", "nodeAffinity", "z9"), ("PersistentVolumeClaim", "resources", 5)]
)
def test_a_volume_or_claim_that_cannot_be_read_is_nowhere(kind, field, value):
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {}}
    claim = volume | {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"volumeName": "v"}}
    mount = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]}
    next(one for one in (volume, claim) if one["kind"] == kind)["spec"][field] = value
    result = decided(volume, claim, b.pod("p", cpu=1, spec=mount), b.pod("fine", cpu=1))
    assert [bind.pod for bind in result.binds] == ["default/fine"]
    assert [reason.code for reason in result.reasons] == ["NoNodeMatches"]
    assert [finding.object.partition(" ")[0] for finding in result.findings] == [kind]


def test_a_quota_is_told_by_the_key_that_was_written():
    hard = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "h"}}
    taken = b.taken([hard | {"spec": {"hard": {"pods": "3", "requests.cpu": "x"}}}])
    assert [finding.path for finding in taken.findings] == ['spec.hard["requests.cpu"]']
    assert [quota.hard for quota in taken.resource_quotas] == [{"pods": 3}]


@pytest.mark.parametrize("item", [None, "text", ["list"], {"kind": "Pod"}, {"apiVersion": "v1"}])
def test_what_is_no_object_is_told_with_what_would_be_right(item):
    (found,) = b.taken([item]).findings
    assert found.object == "items[0]"
    assert found.fix
