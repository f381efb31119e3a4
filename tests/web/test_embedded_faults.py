# ruff: noqa: F811  # a parameter names the fixture that is imported
"""The supervisor on a machine that is not perfect: full disk, unread terminal, wrong folders and keys."""

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from tests.web.test_embedded_data_folder import hold
from tests.web.test_embedded_supervisor import SLEEP, Run, run  # noqa: F401 - a fixture
from tidesched_web.embedded import data_folder
from tidesched_web.embedded.__main__ import main as command_line
from tidesched_web.embedded.data_folder import DataFolder
from tidesched_web.embedded.errors import StartError
from tidesched_web.embedded.options import read_options
from tidesched_web.env import BASE_DIR, Runtime

CHATTERS_TO_A_FULL_DISK = """
import sys
from collections import namedtuple
from pathlib import Path
from tidesched_web.embedded.console_output import Output
output = Output(Path(sys.argv[1]))
for number in range(3000):
    output.line("web", f"line {number} " + "x" * 100)
    output.say("a line of the supervisor's own")
"""


class Disk:
    """Stands before the writes of a data folder: while it is full each of them fails as the kernel lets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        write = DataFolder.write_runtime

        def write_or_fail(folder: DataFolder, runtime: Runtime) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder.path / "runtime.new"))
            write(folder, runtime)

        monkeypatch.setattr(DataFolder, "write_runtime", write_or_fail)
        usage = namedtuple("usage", "free")
        monkeypatch.setattr(data_folder.shutil, "disk_usage", lambda _folder: usage(0 if self.full else 1 << 40))


@pytest.mark.asyncio
async def test_a_full_disk_ends_no_task_of_the_supervisor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    run.keep("sleeper", "print('up', flush=True); " + SLEEP)
    await run.until(lambda: "| up" in run.log.read_text())
    first = run.pid("sleeper")
    disk.full = True
    os.kill(first, signal.SIGKILL)
    await run.until(lambda: run.log.read_text().count("| up") == 2)
    why = f"{run.data.path} cannot be written (No space left on device): make room on its disk"
    await run.until(lambda: run.known_problems() == {"disk": why})
    disk.full = False
    await run.until(lambda: run.pid("sleeper") not in {0, first} and not run.known_problems())
    assert run.log.read_text().count("make room on its disk") == 1


@pytest.mark.asyncio
async def test_what_a_process_needs_before_its_start_is_tried_again(run: Run) -> None:
    tries = 0

    def fails_twice() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise OSError(errno.ENOSPC, "No space left on device", "pg_hba.conf.new")

    run.keep("server", "raise SystemExit(1)", before_restart=fails_twice)
    await run.until(lambda: run.log.read_text().count("server ended (exit status 1)") >= 2)
    assert tries >= 3
    assert "server cannot start: [Errno 28] No space left on device: 'pg_hba.conf.new'" in run.log.read_text()


def test_a_log_on_a_full_disk_and_a_terminal_that_nobody_reads_stop_nothing(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "all.log"
    log.parent.mkdir()
    log.symlink_to("/dev/full")
    command = [sys.executable, "-c", CHATTERS_TO_A_FULL_DISK, str(log)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert child.wait(60) == 0  # not a byte was read
        assert child.stderr is not None
        assert child.stderr.read() == b""
    finally:
        child.kill()


def test_a_terminal_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", CHATTERS_TO_A_FULL_DISK, str(tmp_path / "logs" / "all.log")]
    child = subprocess.Popen(command, stdout=theirs, stderr=theirs)
    try:
        assert child.wait(60) == 0
    finally:
        child.kill()
        os.close(ours)
        os.close(theirs)


def test_a_key_that_could_not_be_written_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(data_folder.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        DataFolder(tmp_path).make_secrets()
    assert not (tmp_path / "secret_key").exists()
    monkeypatch.undo()
    DataFolder(tmp_path).make_secrets()
    assert len((tmp_path / "secret_key").read_text().strip()) >= 50


@pytest.mark.parametrize("content", ["", "12345678\n"])
@pytest.mark.parametrize("name", ["secret_key", "tidesched_keys"])
def test_an_empty_or_short_key_is_refused_by_the_name_of_its_file(tmp_path: Path, name: str, content: str) -> None:
    DataFolder(tmp_path).make_secrets()
    (tmp_path / name).write_text(content)
    with pytest.raises(StartError) as refused:
        DataFolder(tmp_path).make_secrets()
    assert str(tmp_path / name) in refused.value.message
    assert "back-up" in refused.value.hint


PRETENDS = """
import errno, os, runpy, sys
def makedirs(path, **_):
    raise OSError({number}, os.strerror({number}), path)
