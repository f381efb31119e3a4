"""PostgreSQL and Valkey as children: real binaries, real files, real kills."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from tests.waiting import until
from tidesched_web.embedded import sockets
from tidesched_web.embedded.child import run as child_run
from tidesched_web.embedded.child import spawn
from tidesched_web.embedded.errors import StartError
from tidesched_web.embedded.postgres import Postgres
from tidesched_web.embedded.valkey import Valkey

PARENT = """
import sys, time
from pathlib import Path
from tests.disposable_servers import DisposableServers
servers = DisposableServers(Path(sys.argv[1]))
servers.start()
print(*(child.pid for child in servers._children), flush=True)
time.sleep(60)
"""


@pytest.fixture
def run() -> Iterator[Callable[[Postgres | Valkey], subprocess.Popen[bytes]]]:
    """Start servers; kill at the end what the test has left."""
    children: list[subprocess.Popen[bytes]] = []

    def start(server: Postgres | Valkey) -> subprocess.Popen[bytes]:
        server.prepare()
        child = spawn(
            server.command(),
            env=server.environment(),
            account=server.account,
            output=subprocess.DEVNULL,
            death_signal=server.stop_signal,
            cwd=Path("/"),
        )
        children.append(child)
        until(lambda: server.ready() or child.poll() is not None)
        return child

    yield start
    for child in children:
        if child.poll() is None:
            child.kill()
        child.wait()


def test_postgres_keeps_what_was_committed_before_a_kill(tmp_path: Path, run: Callable) -> None:
    server = Postgres(tmp_path)
    first = run(server)
    with psycopg.connect(server.owner_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept VALUES (7)")
    first.kill()
    first.wait()

    run(server)
    with psycopg.connect(server.owner_url) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(7,)]
        assert connection.execute("SHOW data_checksums").fetchone() == ("on",)


def test_postgres_stops_on_its_signal_and_leaves_no_socket(tmp_path: Path, run: Callable) -> None:
    server = Postgres(tmp_path)
    child = run(server)
    child.send_signal(server.stop_signal)
    assert child.wait(60) == 0
    assert list(server.socket_dir.iterdir()) == []


def test_postgres_listens_on_a_private_socket_alone(tmp_path: Path, run: Callable) -> None:
    server = Postgres(tmp_path)
    run(server)
    assert server.socket_dir.stat().st_mode & 0o777 == 0o700
    with psycopg.connect(server.owner_url) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        assert connection.execute("SELECT collname FROM pg_collation LIMIT 1").fetchone()


def test_lock_files_of_a_foreign_process_do_not_stop_postgres(tmp_path: Path, run: Callable) -> None:
    server = Postgres(tmp_path)
    child = run(server)
    pid_file = server.folder / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    child.send_signal(server.stop_signal)
    child.wait()
    # The number in the file has wrapped around to a process that is no server of ours.
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    (server.socket_dir / ".s.PGSQL.5432.lock").write_text(f"{os.getpid()}\n")
    assert run(server).poll() is None


def test_a_second_postgres_on_the_same_files_is_refused(tmp_path: Path, run: Callable) -> None:
    server = Postgres(tmp_path)
    run(server)
    with pytest.raises(StartError, match="another PostgreSQL"):
        Postgres(tmp_path).prepare()


@pytest.mark.parametrize(("version", "age"), [("99", "newer"), ("15", "older")])
def test_files_of_another_major_version_are_refused(tmp_path: Path, version: str, age: str) -> None:
    server = Postgres(tmp_path)
    server.prepare()
    (server.folder / "PG_VERSION").write_text(f"{version}\n")
    with pytest.raises(StartError, match=age) as refused:
        server.prepare()
    assert "DATA_DIR" in refused.value.hint


def test_a_half_made_folder_is_made_anew(tmp_path: Path) -> None:
    half = tmp_path / "postgres.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    server = Postgres(tmp_path)
    assert server.prepare() is True
    assert server.prepare() is False
    assert not half.exists()


def test_valkey_keeps_what_it_was_told_before_a_kill(tmp_path: Path, run: Callable) -> None:
    server = Valkey(tmp_path)
    first = run(server)
    with redis.Redis.from_url(server.url) as connection:
        connection.set("kept", "7")
        assert connection.execute_command("WAITAOF", 1, 0, 0)[0] == 1  # it writes to disk each second
    first.kill()
    first.wait()

    run(server)
    with redis.Redis.from_url(server.url) as connection:
        assert connection.get("kept") == b"7"


def test_valkey_opens_no_port(tmp_path: Path, run: Callable) -> None:
    server = Valkey(tmp_path)
    child = run(server)
    with redis.Redis.from_url(server.url) as connection:
        assert connection.config_get("port") == {"port": "0"}
    child.send_signal(server.stop_signal)
    assert child.wait(60) == 0
    assert not server.socket.exists()


def test_servers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root lends PostgreSQL a user")
def test_root_runs_postgres_where_nobody_else_may_enter(tmp_path: Path, run: Callable) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = Postgres(closed / "data")
    run(server)
    assert closed.stat().st_mode & 0o777 == 0o700
    with psycopg.connect(server.owner_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_deep_data_folder_has_its_sockets_elsewhere() -> None:
    deep = Path("/", *["folder"] * 30)
    assert len(os.fsencode(sockets.valkey_socket(deep))) < 107
    assert len(os.fsencode(sockets.postgres_dir(deep) / ".s.PGSQL.5432.lock")) < 107
    assert sockets.socket_dir(deep) != sockets.socket_dir(deep / "other")
    assert sockets.socket_dir(Path("/srv/data")) == Path("/srv/data/run")


def test_a_socket_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "theirs"
    target.mkdir()
    link = tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(PermissionError):
        sockets.make_private(link)


def test_another_user_of_the_machine_is_refused(run, tmp_path) -> None:
    server = Postgres(tmp_path)
    run(server)
    with psycopg.connect(server.owner_url) as ours:
        assert ours.execute("SELECT current_user").fetchone() == ("tidesched",)
    with pytest.raises(psycopg.OperationalError, match="Peer authentication failed"):
        psycopg.connect(psycopg.conninfo.make_conninfo(server.owner_url, user="postgres"))
    if server.account is None:
        pytest.skip("only root can ask as the server's own user, and this is another user")
    asked = run_as(server)
    assert asked.returncode != 0
    assert 'Peer authentication failed for user "tidesched"' in asked.stderr


def run_as(server: Postgres) -> subprocess.CompletedProcess[str]:
    """The answer to the user that the server runs as, who owns the socket."""
    ask = ["-h", str(server.socket_dir), "-U", sockets.DATABASE_OWNER, "-c", "SELECT 1", "postgres"]
    return child_run([str(server.bin / "psql"), *ask], env={"LC_ALL": "C"}, account=server.account)
