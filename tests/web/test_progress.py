"""Progress of a process: what moves, what stands still, what others read of it, and the notes of those replaced."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from tidesched_web.common import incidents
from tidesched_web.common import progress as module
from tidesched_web.common.progress import Progress, Report, Reporter, Standing, read, why_replaced
from tidesched_web.embedded import hangs, probe


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def report(**changes: object) -> Report:
    values = {"role": "sessions", "host": "h", "pid": 7, "parent": 1, "born": 1.0, "written": 100.0, "activities": 1}
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
    own.moved("main loop")  # of no thread
    own.begin("task 1")
    clock.now += 50
    own.step()
    standing = own.standing(40)
    assert standing is not None
    assert standing.activity == "main loop"
    own.touch("main loop")
    own.touch("unknown")
    assert own.standing(40) is None
    assert len(own) == 2


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (report(), None),
        (report(standing=Standing("loop", "deciding", 50.0)), Standing("loop", "deciding", 50.0)),
        (report(standing=Standing("loop", "deciding", 50.0), excuse="the database does not answer"), None),
        (report(written=50.0), Standing("process", "stopped", 60.0)),
        # What says nothing any more has no excuse.
        (report(written=50.0, excuse="the database does not answer"), Standing("process", "stopped", 60.0)),
    ],
)
def test_who_is_replaced(said: Report, why: Standing | None) -> None:
    assert why_replaced(said, 110.0, 40.0) == why


def test_a_process_that_waits_for_a_server_is_given_time_after_its_return(tmp_path: Path) -> None:
    own, away = Progress(lambda: 0.0), ["Redis does not answer"]
    own.moved("loop")
    own._clock = lambda: 1000.0
    reporter = Reporter(tmp_path / "a.json", "work", of=own, excuse=lambda: away[0])
    assert reporter.write().excuse == "Redis does not answer"
    away[0] = ""
    assert reporter.write().excuse == "a server was away"
    reporter._excused_at -= module.HANG_SECONDS
    said = reporter.write()
    assert said.excuse == ""
    assert read(tmp_path / "a.json") == said
    assert said.private_bytes > 1_000_000


def test_a_fork_begins_without_the_activities_of_its_parent() -> None:
    code = (
        "import os\n"
        "from tidesched_web.common.progress import progress\n"
        "progress.begin('main loop')\n"
        "progress._lock.acquire()\n"  # as another thread of the parent might just have it
        "if (pid := os.fork()):\n"
        "    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "raise SystemExit(len(progress) if progress.standing() is None else 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_a_note_is_taken_once_and_one_end_makes_one_note(tmp_path: Path) -> None:
    standing = Standing("loop", "deciding", 50.0)
    incidents.write(tmp_path, report(), standing, ended_by="supervisor")
    incidents.write(tmp_path, report(), standing, ended_by="probe")
    incidents.write(tmp_path, report(pid=8), standing, ended_by="probe")
    (tmp_path / f"{incidents.PREFIX}broken.json").write_text("{")
    taken: list[incidents.Replaced] = []
    assert incidents.take(tmp_path, taken.append) == 2
    assert sorted(note.pid for note in taken) == [7, 8]
    assert not incidents.waiting(tmp_path)


def test_a_note_that_cannot_be_kept_stays(tmp_path: Path) -> None:
    incidents.write(tmp_path, report(), Standing("loop", "", 50.0), ended_by="probe")

    def no_database(_: incidents.Replaced) -> None:
        raise RuntimeError("no database")

    with pytest.raises(RuntimeError):
        incidents.take(tmp_path, no_database)
    assert incidents.waiting(tmp_path)


# -- who looks after processes -----------------------------------------------------------------------------------------


def test_a_process_that_never_begins_is_replaced(tmp_path: Path) -> None:
    clock = Clock()
    watch = hangs.HangWatch(tmp_path, clock)
    assert watch.hung("work", 7, clock.now - hangs.START_SECONDS + 1) is None
    assert watch.hung("work", 7, clock.now - hangs.START_SECONDS - 1) is not None
    watch.note("work", 7, 0.0, Standing("process", "starting", 121.0))
    assert incidents.waiting(tmp_path)


def test_the_file_of_a_predecessor_says_nothing(tmp_path: Path) -> None:
    clock = Clock()
    (tmp_path / "work.json").write_bytes(msgspec.json.encode(report(pid=6, written=1.0)))
    watch = hangs.HangWatch(tmp_path, clock)
    assert watch.hung("work", 7, clock.now - 5) is None
    watch.begin()
    assert not (tmp_path / "work.json").exists()


def test_after_it_was_stopped_itself_it_judges_nobody_at_once(tmp_path: Path) -> None:
    clock = Clock()
    watch = hangs.HangWatch(tmp_path, clock)
    (tmp_path / "work.json").write_bytes(msgspec.json.encode(report(written=clock.now)))
    clock.now += 300
    watch.look()
    assert watch.hung("work", 7, 0.0) is None
    clock.now += 4
    watch.look()
    assert watch.hung("work", 7, 0.0) is None
    for _ in range(30):
        clock.now += 1
        watch.look()
    assert watch.hung("work", 7, 0.0) is not None


def test_the_probe_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDESCHED_PROGRESS_DIR", raising=False)
    assert probe.main(["work"]) == 2
    monkeypatch.setenv("TIDESCHED_PROGRESS_DIR", str(tmp_path))
    assert probe.main(["work"]) == 1
    file = tmp_path / "work.json"
    # Of a predecessor that had the same number: this process has not begun.
    file.write_bytes(msgspec.json.encode(report(role="work", pid=os.getpid(), written=0.0)))
    assert probe.main(["work"]) == 1
    assert not incidents.waiting(tmp_path)
    file.write_bytes(msgspec.json.encode(report(role="work", pid=os.getpid(), written=time.monotonic())))
    assert probe.main(["work"]) == 0
    standing = Standing("sessions of cluster 1", "deciding", 50.0)
    said = report(role="work", pid=os.getpid(), written=time.monotonic(), standing=standing)
    file.write_bytes(msgspec.json.encode(said))
    assert probe.main(["work"]) == 1
    assert incidents.waiting(tmp_path)


def test_the_probe_ends_what_hangs_where_it_is_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDESCHED_PROGRESS_DIR", str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    standing = Standing("process", "stopped", 50.0)
    said = report(role="work", pid=child.pid, parent=os.getpid(), written=time.monotonic(), standing=standing)
    (tmp_path / "work.json").write_bytes(msgspec.json.encode(said))
    assert probe.main(["work", "--end"]) == 1
    assert child.wait(60) == -9