os.makedirs = makedirs
sys.argv = [{script!r}, "run"]
runpy.run_path({script!r}, run_name="__main__")
"""


def give_away(path: Path) -> None:
    """Give a folder to another user, as `sudo` leaves it to root."""
    if os.geteuid():
        pytest.skip("only root gives a folder away")
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.EROFS, "read-only"), (errno.ENOSPC, "make room"), (errno.EACCES, "sudo chown -R")],
)
def test_a_checkout_that_cannot_be_written_is_told_in_one_sentence(tmp_path: Path, number: int, words: str) -> None:
    script = tmp_path / "tidesched_web" / "embedded" / "bootstrap.py"
    script.parent.mkdir(parents=True)
    shutil.copy(BASE_DIR / "tidesched_web" / "embedded" / "bootstrap.py", script)
    give_away(tmp_path)
    code = PRETENDS.format(number=number, script=str(script))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(tmp_path / ".cache") in done.stderr
    assert words in done.stderr


def test_files_of_another_user_in_the_data_folder_are_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "logs" / "tidesched.log"
    log.parent.mkdir()
    give_away(log.parent)

    def refused() -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(log))

    monkeypatch.setattr("tidesched_web.embedded.up.up", refused)
    assert command_line(["up"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"error: {log} cannot be written: {log.parent} belongs to another user (12345)"
    assert f"sudo chown -R $USER {log.parent}" in lines[1]


def test_a_data_folder_of_another_user_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_away(tmp_path)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / "lock"))

    monkeypatch.setattr(Path, "chmod", refused)
    with pytest.raises(StartError, match="belongs to another user") as error:
        DataFolder(tmp_path).open()
    assert f"sudo chown -R $USER {tmp_path}" in error.value.hint


@pytest.mark.asyncio
async def test_one_that_is_killed_for_memory_again_and_again_is_a_problem(run: Run) -> None:
    run.keep("greedy", "import os; os.kill(os.getpid(), 9)")
    await run.until(lambda: "memory" in run.known_problems())
    words = "killed from outside (signal 9), probably for too little memory: TideSched needs about "
    assert words in run.log.read_text()
    assert words in run.known_problems()["memory"]


@pytest.mark.asyncio
async def test_the_problem_of_memory_is_gone_when_all_stay_alive(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidesched_web.embedded.supervisor._STABLE_SECONDS", 2.0)
    memory = tmp_path / "memory"
    run.keep(
        "greedy", f"import os, time\nif not os.path.exists({str(memory)!r}): os.kill(os.getpid(), 9)\ntime.sleep(60)"
    )
    await run.until(lambda: "memory" in run.known_problems())
    memory.touch()
    await run.until(lambda: not run.known_problems())


def test_a_missing_key_is_refused_where_data_was_encrypted_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDESCHED_KEYS", raising=False)
    DataFolder(tmp_path).make_secrets()
    (tmp_path / "admin.json").write_text("{}")
    (tmp_path / "tidesched_keys").unlink()
    with pytest.raises(StartError) as refused:
        DataFolder(tmp_path).make_secrets()
    assert str(tmp_path / "tidesched_keys") in refused.value.message
    assert "back-up" in refused.value.hint
    assert not (tmp_path / "tidesched_keys").exists()


def test_make_down_needs_no_runtime_file(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    (tmp_path / "runtime.json").unlink()
    command = [sys.executable, "-m", "tidesched_web.embedded", "down"]
    environment = os.environ | {"DATA_DIR": str(tmp_path)}
    try:
        done = subprocess.run(command, cwd=BASE_DIR, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout == "TideSched has stopped\n", done.stderr
        assert holder.wait(60) == -signal.SIGTERM
    finally:
        holder.kill()


def test_a_folder_that_is_too_deep_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "/".join(["x" * 200] * 6)))
    with pytest.raises(StartError, match="DATA_DIR is too long"):
        read_options()
    monkeypatch.setenv("DATA_DIR", str(tmp_path / ("y" * 120)))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / ("z" * 100)))
    with pytest.raises(StartError, match="too deep for sockets") as refused:
        read_options()
    assert "TMPDIR" in refused.value.hint


@pytest.mark.parametrize("package", ["django", "celery", "uvicorn"])
def test_a_missing_package_is_named_with_the_way_out(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, package, None)
        assert command_line(["up"]) == 1
    error = capsys.readouterr().err
    assert package in error
    assert "make clean" in error


def test_a_redis_that_refuses_is_named_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setattr("tidesched_web.embedded.up.SERVER_PATIENCE_SECONDS", 0.5, raising=False)
    environment = {
        "DATA_DIR": str(tmp_path),
        "PORT": str(port),
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x",
        "REDIS_URL": f"redis://:secret@127.0.0.1:{port}/0",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert command_line(["up"]) == 1
    error = capsys.readouterr().err
    assert f"error: Redis at 127.0.0.1:{port} does not answer" in error
    assert "secret" not in error
    assert "REDIS_URL" in error
