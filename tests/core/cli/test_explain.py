"""``python -m scheduler_core explain``."""

from __future__ import annotations

import json

import pytest

from scheduler_core import run_session
from scheduler_core.cli.main import main
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests import builders as b


@pytest.fixture
def explain(tmp_path, capsys):
    """Run it on a small cluster; returns exit status, stdout, stderr."""
    objects = [
        *b.priority_classes(),
        b.queue("qi", {"A": 8}, **b.INFERENCE),
        b.queue("qt", {"A": 8}, **b.TRAINING),
        b.node("n1", "A", 4),
        b.node("n2", "B", 4, taints=[{"key": "lab", "effect": "NoSchedule"}]),
        b.node("n3"),
        *b.training("held", "qt", 1, "A", 4, nodes=["n1"], preemptable="false"),
        *b.inference("wants", "qi", 1, "A", 2),
        *b.inference("runs", "qi", 1, cpu=1),
        *b.inference("huge", "qi", 1, "A", 9),
    ]
    snapshot, conf = tmp_path / "snapshot.json", tmp_path / "policy.conf"
    snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    conf.write_text(FOUNDING_POLICY)

    def run(*arguments):
        status = main(["explain", *arguments, "--snapshot", str(snapshot), "--conf", str(conf)])
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


def test_every_node_and_every_victim_has_its_reason(explain):
    status, out, _ = explain("default/wants", "--output", "json")
    assert status == 0
    found = json.loads(out)
    assert (found["podgroup"], found["queue"], found["decision"]) == ("default/wants", "qi", "1 waiting")
    assert found["reason"]["code"] == "WaitingForCards"
    (member,) = found["members"]
    assert member["pods"] == ["default/wants-0"]
    assert member["nodes"] == [
        {"node": "n1", "fits": None, "refusal": "too few free cards", "resource": "A", "requested": 2.0, "free": 0.0},
        {"node": "n2", "fits": None, "refusal": "taint"},
        {"node": "n3", "fits": None, "refusal": "no such card", "resource": "A", "requested": 2.0, "free": 0.0},
    ]
    (victim,) = found["victims"]
    assert (victim["gang"], victim["queue"]) == ("default/held", "qt")
    assert "preemptable" in victim["rule"]


def test_a_gang_that_got_what_it_wants(explain):
    status, out, _ = explain("runs", "--output", "json")
    assert status == 0
    found = json.loads(out)
    assert (found["decision"], found["reason"], found["members"]) == ("1 bound now", None, [])


def test_a_table_for_people(explain):
    status, out, _ = explain("wants")
    assert status == 0
    assert "WaitingForCards: " in out
    assert "0 of 3 nodes fit" in out
    assert "default/held" in out


def test_the_quota_is_told_in_cards(explain):
    status, out, _ = explain("huge", "--output", "json")
    assert status == 0
    assert json.loads(out)["quota"] == (
        "asks for 9 x A, 0 x A in use and 0 x A promised of 8 x A in queue qi, 1 x A short"
    )


def test_a_gang_that_is_not_there_is_bad_input(explain):
    status, _, err = explain("default/want", "--output", "json")
    assert status == 2
    error = json.loads(err)["error"]
    assert (error["code"], error["hint"]) == ("unknown_gang", "did you mean 'default/wants'?")


def test_those_who_leave_for_it_are_named():
    objects = [
        *b.priority_classes(),
        b.queue("qi", {"A": 8}, **b.INFERENCE),
        b.queue("qt", {"A": 8}, **b.TRAINING),
        b.node("n1", "A", 4),
        *b.training("held", "qt", 2, "A", 2, nodes=["n1"]),
        *b.inference("wants", "qi", 1, "A", 2),
    ]
    told = {}
    _, memory = run_session(b.snapshot(objects), b.founding_policy(), now=b.now(100))
    for body in objects:
        if body["metadata"]["name"].startswith("held-") and body["kind"] == "Pod":
            body["metadata"]["deletionTimestamp"] = b.at(100)
    options = {"explain": ["default/wants"], "explain_to": told}
    run_session(b.snapshot(objects), b.founding_policy(), now=b.now(101), memory=memory, **options)
    assert "default/held-0, default/held-1 leave for it" in told["default/wants"].decision


def explained(tmp_path, capsys, given, *objects):
    """Exit status and the document on standard output or standard error."""
    snapshot, conf = tmp_path / "snapshot.json", tmp_path / "policy.conf"
    snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    conf.write_text(FOUNDING_POLICY)
    status = main(["explain", given, "--snapshot", str(snapshot), "--conf", str(conf), "--output", "json"])
    out = capsys.readouterr()
    return status, json.loads(out.out or out.err)


def of_job(name, uid):
    """A Volcano Job whose controller has made its PodGroup, which is called after the Job's uid."""
    wants = b.pod("worker", "", card="A", count=9)
    template = {"metadata": {"annotations": wants["metadata"]["annotations"]}, "spec": wants["spec"]}
    job = b.job(name, "qt", 1, template=template)
    job["metadata"]["uid"] = uid
    group = b.pod_group(f"{name}-{uid}", "qt", created=1)
    group["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    ]
    return job, group


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("pretrian", "did you mean 'default/pretrain', the Job of PodGroup 'default/pretrain-5f1c0a9e-77aa'?"),
        ("default/pretrian", "did you mean 'default/pretrain', the Job of PodGroup 'default/pretrain-5f1c0a9e-77aa'?"),
        ("research/pretrain", "did you mean 'default/pretrain', the Job of PodGroup 'default/pretrain-5f1c0a9e-77aa'?"),
        ("pretrain-5f1c0a9e-77ab", "did you mean 'default/pretrain-5f1c0a9e-77aa'?"),
    ],
)
def test_a_misspelt_job_is_named_with_its_podgroup(tmp_path, capsys, given, hint):
    queue = b.queue("qt", {"A": 8}, **b.TRAINING)
    objects = (*b.priority_classes(), queue, b.node("n1", "A", 4), *of_job("pretrain", "5f1c0a9e-77aa"))
    status, found = explained(tmp_path, capsys, given, *objects)
    assert (status, found["error"]["code"], found["error"]["hint"]) == (2, "unknown_gang", hint)
    status, found = explained(tmp_path, capsys, "pretrain", *objects)
    assert (status, found["podgroup"]) == (0, "default/pretrain-5f1c0a9e-77aa")


def test_a_node_that_a_plugin_refuses_to_the_task_does_not_fit(tmp_path, capsys):
    """The reason of the gang counted these nodes; the table beside it said that all of them fit."""
    objects = [
        *b.priority_classes(),
        b.queue("q", {"A": 8}, **b.TRAINING),
        b.node("n1", "A", 4),
        b.node("n2", "A", 4),
        *b.training("waits", "q", 1, "A", 1),
    ]
    snapshot, conf = tmp_path / "snapshot.json", tmp_path / "policy.conf"
    snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    conf.write_text(FOUNDING_POLICY.replace("plugins:\n", "plugins:\n  - name: nodegroup\n", 1))
    arguments = ["explain", "waits", "--snapshot", str(snapshot), "--conf", str(conf)]
    assert main([*arguments, "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reason"]["code"] == "NoNodeMatches"
    ((label, count),) = found["reason"]["numbers"]["nodes"].items()
    assert (count, [node["refusal"] for node in found["members"][0]["nodes"]]) == (2, [label, label])
    assert main(arguments) == 0
    assert f"0 of 2 nodes fit; 2 {label}" in capsys.readouterr().out
