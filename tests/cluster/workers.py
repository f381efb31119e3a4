"""Real Celery workers, beat and broker for the crash matrix."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.db import connection

from tests.cluster.servers import ROOT
from tests.waiting import until
from tidesched_web.embedded.child import spawn
from tidesched_web.embedded.valkey import Valkey

LEASE_SECONDS = 3.0


def database_address() -> str:
    """The address of the database that the tests themselves use."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    return urlunsplit(parts._replace(path="/" + str(connection.settings_dict["NAME"])))


class Broker:
    """A Valkey of the matrix's own, which it may restart."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._valkey = Valkey(folder)
        self._valkey.prepare()
        self.url = self._valkey.url
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._valkey.clean()
        self._process = spawn(
            self._valkey.command(),
            env=self._valkey.environment(),
            account=None,
            output=subprocess.DEVNULL,
            cwd=Path("/"),
        )
        until(self._valkey.ready)

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(60)

    def restart(self) -> None:
        self.stop()
        self.start()


class Worker:
    """One Celery process with the settings of the tests and a short lease.

    ``role``: ``sessions`` or ``work`` as the queue that it takes from, or ``beat``. ``program``: what Python runs in
    place of Celery's own module. ``environment``: these variables are others.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        broker: Broker,
        *,
        failpoints: str = "",
        role: str = "sessions",
        lease_seconds: float = LEASE_SECONDS,
        program: Sequence[str] = ("-m", "celery"),
        environment: Mapping[str, str] = {},
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        variables = os.environ | {
            "DATABASE_URL": database_address(),
            "REDIS_URL": broker.url,
            "DATA_DIR": str(folder),
            "TIDESCHED_LEASE_SECONDS": str(lease_seconds),
            "TIDESCHED_INSTALLATION_ID": "matrix",
            "TIDESCHED_FAILPOINTS": failpoints,
            **environment,
        }
        command = [sys.executable, *program, "--quiet", "--app", "tidesched_web.celery"]
        if role == "beat":
            command += ["beat", "--loglevel", "WARNING", "--scheduler", "celery.beat:Scheduler"]
        else:
            command += ["worker", "--loglevel", "INFO", "--without-gossip", "--without-mingle", "--pool", "threads"]
            command += ["--concurrency", "4", "--queues", role, "--hostname", f"{name}@%h"]
        with self.log.open("wb") as output:
            self.process: subprocess.Popen[Any] = subprocess.Popen(
                command, cwd=ROOT, env=variables, stdout=output, stderr=output
            )

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def stopped(self) -> bool:
        """True while SIGSTOP holds it."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        return fields[0] == "T"

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """kill -9 and bury, whatever state it is in."""
        if not self.ended:
            self.process.kill()
            self.process.wait(60)

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]
