"""What a gang lacks has a name of its own; Fragmented is about cards alone, and what would help helps."""

from __future__ import annotations

import json

import pytest
import yaml

from scheduler_core.__main__ import main
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests.builders import INFERENCE, TRAINING, inference, listing, node, nodes, pod, pod_group, queue, training

A = "NVIDIA-A100"
GI = 1024**3
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: %s}, {name: predicates}, {name: nodeorder}]
"""


@pytest.fixture
def call(tmp_path, capsysbinary):
    def run(command, *objects, extra=(), plugin="gang"):
        (tmp_path / "conf.yaml").write_text(CONF % plugin)
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(listing(*objects)))
        given = ["--snapshot", str(tmp_path / "cluster.yaml"), "--conf", str(tmp_path / "conf.yaml")]
        assert main([command, *extra, *given, "--output", "json"]) == 0
        return json.loads(capsysbinary.readouterr().out)

    return run


def reason_of(result, name="default/g"):
    return next(reason for reason in result["reasons"] if reason["podgroup"] == name)


def asks(pods=1, **fields):
    spec = fields.pop("spec", None)
    fields.setdefault("cpu", 1)
    made = [pod(f"g-{i}", group="g", spec=spec, **fields) for i in range(pods)]
    return [pod_group("g", "default", pods), *made]


def holds(name, on="n1", **fields):
    return [pod_group(name, "default", 1, phase="Running"), pod(f"{name}-0", group=name, node=on, **fields)]


STORAGE = {"ephemeral-storage": "10Gi"}
PAGES = {"hugepages-2Mi": "1Gi"}
FPGA = {"example.com/fpga": 4}
SHORT = {
    "processor": (
        [node("n1", A, 8, cpu=8), node("n2", cpu=64), *holds("x", cpu=8)],
        asks(cpu=4, card=A),
        ("cpu", 4000, 0, 4000, {"cpu in use": 1, "no such card": 1}),
    ),
    "memory": (
        [node("n1", memory="4Gi"), *holds("x", memory="3Gi")],
        asks(memory="2Gi"),
        ("memory", 2 * GI, GI, GI, {"memory in use": 1}),
    ),
    "pods": ([node("n1", pods=1), *holds("x")], asks(), ("pods", 1, 0, 1, {"too many pods": 1})),
    "huge pages": (
        [node("n1", A, 8, extended=PAGES), *holds("x", resources={"hugepages-2Mi": "768Mi"})],
        asks(card=A, resources={"hugepages-2Mi": "512Mi"}),
        ("hugepages-2Mi", GI // 2, GI // 4, GI // 4, {"hugepages-2Mi in use": 1}),
    ),
    "storage": (
        [node("n1", extended=STORAGE), *holds("x", resources={"ephemeral-storage": "6Gi"})],
        asks(resources={"ephemeral-storage": "5Gi"}),
        ("ephemeral-storage", 5 * GI, 4 * GI, GI, {"ephemeral-storage in use": 1}),
    ),
    "another resource": (
        [node("n1", extended=FPGA), *holds("x", resources={"example.com/fpga": 3})],
        asks(resources={"example.com/fpga": 2}),
        ("example.com/fpga", 2, 1, 1, {"example.com/fpga in use": 1}),
    ),
}


@pytest.mark.parametrize("case", SHORT)
def test_a_resource_is_named_with_what_is_short_of_it(call, case):
    cluster, gang, (resource, requested, free, short, refused) = SHORT[case]
    result = call("run", *cluster, *gang)
    assert result["binds"] == []
    found = reason_of(result)
    numbers = found["numbers"]
    assert (found["code"], numbers["resource"]) == ("WaitingForResources", resource)
    assert (numbers["requested"], numbers["free"], numbers["short"]) == (requested, free, short)
    assert numbers["nodes"] == refused
    assert [holder["gang"] for holder in numbers["holders"]] == ["default/x"]
    assert call("explain", *cluster, *gang, extra=("g",))["reason"]["remedy"] == {
        "change": "gang_ends",
        "gang": "default/x",
        "verified": True,
    }


def test_storage_is_looked_at(call):
    result = call("run", node("n1", extended=STORAGE), *asks(resources={"ephemeral-storage": "20Gi"}))
    assert result["binds"] == []
    found = reason_of(result)
    assert (found["code"], found["numbers"]["resource"]) == ("WaitingForResources", "ephemeral-storage")
    assert (found["numbers"]["short"], found["remedy"]) == (10 * GI, None)


def test_a_gang_is_short_as_a_whole(call):
    """Three of 4 CPUs on two nodes with 6 each: one finds a place on each, of the third one 2 are there."""
    result = call("run", *nodes("n", 2, cpu=6), *asks(3, cpu=4))
    numbers = reason_of(result)["numbers"]
    assert (numbers["resource"], numbers["requested"], numbers["free"], numbers["short"]) == ("cpu", 12000, 10000, 2000)


COMPANY = {
    "host port": {"spec": {"containers": [{"name": "c", "image": "x", "ports": [{"hostPort": 80}]}]}},
    "pod anti-affinity": {
        "labels": {"app": "g"},
        "spec": {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {"matchLabels": {"app": "g"}}, "topologyKey": "kubernetes.io/hostname"}
                    ]
                }
            }
        },
    },
}


@pytest.mark.parametrize("cause", COMPANY)
def test_members_that_keep_each_other_off_a_node(call, cause):
    gang = asks(2, **COMPANY[cause])
    found = reason_of(call("run", node("n1"), *gang))
    assert (found["code"], found["numbers"]["nodes"], found["remedy"]) == ("NoNodeMatches", {cause: 1}, None)
    assert found["numbers"]["short"] > 0
    # One member has room, beside it the other one has none.
    members = call("explain", node("n1"), *gang, extra=("g",))["members"]
    assert [(len(member["pods"]), member["nodes"][0]["fits"]) for member in members] == [(1, "now"), (1, None)]
    assert members[1]["nodes"][0]["refusal"] == cause
    assert len(call("run", node("n1"), node("n2"), *gang)["binds"]) == 2


def test_a_port_that_another_gang_holds_ends_with_it(call):
    port = {"containers": [{"name": "c", "image": "x", "ports": [{"hostPort": 80}]}]}
    cluster = [node("n1"), *holds("x", spec=port), *holds("y")]
    found = call("explain", *cluster, *asks(spec=port), extra=("g",))["reason"]
    assert (found["code"], found["numbers"]["nodes"]) == ("NoNodeMatches", {"host port": 1})
    assert found["remedy"] == {"change": "gang_ends", "gang": "default/x", "verified": True}


def test_cards_that_are_scattered(call):
    cluster = [*nodes("n", 2, card=A, count=4), *holds("x", on="n-0000", card=A, count=1)]
    cluster += holds("y", on="n-0001", card=A, count=2)
    found = call("explain", *cluster, *asks(card=A, count=4), extra=("g",))["reason"]
    assert (found["code"], found["numbers"]["free"], found["numbers"]["short"]) == ("Fragmented", 5, 1)
    assert found["remedy"]["gang"] == "default/x"


def test_a_volume_away(call):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["gone"]}]}]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {"capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
    }
    mount = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    result = call("run", node("n1"), claim, volume, *asks(spec=mount))
    assert result["binds"] == []
    found = reason_of(result)
    assert (found["code"], found["numbers"]["nodes"]) == ("NoNodeMatches", {"volume node affinity": 1})


def test_an_incomplete_group_of_pods_that_are_placed_one_by_one(call):
    gang = [pod_group("g", "default", 3), *(pod(f"g-{i}", group="g") for i in range(2))]
    found = reason_of(call("run", node("n1"), *gang, plugin="coscheduling"))
    assert (found["code"], found["numbers"]["short"]) == ("GangIncomplete", 1)


def test_a_group_that_holds_places_is_behind_nobody(call):
    result = call("run", node("n1", cpu=2), *asks(3), plugin="coscheduling")
    found = reason_of(result)
    assert (found["code"], found["numbers"]["resource"], found["numbers"]["short"]) == (
        "WaitingForResources",
        "cpu",
        1000,
    )


class TestQuota:
    CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}]
- plugins: [{name: capacity-card, arguments: {overCommitFactor: 2}}, {name: nodeorder}]
"""

    @pytest.fixture
    def found(self, call, monkeypatch):
        monkeypatch.setattr("tests.core.cli.test_shortages.CONF", self.CONF.replace("%", "%%") + "# %s")

        def explain(*objects, gang="g"):
            return call("explain", *objects, extra=(gang,))["reason"], call("run", *objects)

        return explain

    def test_more_than_the_quota_beside_what_is_in_use(self, found):
        q = queue("q", {A: 6}, **TRAINING)
        runs, asks = training("r", "q", 1, A, 1, nodes=["n1"]), training("g", "q", 1, A, 8)
        reason, result = found(node("n1", A, 16), q, *runs, *asks)
        numbers = reason["numbers"]
        assert (reason["code"], numbers["allocated"], numbers["limit"], numbers["short"]) == (
            "ExceedsMaxQuota",
            1,
            6,
            3,
        )
        assert (reason["remedy"]["change"], reason["remedy"]["by"]) == ("quota", 3)
        assert next(one for one in result["queues"] if one["name"] == "q")["allocated"]["cards"] == {A: 1}

    def test_numbers_are_those_of_the_end(self, found):
        gangs = (*training("a", "q", 2, A, 1, created=1), *training("g", "q", 2, A, 1, created=2))
        reason, result = found(node("n1", A, 8), queue("q", {A: 3}, **TRAINING), *gangs)
        used = next(one for one in result["queues"] if one["name"] == "q")
        numbers = reason["numbers"]
        assert reason["code"] == "WaitingForQuota"
        assert (numbers["allocated"], numbers["inqueue"]) == (used["allocated"]["cards"][A], 0) == (2, 0)
        assert (numbers["short"], reason["remedy"]["by"]) == (1, 1)

    def test_a_promise_is_held_by_somebody(self, found):
        gangs = (*training("w", "q", 1, A, 8, created=1), *training("g", "q", 1, A, 1, created=2))
        runs = training("r", "q", 1, A, 8, nodes=["n1"])
        reason, _ = found(node("n1", A, 8), queue("q", {A: 32}, **TRAINING), *runs, *gangs)
        assert reason["code"] == "OverCommitted"
        held = {holder["gang"]: holder for holder in reason["numbers"]["holders"]}
        assert {name: holder["amount"] for name, holder in held.items()} == {"default/r": 8, "default/w": 8}
        assert "promised_since" in held["default/w"]
        assert "promised_since" not in held["default/r"]

    def test_a_promise_that_cannot_be_kept_goes_to_one_that_can(self, found, monkeypatch):
        """The gang of 8 fits no node of 4: what its queue would promise it is there for the one that takes back."""
        monkeypatch.setattr("tests.core.cli.test_shortages.CONF", f"{FOUNDING_POLICY}# %s")
        cluster = (*nodes("n", 2, card=A, count=4), queue("q", {A: 8}, **INFERENCE), queue("t", {A: 8}, **TRAINING))
        runs = training("t", "t", 2, A, 4, nodes=["n-0000", "n-0001"])
        wants = (*inference("big", "q", 1, A, 8, created=1), *inference("g", "q", 1, A, 2, created=2))
        reason, result = found(*cluster, *runs, *wants)
        phases = {group["name"]: group["phase"] for group in result["podgroups"]}
        assert (phases["default/big"], phases["default/g"]) == ("Pending", "Inqueue")
        assert reason["code"] == "WaitingForReclaim"
        assert {reclaim["reclaimer"] for reclaim in result["reclaims"]} == {"default/g"}
