"""The supervisor over small real programs."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from django.conf import settings
from django.core.cache import cache

from tests.waiting import until_async
from tidesched_web.common import alive, problems, progress
from tidesched_web.embedded import identity
from tidesched_web.embedded.console_output import Output
from tidesched_web.embedded.data_folder import DataFolder
from tidesched_web.embedded.hangs import web_question
from tidesched_web.embedded.processes import APPLICATIONS, SERVERS, ProcessSpec, workers
from tidesched_web.embedded.supervisor import Supervisor
from tidesched_web.embedded.valkey import Valkey
from tidesched_web.env import Runtime

SLEEP = "import time; time.sleep(60)"
FORKS = """
import os, time
if not (pid := os.fork()):
    time.sleep(60)
with open({note!r}, "w") as file:
    file.write(str(pid))
time.sleep(60)
"""
NOTES_ITS_END = """
import signal, sys, time
def end(*_):
    with open({note!r}, "a") as file:
        file.write({name!r} + " ")
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("up", flush=True)
time.sleep(60)
"""
CHATTERS = """
import sys
from pathlib import Path
from tidesched_web.embedded.console_output import Output
output = Output(Path(sys.argv[1]))
for number in range(5000):
    output.line("web", f"line {number} " + "x" * 100)
"""
WEB = """
import uvicorn
async def application(scope, receive, send):
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": b"ok"}})
uvicorn.run(application, uds={path!r}, lifespan="off", log_level="error")
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
"""


class Run:
    """One supervisor and the lines that it has shown."""

    def __init__(self, folder: Path) -> None:
        self.data = DataFolder(folder)
        self.data.open()
        self.log = folder / "logs" / "all.log"
        self.supervisor = Supervisor(self.data, Output(self.log), Runtime(redis_url=settings.REDIS_URL))

    def keep(self, name: str, code: str, *, stage: int = APPLICATIONS, **more: object) -> None:
        argv = [sys.executable, "-c", code]
        self.supervisor.keep(ProcessSpec(name=name, argv=argv, env=dict(os.environ), stage=stage, **more))

    def pid(self, name: str) -> int:
        process = self.data.read_runtime().processes.get(name)
        return process.pid if process else 0

    def known_problems(self) -> dict[str, str]:
        """As `/readyz` reads them."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DATA_DIR", str(self.data.path))
            return problems.current()

    async def until(self, condition: Callable[[], object]) -> None:
        await until_async(condition, story=self.log.read_text)


@pytest_asyncio.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    made = Run(tmp_path / "data")
    yield made
    await made.supervisor.stop()
    made.data.close()


@pytest.mark.asyncio
async def test_a_killed_process_is_started_again(run: Run) -> None:
    run.keep("sleeper", SLEEP)
    await run.until(lambda: run.pid("sleeper"))
    first = run.pid("sleeper")
    os.kill(first, signal.SIGKILL)
    await run.until(lambda: run.pid("sleeper") not in {0, first})
    assert "sleeper ended (killed from outside (signal 9), probably for too little memory: " in run.log.read_text()


@pytest.mark.asyncio
async def test_what_a_killed_process_had_forked_goes_too(run: Run, tmp_path: Path) -> None:
    note = tmp_path / "fork"
    run.keep("parent", FORKS.format(note=str(note)))
    await run.until(lambda: note.exists() and note.read_text())
    forked = int(note.read_text())
    os.kill(run.pid("parent"), signal.SIGKILL)
    await run.until(lambda: not identity.started(forked))


@pytest.mark.asyncio
async def test_one_that_keeps_dying_waits_longer_each_time(run: Run) -> None:
    run.keep("dying", "raise SystemExit(3)")
    await run.until(lambda: run.supervisor.deaths.get("dying", 0) >= 3)
    pauses = [line.split()[-2] for line in run.log.read_text().splitlines() if "dying ended (exit status 3)" in line]
    assert pauses[:3] == ["0.2", "0.5", "1.0"]


def worker(run: Run, *more: str) -> ProcessSpec:
    """The real worker of the role work, looked after by this supervisor."""
    folder = run.supervisor.hangs.folder
    environment = os.environ | {"TIDESCHED_PROGRESS_DIR": str(folder), "TIDESCHED_HANG_SECONDS": "8"}
    (spec,) = [spec for spec in workers(environment) if spec.name == "work"]
    return msgspec.structs.replace(spec, argv=[*spec.argv, *more])


@pytest.mark.asyncio
@pytest.mark.proof
async def test_a_worker_that_ends_each_time_before_it_takes_messages_is_missing_with_its_last_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDESCHED_PROGRESS_DIR", str(run.supervisor.hangs.folder))
    cache.clear()
    run.supervisor.keep(worker(run, "--statedb", str(tmp_path / "absent" / "state")))
    await run.until(lambda: "work" in alive.endings())
    assert cache.get("alive:work") is None
    ending = alive.endings()["work"]
    assert ending.times >= 3
    assert "absent/state" in ending.last
    assert alive.silent_roles() == list(alive.ROLES)
    assert f"work: {ending}" in run.log.read_text()


