"""``python -m scheduler_core run`` as a user calls it: files, exit status and output."""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from scheduler_core.cli.main import main
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests.builders import INFERENCE, TRAINING, inference, listing, node, pod, priority_classes, queue, training

CARD = "NVIDIA-GeForce-RTX-4090"
CLUSTER = listing(
    node("n1", CARD, 8, created=5),
    priority_classes(),
    queue("queue-inference", {CARD: 8}, **INFERENCE),
    queue("queue-training", {CARD: 8}, **TRAINING),
    training("train", "queue-training", 2, CARD, 4, created=10, phase="Pending"),
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
)
FULL = listing(
    node("n1", CARD, 8),
    priority_classes(),
    queue("queue-inference", {CARD: 8}, **INFERENCE),
    queue("queue-training", {CARD: 8}, **TRAINING),
    training("train", "queue-training", 2, CARD, 4, nodes=["n1"], created=10),
    inference("web", "queue-inference", 1, CARD, 2, created=500),
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "policy.conf").write_text(FOUNDING_POLICY)
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(CLUSTER))
    (tmp_path / "full.json").write_text(json.dumps(FULL))
    return tmp_path


def outside(folder, *arguments, stdin=None, hash_seed="0"):
    """A process of its own, as a user calls it."""
    return subprocess.run(
        [sys.executable, "-m", "scheduler_core", *arguments],
        cwd=folder,
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd()), "PYTHONHASHSEED": hash_seed},
        check=False,
        timeout=60,
    )


