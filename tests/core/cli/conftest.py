"""Sessions through the command line, in this process, with the naive scheduler beside them."""

import json

import pytest

from scheduler_core.cli.main import main
from scheduler_core.serde.policy import parse_policy
from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests import builders as b
from tests.reference.session import decide


class Decided:
    """What ``run`` printed: ``document`` on stdout, ``remarks`` on stderr."""

    def __init__(self, document, remarks):
        self.document, self.remarks = document, remarks
        self.binds = {bind["pod"].removeprefix("default/"): bind["node"] for bind in document["binds"]}
        self.evictions = [eviction["pod"].removeprefix("default/") for eviction in document["evictions"]]
        self.gangs = {gang["name"].removeprefix("default/"): gang for gang in document["podgroups"]}
        self.reasons = {reason["podgroup"].removeprefix("default/"): reason for reason in document["reasons"]}

    @property
    def codes(self):
        return {gang: reason["code"] for gang, reason in self.reasons.items()}


@pytest.fixture
def decided(tmp_path, capsys):
    """``decided(objects, policy)`` runs one session; unless ``naive=False`` the naive scheduler must agree."""

    def run(*objects, policy=FOUNDING_POLICY, now=1000, naive=True, arguments=()):
        listing = b.listing(*objects)
        (tmp_path / "cluster.json").write_text(json.dumps(listing))
        (tmp_path / "policy.conf").write_text(policy)
        files = ["--snapshot", str(tmp_path / "cluster.json"), "--conf", str(tmp_path / "policy.conf")]
        status = main(["run", *files, "--now", b.at(now), "--output", "json", *arguments])
        out, err = capsys.readouterr()
        assert status == 0, err
        found = Decided(json.loads(out), err)
        if naive:
            theirs = decide(b.taken(listing["items"]), now=b.now(now), policy=parse_policy(policy))
            placed = {pod.removeprefix("default/"): place[0] for pod, place in theirs["binds"].items()}
            assert found.binds == placed
            assert found.evictions == [pod.removeprefix("default/") for pod, _ in theirs["evictions"]]
            phases = {gang.removeprefix("default/"): phase for gang, phase in theirs["phases"].items()}
            assert {gang: said["phase"] for gang, said in found.gangs.items()} == phases
        return found

    return run


@pytest.fixture
def command(tmp_path, capsys):
    """``command(arguments, files)`` runs any command on files by name; (status, stdout, stderr)."""

    def run(*arguments, **files):
        for name, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (tmp_path / name).write_text(text)
        named = [str(tmp_path / argument) if argument in files else argument for argument in arguments]
        status = main(named)
        out, err = capsys.readouterr()
        return status, out, err

    return run