@pytest.mark.asyncio
async def test_a_worker_is_alive_when_it_takes_messages_and_not_before(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.clear()
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    monkeypatch.setenv("GATE", str(gate))
    begun = worker(run)
    argv = [argument.replace("tidesched_web.celery", "tests.web.held_worker") for argument in begun.argv]
    run.supervisor.keep(msgspec.structs.replace(begun, argv=argv))

    def reported(seconds: float) -> bool:
        report = progress.read(run.supervisor.hangs.folder / "work.json")
        return report is not None and report.written - report.born > seconds

    await run.until(lambda: reported(5.0))  # it has said several times in its file how it stands
    assert "work" in alive.silent_roles()
    gate.write_text("go")
    await run.until(lambda: "work" not in alive.silent_roles())


@pytest.mark.asyncio
async def test_one_that_is_replaced_ends_in_good_order_and_begins_at_once_as_another(run: Run, tmp_path: Path) -> None:
    order = tmp_path / "order"
    run.keep("worker", NOTES_ITS_END.format(note=str(order), name="first"))
    await run.until(lambda: "up" in run.log.read_text())
    first = run.pid("worker")
    code = f"open({str(order)!r}, 'a').write('second'); " + SLEEP
    run.supervisor.replace(ProcessSpec("worker", [sys.executable, "-c", code], dict(os.environ), APPLICATIONS))
    await run.until(lambda: order.exists() and order.read_text() == "first second")
    assert run.pid("worker") not in {0, first}
    assert run.supervisor.deaths["worker"] == 0
    assert "starts again" not in run.log.read_text()


@pytest.mark.asyncio
async def test_users_stop_before_the_servers_that_they_use(run: Run, tmp_path: Path) -> None:
    order = tmp_path / "order"
    run.keep("server", NOTES_ITS_END.format(note=str(order), name="server"), stage=SERVERS)
    run.keep("user", NOTES_ITS_END.format(note=str(order), name="user"), stage=APPLICATIONS)
    await run.until(lambda: run.log.read_text().count("| up") == 2)
    await run.supervisor.stop()
    assert order.read_text().split() == ["user", "server"]
    assert run.data.read_runtime().processes == {}


@pytest.mark.asyncio
async def test_a_process_that_does_not_stop_is_killed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidesched_web.embedded.supervisor.STAGE_SECONDS", (0.3, 0.3, 0.3))
    run.keep("deaf", DEAF)
    await run.until(lambda: "| up" in run.log.read_text())
    pid = run.pid("deaf")
    await run.supervisor.stop()
    assert not identity.started(pid)


@pytest.mark.asyncio
async def test_a_line_without_an_end_does_not_grow_without_bound(run: Run) -> None:
    run.keep("long", "import sys, time\nsys.stdout.write('x' * 300_000); sys.stdout.flush(); time.sleep(60)")
    await run.until(lambda: run.log.read_text().count("long       | xxx") >= 3)


@pytest.mark.asyncio
async def test_run_once_gives_the_exit_status(run: Run) -> None:
    spec = ProcessSpec(name="once", argv=[sys.executable, "-c", "raise SystemExit(4)"], env={}, stage=0)
    assert await run.supervisor.run_once(spec) == 4


@pytest.mark.asyncio
async def test_a_stop_ends_run_once(run: Run) -> None:
    spec = ProcessSpec(name="once", argv=[sys.executable, "-c", SLEEP], env={}, stage=0)
    asyncio.get_running_loop().call_later(0.3, run.supervisor.request_stop)
    assert await run.supervisor.run_once(spec) == -signal.SIGTERM


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds in place of the forty; more than the five from which on a look that came late is forgiven."""
    monkeypatch.setattr("tidesched_web.embedded.hangs.SILENT_SECONDS", 6.0)
    monkeypatch.setattr("tidesched_web.embedded.supervisor.EVERY_SECONDS", 0.2)


def noted(pid: int) -> tuple[str, str, str] | None:
    """What the status page will show: process, at what it stood still, who ended it."""
    return next(((note.role, note.step, note.ended_by) for note in alive.replaced() if note.pid == pid), None)


@pytest.mark.asyncio
@pytest.mark.proof
async def test_a_valkey_that_is_stopped_is_replaced_and_the_status_page_has_a_note(run: Run, impatient: None) -> None:
    server = Valkey(run.data.path, disposable=True)
    server.prepare()
    run.supervisor.keep(
        ProcessSpec(
            name="valkey",
            argv=server.command(),
            env=server.environment(),
            stage=SERVERS,
            before_restart=server.prepare,
            asked=server.question,
        )
    )
    await run.until(lambda: run.pid("valkey"))
    first = run.pid("valkey")
    await run.until(lambda: first in run.supervisor.hangs.answered)
    os.kill(first, signal.SIGSTOP)
    await run.until(lambda: run.pid("valkey") not in {0, first})
    await run.until(server.ready)
    assert "valkey stands still (process silent, " in run.log.read_text()
    await run.until(lambda: noted(first) == ("valkey", "silent", "supervisor"))


@pytest.mark.asyncio
async def test_a_web_process_that_is_stopped_is_replaced(run: Run, impatient: None, tmp_path: Path) -> None:
    path = str(tmp_path / "web.sock")
    run.keep("web", WEB.format(path=path), asked=web_question(path))
    await run.until(lambda: run.pid("web"))
    first = run.pid("web")
    await run.until(lambda: first in run.supervisor.hangs.answered)
    os.kill(first, signal.SIGSTOP)
    await run.until(lambda: run.pid("web") not in {0, first})
    await run.until(lambda: run.pid("web") in run.supervisor.hangs.answered)
    await run.until(lambda: noted(first) == ("web", "silent", "supervisor"))


def test_a_reader_that_stops_reading_stops_nothing(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "all.log"
    child = subprocess.Popen([sys.executable, "-c", CHATTERS, str(log)], stdout=subprocess.PIPE)
    assert child.wait(60) == 0  # not a byte was read
    assert "line 4999 " in log.read_text()
    assert child.stdout is not None
    assert child.stdout.read().startswith(b"web ")
