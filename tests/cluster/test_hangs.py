"""A worker that hangs is replaced: no session is lost, no effect comes twice, and a note says why.

Real PostgreSQL, Valkey, the real supervisor over a real Celery worker, and the simulated cluster. The patience is some
seconds here; what counts is that it happens and what the cluster has seen, not when.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
import redis

from scheduler_core.serde.policy.founding import FOUNDING_POLICY
from tests.cluster.servers import ROOT, SimulatedServer
from tests.cluster.workers import LEASE_SECONDS, Broker, database_address
from tests.waiting import until
from tests.web.pipeline.stage import Stage
from tidesched_web.clusters.models import PolicyRevision
from tidesched_web.common import incidents
from tidesched_web.embedded.data_folder import DataFolder
from tidesched_web.scheduling.models import ClusterLease, Session

pytestmark = [pytest.mark.timeout(600)]

GANG = 4
HANG_SECONDS = 8.0
PLUGIN = '''
import ctypes, os
from pathlib import Path
from scheduler_core.framework.plugin import Plugin

class Loops(Plugin):
    """Once, when a file asks for it, it does not come back; ``kept`` says whether other threads may run meanwhile."""
    name = "loops"

    def open(self, session):
        super().open(session)
        for kept in (False, True):
            asked = Path(os.environ["LOOPS"]) / f"loop-{kept}"
            if asked.exists():
                asked.unlink()
                if kept:
                    ctypes.PyDLL(None).pause()
                while True:
                    pass
'''


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path / "broker")
    yield made
    made.stop()


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A package with a plugin of its own, as it would be installed."""
    place = tmp_path / "site"
    info = place / "loops-1.0.dist-info"
    info.mkdir(parents=True)
    (place / "loops.py").write_text(dedent(PLUGIN))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loops\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[scheduler_core.plugins]\nloops = loops:Loops\n")
    return place


class Supervised:
    """The supervisor with its worker, as processes."""

    def __init__(self, folder: Path, broker: Broker, plugin: Path, role: str = "sessions", **more: str) -> None:
        self.folder = folder
        self.role = role
        environment = os.environ | {
            "DATABASE_URL": database_address(),
            "REDIS_URL": broker.url,
            "DATA_DIR": str(folder),
            "PYTHONPATH": f"{plugin}:{ROOT}",
            "LOOPS": str(plugin),
            "TIDESCHED_LEASE_SECONDS": str(LEASE_SECONDS),
            "TIDESCHED_HANG_SECONDS": str(HANG_SECONDS),
            "TIDESCHED_INSTALLATION_ID": "hangs",
            **more,
        }
        self.output = (folder.parent / "supervised.log").open("wb")
        command = [sys.executable, "-m", "tests.cluster.supervised", str(folder), role]
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=self.output, stderr=self.output)

    def pid(self) -> int:
        process = DataFolder(self.folder).read_runtime().processes.get(self.role)
        return process.pid if process else 0

    def said(self) -> str:
        return (self.folder.parent / "supervised.log").read_text(errors="replace")[-6000:]

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.output.close()


@pytest.fixture
def stage(tmp_path: Path, transactional_db: None) -> Iterator[Stage]:
    server = SimulatedServer(tmp_path, rate=30.0)
    server.start()
    made = Stage(server, nodes=2, period=0.3)
    yield made
    made.close()
    server.kill()


def _holds(pid: int) -> bool:
    return ClusterLease.objects.filter(holder__contains=f":{pid}:").exists()


def noted(broker: Broker, pid: int) -> incidents.Replaced | None:
    """What the status page will show of this process."""
    with redis.Redis.from_url(broker.url) as client:
        return next((note for note in incidents.replaced(client) if note.pid == pid), None)


def _use_the_plugin(stage: Stage) -> None:
    """As a row, since the plugin is installed for the worker and not for this process."""
    newest = PolicyRevision.objects.filter(cluster=stage.cluster).latest("number")
    newest.pk, newest.number = None, newest.number + 1
    newest.text = FOUNDING_POLICY.replace("plugins:\n", "plugins:\n  - name: loops\n", 1)
    assert "loops" in newest.text
    newest.save()


@pytest.mark.parametrize(
    "kind",
    ["stopped", *(pytest.param(kind, marks=pytest.mark.proof) for kind in ("locked", "looping", "looping alone"))],
)
def test_a_worker_that_hangs_is_replaced(stage: Stage, tmp_path: Path, broker: Broker, plugin: Path, kind: str) -> None:
    if kind.startswith("looping"):
        _use_the_plugin(stage)
    once = tmp_path / "once"
    once.mkdir()
    more = {"TIDESCHED_FAILPOINTS": "session.committed=lock", "TIDESCHED_FAILPOINTS_ONCE": str(once)}
    supervised = Supervised(tmp_path / "installation", broker, plugin, **(more if kind == "locked" else {}))
    try:
        until(lambda: supervised.pid() and _holds(supervised.pid()))
        first = supervised.pid()
        until(Session.objects.exists)
        if kind.startswith("looping"):
            (plugin / f"loop-{kind == 'looping alone'}").touch()
        if kind == "stopped":
            os.kill(first, signal.SIGSTOP)
        stage.train("job", pods=GANG)
        until(lambda: supervised.pid() not in (0, first))
        until(lambda: stage.running("job") == GANG)
        note = until(lambda: noted(broker, first))
    except AssertionError:
        pytest.fail(f"{kind}:\n{supervised.said()}")
    finally:
        supervised.end()
    assert note.role == "sessions"
    assert note.activity in {"process", f"sessions of cluster {stage.cluster.pk}"}
    if kind == "looping":
        assert (note.activity, note.step) == (f"sessions of cluster {stage.cluster.pk}", "deciding")
    rows = [row for row in stage.server.writes() if row["epoch"] not in (None, "") and 200 <= row["code"] < 300]
    times = Counter(row["key"] for row in rows if row["resource"].endswith("pods/binding"))
    assert sorted(times.values()) == [1] * GANG
    epochs = [int(row["epoch"]) for row in rows]
    assert epochs == sorted(epochs), "an old epoch wrote after a newer one"


@pytest.mark.proof
def test_a_pool_process_that_hangs_is_replaced_alone(
    transactional_db: None, tmp_path: Path, broker: Broker, plugin: Path
) -> None:
    supervised = Supervised(tmp_path / "installation", broker, plugin, role="work")
    place = tmp_path / "installation" / "progress"

    def forked() -> list[int]:
        return [int(path.name.split(".")[1]) for path in place.glob("work.*.json")]

    try:
        until(forked)
        main, (child,) = supervised.pid(), forked()
        os.kill(child, signal.SIGSTOP)
        until(lambda: forked() and child not in forked())
        assert supervised.pid() == main
        note = until(lambda: noted(broker, child))
    except AssertionError:
        pytest.fail(supervised.said())
    finally:
        supervised.end()
    assert (note.activity, note.ended_by) == ("process", "supervisor")