def inside(folder, *arguments):
    """The same in this process, which has loaded the engine already."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as end:
            status = end.code
    return subprocess.CompletedProcess(arguments, status, out.buffer.getvalue(), err.buffer.getvalue())


def decide(folder, *arguments, snapshot="cluster.yaml", run=inside, **options):
    return run(folder, "run", "--snapshot", snapshot, "--conf", "policy.conf", *arguments, **options)


def document(done):
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def error_of(done):
    assert done.returncode == 2, done.stderr.decode()
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    return json.loads(line)["error"]


class TestResult:
    def test_a_gang_is_bound_whole(self, folder):
        done = decide(folder, "--output", "json", run=outside)
        result = document(done)
        assert result["binds"] == [{"pod": "default/train-0", "node": "n1"}, {"pod": "default/train-1", "node": "n1"}]
        assert result["version"] == 1
        assert result["now"] == "2026-01-01T00:00:10Z"
        (gang,) = result["podgroups"]
        assert (gang["name"], gang["phase"], gang["ready"], gang["bound"]) == ("default/train", "Running", 2, 2)
        assert [q["name"] for q in result["queues"]] == ["default", "queue-inference", "queue-training"]
        assert result["queues"][2]["allocated"]["cards"] == {CARD: 8}
        assert "timings_ms" not in result
        assert json.loads(done.stderr) == {"passed_over": {"Secret": 1}, "warnings": []}

    def test_keys_are_sorted_and_one_newline_ends_it(self, folder):
        text = decide(folder, "--output", "json").stdout.decode()
        assert text.endswith("}\n")
        assert not text.endswith("\n\n")
        parsed = json.loads(text)
        assert list(parsed) == sorted(parsed)
        assert text == json.dumps(parsed, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"

    def test_inference_takes_back_a_whole_gang(self, folder):
        result = document(decide(folder, "--output", "json", snapshot="full.json"))
        assert [e["pod"] for e in result["evictions"]] == ["default/train-0", "default/train-1"]
        assert {e["reclaimer"] for e in result["evictions"]} == {"default/web"}
        assert result["pipelined"] == [{"pod": "default/web-0", "node": "n1"}]
        (reclaim,) = result["reclaims"]
        assert reclaim["freed"]["cards"] == {CARD: 8}
        assert reclaim["needed"]["cards"] == {CARD: 2}
        assert [v["gang"] for v in reclaim["victims"]] == ["default/train"]
        reasons = {reason["podgroup"]: reason["code"] for reason in result["reasons"]}
        assert reasons["default/web"] == "WaitingForReclaim"

    def test_same_input_same_bytes_whatever_the_hash_seed(self, folder):
        runs = [
            decide(folder, "--output", "json", snapshot="full.json", run=outside, hash_seed=seed).stdout
            for seed in ("0", "1", "99")
        ]
        assert runs[0] == runs[1] == runs[2] != b""

    def test_yaml_json_and_stdin_give_the_same(self, folder):
        (folder / "cluster.json").write_text(json.dumps(CLUSTER))
        expected = decide(folder, "--output", "json").stdout
        assert decide(folder, "--output", "json", snapshot="cluster.json").stdout == expected
        piped = decide(folder, "--output", "json", snapshot="-", run=outside, stdin=json.dumps(CLUSTER).encode())
        assert piped.stdout == expected

    def test_now_and_timings(self, folder):
        result = document(decide(folder, "--output", "json", "--now", "2026-03-01T08:00:00.5+08:00", "--timings"))
        assert result["now"] == "2026-03-01T00:00:00.5Z"
        assert {"enqueue", "allocate", "backfill", "reclaim"} <= set(result["timings_ms"])

    def test_memory_goes_from_one_session_to_the_next(self, folder):
        decide(folder, "--output", "json", "--memory-out", "memory.json", snapshot="full.json")
        memory = json.loads((folder / "memory.json").read_text())
        assert [r["pod"] for r in memory["reservations"]] == ["default/web-0"]
        again = document(decide(folder, "--output", "json", "--memory", "memory.json"))
        assert again["evictions"] == []

    def test_scheduler_names(self, folder):
        bodies = listing(node("n1"), pod("a", scheduler="mine"), pod("b", scheduler="other"), pod("c"))
        (folder / "cluster.yaml").write_text(yaml.safe_dump(bodies))
        bound = document(decide(folder, "--output", "json", "--scheduler-name", "mine", "--scheduler-name", "other"))
        assert [b["pod"] for b in bound["binds"]] == ["default/a", "default/b"]

    def test_tables_for_people(self, folder):
        done = decide(folder, snapshot="full.json")
        text = done.stdout.decode()
        assert done.returncode == 0
        assert text.startswith("2026-01-01T00:08:20Z: 0 binds, 2 evictions, 1 promised")
        for part in ("Reclaims", "Evictions", "Promised", "Waiting", "Gangs", "Queues", "default/train-0"):
            assert part in text
        assert "passed over: Secret 1" in decide(folder).stderr.decode()


class TestBadInput:
    """One clear error with its place, exit status 2."""

    def bad(self, folder, body, conf=FOUNDING_POLICY):
        (folder / "bad.yaml").write_text(body if isinstance(body, str) else yaml.safe_dump(body, sort_keys=False))
        (folder / "policy.conf").write_text(conf)
        return error_of(decide(folder, "--output", "json", snapshot="bad.yaml"))

    def test_a_malformed_snapshot(self, folder):
        error = self.bad(folder, "kind: List\nitems: [\n")
        assert (error["code"], error["file"], error["line"]) == ("malformed_yaml", "bad.yaml", 3)

    @pytest.mark.parametrize(
        ("objects", "path"),
        [
            ([queue("q", cpu="-4")], "spec.capability.cpu"),
            ([queue("q", {CARD: -8})], 'metadata.annotations["volcano.sh/card.quota"]'),
            ([queue("q", parent="q")], "spec.parent"),
        ],
    )
    def test_an_object_that_cannot_be_read_is_a_finding(self, folder, objects, path):
        (folder / "bad.yaml").write_text(yaml.safe_dump(listing(node("n"), *objects), sort_keys=False))
        done = decide(folder, "--output", "json", snapshot="bad.yaml")
        assert done.returncode == 0
        (found,) = json.loads(done.stdout)["findings"]
        assert (found["severity"], found["object"], found["path"]) == ("error", "Queue q", path)

    def test_an_unknown_plugin(self, folder):
        conf = FOUNDING_POLICY.replace("- name: gang", "- name: gnag")
        error = self.bad(folder, CLUSTER, conf)
        assert (error["code"], error["file"], error["hint"]) == (
            "unknown_plugin",
            "policy.conf",
            "did you mean 'gang'?",
        )
        assert conf.splitlines()[error["line"] - 1].strip() == "- name: gnag"

    def test_a_plugin_that_is_not_built(self, folder):
        error = self.bad(
            folder, CLUSTER, FOUNDING_POLICY.replace("- name: nodeorder", "- name: network-topology-aware")
        )
        assert (error["code"], error["message"]) == (
            "not_built",
            "plugin 'network-topology-aware': known, not built yet",
        )

    def test_files_that_are_not_there(self, folder):
        error = error_of(decide(folder, "--output", "json", snapshot="nowhere.yaml"))
        assert (error["code"], error["file"]) == ("unreadable_file", "nowhere.yaml")
        error = error_of(decide(folder, "--output=json", "--memory", "nowhere.json"))
        assert error["file"] == "nowhere.json"
        error = error_of(decide(folder, "--output", "json", "--memory-out", "no/such/folder"))
        assert error["code"] == "unwritable_file"

    @pytest.mark.parametrize("text", ["{", '{"version": 99}', '{"reservations": 7}'])
    def test_a_memory_that_is_none(self, folder, text):
        (folder / "memory.json").write_text(text)
        assert error_of(decide(folder, "--output", "json", "--memory", "memory.json"))["code"] == "malformed_memory"

    @pytest.mark.parametrize(
        "arguments",
        [["--now", "noon"], ["--seed", "-1"], ["--seed", "x"], ["--colour"], ["--snap", "x"]],
    )
    def test_options_that_cannot_be(self, folder, arguments):
        error = error_of(decide(folder, "--output", "json", *arguments))
        assert error["code"] == "usage"
        assert arguments[0].lstrip("-") in error["message"]

    def test_no_command(self, folder):
        done = outside(folder)
        assert done.returncode == 2
        assert done.stderr.decode().startswith("error: ")

    def test_for_people_it_is_one_line_too(self, folder):
        done = decide(folder, snapshot="nowhere.yaml")
        assert done.returncode == 2
        assert (
            done.stderr.decode() == "error: nowhere.yaml: cannot be read: No such file or directory [unreadable_file]\n"
        )

    def test_both_from_stdin(self, folder):
        done = inside(folder, "run", "--snapshot", "-", "--conf", "-", "--output", "json")
        assert error_of(done)["code"] == "usage"


def test_help(folder):
    done = inside(folder, "run", "--help")
    assert done.returncode == 0
    assert b"--memory-out" in done.stdout


def test_a_reader_that_goes_away_is_no_error_of_ours(folder):
    command = f"{sys.executable} -m scheduler_core run --snapshot full.json --conf policy.conf | true"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        check=False,
    )
    assert b"Traceback" not in done.stderr
