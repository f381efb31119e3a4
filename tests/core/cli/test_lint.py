"""``python -m scheduler_core lint``."""

from __future__ import annotations

import json

from scheduler_core.cli.main import main

GOOD = json.dumps({"actions": "enqueue, allocate", "tiers": [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}]})
ODD = json.dumps({"actions": "allocate, enqueue", "tiers": [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}]})


def lint(tmp_path, text, *options):
    file = tmp_path / "file"
    file.write_text(text)
    return main(["lint", *options, str(file)])


def test_exit_status_zero_without_findings(tmp_path, capsys):
    assert lint(tmp_path, GOOD, "--conf") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_exit_status_one_with_findings(tmp_path, capsys):
    assert lint(tmp_path, ODD, "--conf") == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert sorted(found) == ["code", "fix", "message", "object", "path", "severity"]
    assert (found["code"], found["severity"]) == ("enqueue-late", "warning")


def test_exit_status_two_for_what_cannot_be_read(tmp_path, capsys):
    assert lint(tmp_path, "{", "--conf") == 2
    assert lint(tmp_path, "{apiVersion: v1, kind: Secret, metadata: {name: s}}", "--workload") == 2
    assert main(["lint"]) == 2
    assert "usage" in capsys.readouterr().err


def test_a_table_for_people(tmp_path, capsys):
    assert lint(tmp_path, ODD, "--output", "table", "--conf") == 1
    out = capsys.readouterr().out
    assert out.startswith("warning policy: actions: ")
    assert "fix: put enqueue first" in out
    assert lint(tmp_path, GOOD, "--output", "table", "--conf") == 0
    assert capsys.readouterr().out == "nothing found\n"
