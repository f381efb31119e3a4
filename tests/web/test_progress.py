"""Progress of a process: what moves, what stands still, and what others read of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
from django.conf import settings

from tidesched_web.common import alive
from tidesched_web.common import progress as module
from tidesched_web.common.progress import Progress, Report, Reporter, Standing, read
from tidesched_web.embedded import hangs, identity, probe

PID, STARTED = os.getpid(), identity.started(os.getpid())


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def report(**changes: object) -> Report:
    values = {"role": "sessions", "host": "h", "pid": PID, "started": STARTED, "born": 1.0, "written": 100.0}
    return Report(**(values | changes))  # type: ignore[arg-type]


def test_what_moves_does_not_stand_still() -> None:
    clock = Clock()
    own = Progress(clock)
    own.begin("loop", "waiting")
    clock.now += 39
    assert own.standing(40) is None
    own.step("deciding")
    clock.now += 39
    assert own.standing(40) is None
    clock.now += 2
    assert own.standing(40) == Standing("loop", "deciding", 41.0)
    own.end("loop")
    assert own.standing(40) is None


def test_a_step_of_one_thread_moves_nothing_of_another() -> None:
    clock = Clock()
    own = Progress(clock)
    other = threading.Thread(target=own.begin, args=("main loop",))
    other.start()
    other.join()
    own.begin("task 1")
    clock.now += 50
    own.step()
    assert own.standing(40) == Standing("main loop", "", 50.0)
    own.touch("main loop")
    own.touch("unknown")
    assert own.standing(40) is None
    assert own.of("unknown").seconds == 0


def test_a_process_that_waits_for_a_server_is_given_time_after_its_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, away = Clock(), ["Redis"]
    own = Progress(clock)
    own.begin("loop")
    clock.now += 100
    monkeypatch.setattr(module.time, "monotonic", clock)
    reporter = Reporter(tmp_path / "a.json", "work", of=own, excuse=lambda: away[0])
    assert reporter.write().standing is None
    away[0] = ""
    assert reporter.write().standing is None
    clock.now += module.HANG_SECONDS
    last = reporter.write()
    assert last.standing is not None
    assert read(tmp_path / "a.json") == last
    assert last.private_bytes > 1_000_000


def test_a_fork_begins_without_the_activities_of_its_parent() -> None:
    code = (
        "import os\n"
        "from tidesched_web.common.progress import progress\n"
        "progress.begin('main loop')\n"
        "progress._lock.acquire()\n"  # as another thread of the parent might just have it
        "if (pid := os.fork()):\n"
        "    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "raise SystemExit(0 if progress.standing(-1) is None else 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


# -- who looks after processes -----------------------------------------------------------------------------------------


def write(folder: Path, file: str, **changes: object) -> None:
    (folder / file).write_bytes(msgspec.json.encode(report(**changes)))


def test_who_is_replaced(tmp_path: Path) -> None:
    looping = Standing("loop", "deciding", 50.0)
    write(tmp_path, "work.json", written=100.0)
    write(tmp_path, "work.1.json", standing=looping)
    write(tmp_path, "work.2.json", written=50.0)
    write(tmp_path, "work.3.json", written=50.0, started="another process that had its number")
    write(tmp_path, "what-if.json", standing=looping)
    (tmp_path / "work.4.json").write_text("{")
    reasons = {why for _report, why in hangs.hung(tmp_path, "work", 110.0)}
    assert reasons == {looping, Standing("process", "stopped", 60.0)}
    assert not (tmp_path / "work.3.json").exists()


def test_a_process_that_never_begins_is_replaced(tmp_path: Path) -> None:
    clock = Clock()
    watch = hangs.HangWatch(tmp_path, clock)
    assert watch.standing("work", PID, clock.now - hangs.START_SECONDS + 1, asked=False) == []
    ((first, why),) = watch.standing("work", PID, clock.now - hangs.START_SECONDS - 1, asked=False)
    assert (first.pid, why.at) == (PID, "starting")


def test_the_file_of_a_predecessor_says_nothing(tmp_path: Path) -> None:
    clock = Clock()
    write(tmp_path, "work.json", pid=6, written=1.0)
    watch = hangs.HangWatch(tmp_path, clock)
    assert watch.standing("work", PID, clock.now - 5, asked=False) == []
    watch.begin()
    assert not (tmp_path / "work.json").exists()


def test_after_it_was_stopped_itself_it_judges_nobody_at_once(tmp_path: Path) -> None:
    clock = Clock()
    watch = hangs.HangWatch(tmp_path, clock)
    write(tmp_path, "work.json", written=clock.now)
    clock.now += 300
    watch.look()
    assert watch.standing("work", PID, 0.0, asked=False) == []
    clock.now += 4
    watch.look()
    assert watch.standing("work", PID, 0.0, asked=False) == []
    for _ in range(30):
        clock.now += 1
        watch.look()
    assert watch.standing("work", PID, 0.0, asked=False)


def test_while_the_disk_is_full_nothing_can_be_said_and_nobody_is_judged(tmp_path: Path) -> None:
    clock = Clock()
    watch = hangs.HangWatch(tmp_path, clock)
    write(tmp_path, "work.json", written=clock.now)
    for room in (False, True):
        for _ in range(int(hangs.HANG_SECONDS if not room else hangs.HANG_SECONDS / 2 - 1)):
            clock.now += 1
            watch.look(room=room)
            assert watch.standing("work", PID, 0.0, asked=False) == []
    clock.now += 2
    watch.look()
    assert watch.standing("work", PID, 0.0, asked=False)


def test_one_that_answered_once_and_then_not_any_more_is_replaced(tmp_path: Path) -> None:
    clock = Clock()
    watch = hangs.HangWatch(tmp_path, clock)
    watch.heard(PID)
    clock.now += hangs.SILENT_SECONDS
    assert watch.standing("web", PID, 0.0, asked=True) == []
    clock.now += 1
    ((_report, why),) = watch.standing("web", PID, 0.0, asked=True)
    assert why == Standing("process", "silent", hangs.SILENT_SECONDS + 1)


def test_the_probe_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDESCHED_PROGRESS_DIR", raising=False)
    assert probe.main(["work"]) == 2
    monkeypatch.setenv("TIDESCHED_PROGRESS_DIR", str(tmp_path))
    assert probe.main(["work"]) == 1
    # Of a predecessor that had the same number: this process has not begun.
    write(tmp_path, "work.json", started="another", written=time.monotonic())
    assert probe.main(["work"]) == 1
    write(tmp_path, "work.json", written=time.monotonic())
    assert probe.main(["work"]) == 0
    write(tmp_path, "work.json", written=time.monotonic(), standing=Standing("sessions of cluster 1", "deciding", 50.0))
    assert probe.main(["work"]) == 1


@pytest.mark.parametrize(("file", "arguments", "status"), [("work.json", ["--end"], 1), ("work.7.json", [], 0)])
def test_the_probe_ends_what_hangs_and_leaves_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, arguments: list[str], status: int
) -> None:
    monkeypatch.setenv("TIDESCHED_PROGRESS_DIR", str(tmp_path))
    monkeypatch.setenv("REDIS_URL", settings.REDIS_URL)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    write(tmp_path, "work.json", written=time.monotonic())
    write(tmp_path, file, pid=child.pid, started=identity.started(child.pid), standing=Standing("task 1", "", 50.0))
    assert probe.main(["work", *arguments]) == status
    assert child.wait(60) == -9
    assert [note.ended_by for note in alive.replaced() if note.pid == child.pid] == ["probe"]
