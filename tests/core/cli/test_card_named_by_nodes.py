"""A pod names its card by where it may run, or by asking for what one card type alone offers."""

from __future__ import annotations

import json

import pytest
import yaml

from scheduler_core.__main__ import main
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests.builders import TRAINING, job, listing, node, pod, pod_group, queue

A, H, MIG = "NVIDIA-A100", "NVIDIA-H200", "NVIDIA-H200/mig-1g.18gb-mixed"
LABEL = "nvidia.com/gpu.product"
BOTH = (node("a1", A, 8), node("h1", H, 8))


def affinity(*products):
    line = {"key": LABEL, "operator": "In", "values": list(products)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [line]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.fixture
def run(tmp_path, capsysbinary):
    def call(*objects, compatibility=""):
        (tmp_path / "conf.yaml").write_text(compatibility + FOUNDING_POLICY)
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(listing(*objects)))
        given = ["--snapshot", str(tmp_path / "cluster.yaml"), "--conf", str(tmp_path / "conf.yaml")]
        assert main(["run", *given, "--output", "json"]) == 0
        return json.loads(capsysbinary.readouterr().out)

    return call


def asks(resource="nvidia.com/gpu", count=2, **spec):
    return [
        pod_group("g", "q", 1, service_type="training"),
        pod("g-0", group="g", resources={resource: count}, spec=spec),
    ]


def used(result):
    return next(one["allocated"]["cards"] for one in result["queues"] if one["name"] == "q")


CASES = {
    "a node selector": (BOTH, {"nodeSelector": {LABEL: H}}, H),
    "required affinity": (BOTH, affinity(A), A),
    "one of several": (BOTH, affinity(H, A), A),
    "the only card there is": ((node("h1", H, 8),), {}, H),
}


@pytest.mark.parametrize("case", CASES)
def test_it_counts_against_the_quota_of_that_card(run, case):
    nodes, spec, card = CASES[case]
    result = run(*nodes, queue("q", {A: 8, H: 8}, **TRAINING), *asks(**spec))
    assert (len(result["binds"]), used(result)) == (1, {card: 2})
    # And no further than that.
    result = run(*nodes, queue("q", {A: 1, H: 1}, **TRAINING), *asks(**spec))
    assert result["binds"] == []
    assert result["reasons"][0]["code"] in ("ExceedsMaxQuota", "WaitingForQuota")


def test_a_slice_that_one_card_alone_offers(run):
    nodes = (node("a1", A, 8), node("h1", H, mig={"1g.18gb": 7}))
    result = run(*nodes, queue("q", {MIG: 4}, **TRAINING), *asks("nvidia.com/mig-1g.18gb"))
    assert used(result) == {MIG: 2}


def test_a_job_names_its_card_before_it_has_pods(run):
    template = {
        "spec": {
            "nodeSelector": {LABEL: H},
            "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 4}}}],
        }
    }
    made = job("t", "q", replicas=2)
    made["spec"]["tasks"][0]["template"] = template
    result = run(*BOTH, queue("q", {H: 6}, **TRAINING), made)
    (reason,) = result["reasons"]
    assert (reason["code"], reason["numbers"]["resource"], reason["numbers"]["short"]) == ("ExceedsMaxQuota", H, 2)


def test_without_any_of_them_the_message_says_what_to_write(run):
    (reason,) = run(*BOTH, queue("q", {A: 8, H: 8}, **TRAINING), *asks())["reasons"]
    assert reason["code"] == "Misconfigured"
    for way in ("volcano.sh/card.name", "nodeSelector"):
        assert way in reason["message"]


def test_a_product_that_no_node_has(run):
    (reason,) = run(*BOTH, queue("q", {A: 8, H: 8}, **TRAINING), *asks(nodeSelector={LABEL: "NVIDIA-B200"}))["reasons"]
    assert (reason["code"], reason["numbers"]["resource"]) == ("NoMatchingCard", "NVIDIA-B200")


def test_upstream_counts_what_is_written_alone(run):
    result = run(
        *BOTH,
        queue("q", {A: 8, H: 8}, **TRAINING),
        *asks(nodeSelector={LABEL: H}),
        compatibility="compatibility: volcano\n",
    )
    assert len(result["binds"]) == 1
