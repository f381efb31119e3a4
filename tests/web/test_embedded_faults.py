"""The supervisor on a machine that is not perfect: full disk, unread terminal, wrong folders and keys."""

import errno
import os
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from tests.web.test_embedded_supervisor import SLEEP, Run, run  # noqa: F401 - a fixture
from tidesched_web.embedded import data_folder
from tidesched_web.embedded.data_folder import DataFolder
from tidesched_web.embedded.errors import StartError

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

        def write_or_fail(folder: DataFolder, runtime: object) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder.path / "runtime.new"))
            write(folder, runtime)  # type: ignore[arg-type]

        monkeypatch.setattr(DataFolder, "write_runtime", write_or_fail)
        usage = namedtuple("usage", "free")
        monkeypatch.setattr(data_folder.shutil, "disk_usage", lambda _folder: usage(0 if self.full else 1 << 40))


@pytest.mark.asyncio
async def test_a_full_disk_ends_no_task_of_the_supervisor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    disk = Disk(monkeypatch)
    run.keep("sleeper", "print('up', flush=True); " + SLEEP)
    await run.until(lambda: run.pid("sleeper"))
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
async def test_what_a_process_needs_before_its_start_is_tried_again(run: Run) -> None:  # noqa: F811
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
