"""API servers that the contract tests run against."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.connection import Connection

ROOT = Path(__file__).resolve().parents[2]


class ApiServer:
    """A Kubernetes API server: where it is and how to get in. Others than the simulated one set these fields."""

    simulated = False
    url: str
    token: str
    ca_certificate = ""

    def client(self) -> KubernetesClient:
        return KubernetesClient(Connection(self.url, ca_certificate=self.ca_certificate, token=self.token))


class SimulatedServer(ApiServer):
    """The simulated cluster as a process of its own, with its data in ``folder``."""

    simulated = True
    token = "a-token-for-tests"

    def __init__(self, folder: Path, *arguments: str, rate: float = 100.0) -> None:
        self._folder, self._arguments, self._rate = folder, arguments, rate
        self._port = 0
        self.process: subprocess.Popen[str] | None = None
        self.token_file = folder / "token"
        self.token_file.write_text(self.token)

    def start(self) -> None:
        command = [sys.executable, "-m", "tidesched_web.simcluster", "--data-dir", str(self._folder / "data")]
        command += ["--port", str(self._port), "--token-file", str(self.token_file), "--rate", str(self._rate)]
        if "--stage" not in self._arguments:
            command += ["--stage", "empty"]
        self.process = subprocess.Popen(
            [*command, *self._arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": ""},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://[\d.]+:(\d+)", line)
        assert found, f"the simulated cluster did not start: {line!r}"
        self.url, self._port = found[0], int(found[1])

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        status = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def writes(self, after: int = 0) -> list[dict[str, Any]]:
        """All rows of the write log beyond ``after``."""
        client, rows = self.client(), []
        while True:
            page = client.get("/tidesched/writes", {"after": after, "limit": 1000})["writes"]
            if not page:
                return rows
            rows += page
            after = page[-1]["seq"]
