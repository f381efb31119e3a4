"""``replay`` with input that cannot be used: one error with file and line, exit status 2."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import builders as b

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,4,A100\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p1,1000,1024,1,1000,,LS,Running,0,100,0\n"
    "p2,1000,1024,1,1000,,BE,Running,5,90,5\n"
)


def replay(folder, *options, nodes=NODES, pods=PODS):
    (folder / "nodes.csv").write_text(nodes)
    (folder / "pods.csv").write_text(pods)
    command = [sys.executable, "-m", "scheduler_core", "replay", "--nodes", "nodes.csv", "--pods", "pods.csv"]
    return subprocess.run(
        [*command, "--hours", "0.1", "--output", "json", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        check=False,
        timeout=60,
    )


def error_of(done):
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    return json.loads(done.stderr.splitlines()[-1])["error"]


def test_a_small_replay(tmp_path):
    done = replay(tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["binds"] >= 1


@pytest.mark.parametrize(
    ("nodes", "pods", "file", "line"),
    [
        (NODES + "n2,64000,many,4,A100\n", PODS, "nodes.csv", 3),
        (NODES + "n2,64000,-1,4,A100\n", PODS, "nodes.csv", 3),
        (NODES + "n2,64000\n", PODS, "nodes.csv", 3),
        (NODES, PODS + "p3,x,1024,1,1000,,BE,Running,5,90,5\n", "pods.csv", 4),
    ],
)
def test_a_broken_line_is_named(tmp_path, nodes, pods, file, line):
    error = error_of(replay(tmp_path, nodes=nodes, pods=pods))
    assert (error["code"], error["file"], error["line"]) == ("bad_csv", file, line)


def test_other_input(tmp_path):
    assert error_of(replay(tmp_path, "--gang-size", "0"))["code"] == "usage"
    assert error_of(replay(tmp_path, "--scale", "nan"))["code"] == "usage"
    (tmp_path / "queues.yaml").write_text("kind: List\napiVersion: v1\nitems: []\n")
    assert error_of(replay(tmp_path, "--queues", "queues.yaml"))["code"] == "empty_snapshot"
    queues = b.listing(b.queue("a"), b.queue("q") | {"spec": {"weight": -1}})
    (tmp_path / "queues.yaml").write_text(json.dumps(queues))
    assert "error: Queue q: spec.weight: -1 is below 1" in replay(tmp_path, "--queues", "queues.yaml").stderr
    (tmp_path / "policy.conf").write_text("actions: alocate\ntiers: []\n")
    error = error_of(replay(tmp_path, "--conf", "policy.conf"))
    assert (error["code"], error["file"], error["line"]) == ("unknown_action", "policy.conf", 1)
