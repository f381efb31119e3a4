"""What the scheduler does not act on is never bound: the gang waits with the path of the field."""

from __future__ import annotations

import json

import pytest
import yaml

from scheduler_core.__main__ import main
from tests.builders import INFERENCE, job, listing, node, pod, pod_group, queue

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]
"""
ELSEWHERE = "scheduling.x-k8s.io/pod-group"
MODE, TIER = "volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier"


@pytest.fixture
def run(tmp_path, capsysbinary):
    (tmp_path / "conf.yaml").write_text(CONF)

    def call(command, *objects, extra=()):
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(listing(node("n1", "A", 4), *objects)))
        given = ["--snapshot", str(tmp_path / "cluster.yaml"), "--conf", str(tmp_path / "conf.yaml")]
        assert main([command, *extra, *given, "--output", "json"]) == 0
        return json.loads(capsysbinary.readouterr().out)

    return call


def group(**spec):
    made = pod_group("g", "default", 1)
    made["spec"] |= spec
    return made


def member(**fields):
    """One pod of the gang ``g``; ``labels`` and ``annotations`` are added to those it has, the rest to its spec."""
    made = pod("g-0", group="g")
    for part in ("labels", "annotations"):
        made["metadata"][part] = {**made["metadata"].get(part, {}), **fields.pop(part, {})}
    made["spec"] |= fields
    return made


CASES = {
    "claims of devices": (
        group(),
        member(resourceClaims=[{"name": "x", "resourceClaimName": "c"}]),
        "spec.resourceClaims",
    ),
    "resources of the pod": (group(), member(resources={"requests": {"cpu": "1"}}), "spec.resources"),
    "a group of kube-scheduler": (group(), member(schedulingGroup={"podGroupName": "x"}), "spec.schedulingGroup"),
    "a workload of kube-scheduler": (group(), member(workloadRef={"name": "x"}), "spec.workloadRef"),
    "scheduling gates": (group(), member(schedulingGates=[{"name": "x"}]), "spec.schedulingGates"),
    "hard topology": (group(networkTopology={"mode": "hard"}), member(), "spec.networkTopology.mode"),
    "topology without a mode": (group(networkTopology={}), member(), "spec.networkTopology.mode"),
    "hard topology of a pod": (group(), member(annotations={MODE: "hard"}), f'metadata.annotations["{MODE}"]'),
    "a tier of a pod": (group(), member(annotations={TIER: "2"}), f'metadata.annotations["{TIER}"]'),
    "groups inside of a gang": (group(subGroupPolicy=[{"name": "x"}]), member(), "spec.subGroupPolicy"),
}


@pytest.mark.parametrize("case", CASES)
def test_it_waits_with_the_path_of_the_field(run, case):
    gang, one, field = CASES[case]
    result = run("run", gang, one)
    assert (result["binds"], result["pipelined"]) == ([], [])
    (reason,) = result["reasons"]
    assert (reason["code"], reason["numbers"]["field"], reason["remedy"]) == ("NotSupported", field, None)
    assert field in reason["message"]
    # A gate says nothing of the gang: it is admitted, and its pods are scheduled once they are free.
    assert result["podgroups"][0]["phase"] == ("Inqueue" if case == "scheduling gates" else "Pending")
    found = run("explain", gang, one, extra=("default/g",))
    assert found["reason"]["numbers"]["field"] == field


def test_the_group_of_another_scheduler(run):
    alone = pod("p", labels={ELSEWHERE: "theirs"})
    (reason,) = run("run", alone)["reasons"]
    assert (reason["code"], reason["numbers"]["field"]) == ("NotSupported", f'metadata.labels["{ELSEWHERE}"]')
    # A pod that names a PodGroup of Volcano is in that one.
    assert len(run("run", group(), member(labels={ELSEWHERE: "theirs"}))["binds"]) == 1


@pytest.mark.parametrize("topology", [None, {"mode": "soft"}, {"mode": "soft", "highestTierAllowed": 2}])
def test_what_only_prefers_is_bound(run, topology):
    gang = group() if topology is None else group(networkTopology=topology)
    assert len(run("run", gang, member(annotations={} if topology is None else {MODE: "soft"}))["binds"]) == 1


def test_one_member_keeps_its_gang_waiting(run):
    gang = group(minMember=2)
    result = run("run", gang, member(resourceClaims=[{"name": "x"}]), pod("g-1", group="g"))
    assert result["binds"] == []
    assert result["reasons"][0]["code"] == "NotSupported"


def test_a_gated_pod_beyond_the_minimum_does_not_stop_the_others(run):
    gang, gated = group(), member(schedulingGates=[{"name": "x"}])
    result = run("run", gang, gated, pod("g-1", group="g"))
    assert [bind["pod"] for bind in result["binds"]] == ["default/g-1"]
    assert [reason["code"] for reason in result["reasons"]] == ["NotSupported"]


def test_a_gate_makes_a_gang_too_small(run):
    result = run("run", group(minMember=2), member(schedulingGates=[{"name": "x"}]), pod("g-1", group="g"))
    assert result["binds"] == []
    assert result["reasons"][0]["numbers"]["field"] == "spec.schedulingGates"


def test_a_job_is_not_admitted_before_it_has_pods(run):
    made = job("t", "default", replicas=2)
    made["spec"]["tasks"][0]["template"] = {"spec": {"resourceClaims": [{"name": "x"}]}}
    result = run("run", made)
    assert result["podgroups"][0]["phase"] == "Pending"
    (reason,) = result["reasons"]
    assert reason["code"] == "NotSupported"
    assert reason["numbers"]["field"] == "spec.tasks[0].template.spec.resourceClaims"


def test_what_a_pod_asks_for_as_a_whole_takes_room(run):
    """Two pods of 40 CPUs each on 64, one of them placed by another scheduler."""
    theirs = pod("theirs", node="n1", scheduler="default-scheduler")
    theirs["spec"]["resources"] = {"requests": {"cpu": "40"}, "limits": {"memory": "1Gi"}}
    result = run("run", theirs, pod("ours", cpu=40))
    assert result["binds"] == []


def test_lint_names_the_field(tmp_path, capsysbinary):
    made = job("t", "default", replicas=2)
    made["spec"]["networkTopology"] = {"mode": "hard"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": {"spec": {"schedulerName": "volcano", "resourceClaims": [{"name": "x"}]}}},
    }
    theirs = {**deployment, "spec": {"template": {"spec": {"resourceClaims": [{"name": "x"}]}}}}
    files = {
        "spec.networkTopology.mode": [made, group(networkTopology={"mode": "hard"})],
        "spec.template.spec.resourceClaims": [deployment],
        None: [theirs, queue("q", {"A": 8}, **INFERENCE)],
    }
    for field, objects in files.items():
        for one in objects:
            (tmp_path / "f.yaml").write_text(yaml.safe_dump(one))
            main(["lint", "--workload", str(tmp_path / "f.yaml"), "--output", "json"])
            found = json.loads(capsysbinary.readouterr().out)
            paths = [finding["path"] for finding in found if finding["code"] == "not-supported"]
            assert paths == ([field] if field else [])
