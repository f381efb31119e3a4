"""The example of docs/own-plugins.md, built as a package and installed: a policy may use what it adds."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import builders as b

ROOT = Path(__file__).resolve().parents[3]
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
PAGE = (ROOT / "docs" / "own-plugins.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the example installed from a wheel."""
    folder = tmp_path_factory.mktemp("package")
    (code,), (project,) = blocks("python"), blocks("toml")
    wheel = folder / "quiet_nodes-1.0-py3-none-any.whl"
    sections = re.findall(r'\[project\.entry-points\."(.+?)"\]\n((?:.+ = .+\n)+)', project)
    points = "".join(f"[{group}]\n{lines.replace(chr(34), '')}\n" for group, lines in sections)
    files = {
        "quiet_nodes.py": code,
        "quiet_nodes-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: quiet-nodes\nVersion: 1.0\n",
        "quiet_nodes-1.0.dist-info/WHEEL": WHEEL,
        "quiet_nodes-1.0.dist-info/entry_points.txt": points,
    }
    record = "".join(f"{name},,\n" for name in (*files, "quiet_nodes-1.0.dist-info/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in (*files.items(), ("quiet_nodes-1.0.dist-info/RECORD", record)):
            archive.writestr(name, text)
    target = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(target)]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True)
    return target


def run(installed, tmp_path, policy, *command, cluster=None):
    objects = [
        *b.priority_classes(),
        b.queue("q", {"A": 8}, **b.INFERENCE),
        b.node("n1", "A", 4, labels={"example.com/quiet": "never"}),
        b.node("n2", "A", 4),
        b.node("n3", "A", 4, labels={"example.com/quiet": "yes"}),
        *b.inference("wants", "q", 1, "A", 1),
    ]
    snapshot, conf = tmp_path / "snapshot.yaml", tmp_path / "policy.yaml"
    snapshot.write_text(cluster or json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    conf.write_text(policy)
    said = command or ("run",)
    command = [sys.executable, "-m", "scheduler_core", *said, "--snapshot", str(snapshot), "--conf", str(conf)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)] if installed else [str(ROOT)]),
    }
    return subprocess.run(
        [*command, "--output", "json"], capture_output=True, text=True, env=environment, check=False, timeout=120
    )


def test_a_policy_uses_the_installed_plugin_and_action(installed, tmp_path):
    policy, _ = blocks("yaml")
    done = run(installed, tmp_path, policy)
    assert done.returncode == 0, done.stderr
    assert [bind["node"] for bind in json.loads(done.stdout)["binds"]] == ["n3"]


def test_without_the_package_the_name_is_unknown(tmp_path):
    policy, _ = blocks("yaml")
    done = run(None, tmp_path, policy)
    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["code"] in ("unknown_action", "unknown_plugin")


def test_an_argument_of_it_is_checked_like_any_other(installed, tmp_path):
    policy, _ = blocks("yaml")
    done = run(installed, tmp_path, policy.replace("weight: 5", "weight: 500"))
    assert done.returncode == 2
    assert "weight" in json.loads(done.stderr)["error"]["message"]


def test_the_example_that_is_to_be_tried(installed, tmp_path):
    policy, cluster = blocks("yaml")
    done = run(installed, tmp_path, policy, "explain", "train", cluster=cluster)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["decision"], found["reason"]["code"]) == ("3 waiting", "NoNodeMatches")
    assert found["reason"]["numbers"]["nodes"] == {"enough of the gang": 2, "kept quiet": 1}
    (first, left) = found["members"]
    assert [node.get("refusal") for node in first["nodes"]] == [None, None, "kept quiet"]
    assert [node["refusal"] for node in left["nodes"]] == ["enough of the gang", "enough of the gang", "kept quiet"]
    done = run(installed, tmp_path, policy.replace("most: 1", "most: 2"), cluster=cluster)
    assert sorted(bind["node"] for bind in json.loads(done.stdout)["binds"]) == ["n1", "n2", "n2"]


def test_what_is_misspelt_is_said_as_the_page_says_it(installed, tmp_path):
    spoilt = tmp_path / "spoilt"
    shutil.copytree(installed, spoilt)
    code = (spoilt / "quiet_nodes.py").read_text()
    (spoilt / "quiet_nodes.py").write_text(code.replace("def node_order(", "def node_oder("))
    policy, cluster = blocks("yaml")
    done = run(spoilt, tmp_path, policy, cluster=cluster)
    assert done.returncode == 2
    told = json.loads(done.stderr)["error"]
    for part in (told["message"], told["hint"], told["code"], f":{told['line']}: {told['path']}: "):
        assert part in PAGE.replace("\n", " ")
    rest = policy.replace("  - name: quiet-nodes\n    arguments:\n      weight: 5\n", "")
    done = run(spoilt, tmp_path, rest, cluster=cluster)
    assert done.returncode == 0, done.stderr
