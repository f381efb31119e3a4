"""The data folder's lock, secrets and runtime file, and the options of a start."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tidesched_web.embedded import data_folder, identity
from tidesched_web.embedded.data_folder import DataFolder
from tidesched_web.embedded.errors import StartError
from tidesched_web.embedded.options import free_port, listen, read_options
from tidesched_web.env import Process, Runtime

HOLD = (
    "import sys, time; from pathlib import Path\n"
    "from tidesched_web.embedded.data_folder import DataFolder\n"
    "folder = DataFolder(Path(sys.argv[1])); folder.open(); print('held', flush=True); time.sleep(60)"
)


def hold(folder: Path) -> subprocess.Popen[str]:
    """Start a process that holds the folder."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_second_start_names_the_first(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    try:
        with pytest.raises(StartError, match=f"already runs .* \\(process {holder.pid}") as refused:
            DataFolder(tmp_path).open()
        assert "make down" in refused.value.hint
    finally:
        holder.kill()
        holder.wait()


def test_a_lock_left_by_a_killed_start_is_no_obstacle(tmp_path: Path) -> None:
    holder = hold(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    folder = DataFolder(tmp_path)
    folder.open()
    assert folder.holder.pid == os.getpid()
    folder.close()


def test_children_of_a_killed_start_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_folder, "_PATIENCE_SECONDS", 0.5)
    folder = DataFolder(tmp_path)
    folder.open()
    orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[folder.lock_fd])
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    folder.write_runtime(Runtime(processes={"web": Process(orphan.pid, identity.started(orphan.pid))}))
    (tmp_path / "lock").write_text(f"{gone.pid} 1")
    os.close(folder.lock_fd)

    again = DataFolder(tmp_path)
    again.open()
    assert orphan.wait(60) == -signal.SIGKILL
    again.close()


def test_a_number_that_was_used_again_is_another_process() -> None:
    assert identity.is_same(os.getpid(), identity.started(os.getpid()))
    assert not identity.is_same(os.getpid(), "1")
    identity.kill_if_same(os.getpid(), "1")


def test_secrets_are_made_once_and_for_the_owner_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.make_secrets()
    first = {name: (tmp_path / name).read_text() for name in ("secret_key", "tidesched_keys")}
    folder.make_secrets()
    for name, value in first.items():
        assert (tmp_path / name).read_text() == value
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert first["secret_key"] != first["tidesched_keys"]


def test_the_runtime_file_is_for_the_owner_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.write_runtime(Runtime(database_url="postgresql://user:secret@host/name"))
    assert (tmp_path / "runtime.json").stat().st_mode & 0o777 == 0o600
    assert folder.read_runtime().database_url == "postgresql://user:secret@host/name"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot be used"):
        DataFolder(tmp_path / "file" / "data").open()


def test_a_port_in_use_is_named_with_another_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"port {port} of 127.0.0.1 is in use") as refused:
            listen("127.0.0.1", port)
        assert f"PORT={port + 1}" in refused.value.hint
        assert free_port(port) != port


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(StartError, match="cannot listen"):
        listen("192.0.2.1", 8000)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PORT", "eight"),
        ("PORT", "70000"),
        ("WEB_PROCESSES", "0"),
        ("WEB_PROCESSES", "50"),
        ("DEMO", "maybe"),
        ("DATABASE_URL", "mysql://x"),
        ("REDIS_URL", "http://x"),
    ],
)
def test_an_option_that_cannot_be_right_is_named(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(StartError, match=variable):
        read_options()


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8000"), ("0.0.0.0", "http://127.0.0.1:8000"), ("::1", "http://[::1]:8000")],
)
def test_the_address_to_open(host: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST", host)
    monkeypatch.delenv("PORT", raising=False)
    assert read_options().web_url == url
