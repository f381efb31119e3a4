"""The whole product as `make up` starts it, with its demo cluster, for the tests that go the whole way."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.browser import servers
from tests.passwords import PASSWORD

READY_SECONDS = 300
# The medium demo is drawn, written and bound first.
MEDIUM_READY_SECONDS = 900


@dataclass(frozen=True)
class Demo:
    """What runs."""

    address: str
    folder: Path

    def ask(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, Any]:
        """One request to the cluster itself, past TideSched."""
        runtime = json.loads((self.folder / "runtime.json").read_text())
        token = Path(runtime["simcluster_token_file"]).read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{runtime['simcluster_url']}{path}", data=data, headers=headers, method=method)
        with urlopen(request, timeout=20) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def writes(self) -> list[dict[str, Any]]:
        """All that was written to the cluster, from its own log."""
        found: list[dict[str, Any]] = []
        while True:
            after = found[-1]["seq"] if found else 0
            part = self.ask("GET", f"/tidesched/writes?after={after}&limit=1000")["writes"]
            if not part:
                return found
            found += part


@contextlib.contextmanager
def running(folder: Path, *, cluster: bool = True, size: str = "S") -> Iterator[Demo]:
    """`make up` without make, in a folder of its own on a port of its own; ``cluster``: with the demo's, of a size."""
    folder.chmod(0o711)
    for parent in (folder.parent, folder.parent.parent):
        parent.chmod(parent.stat().st_mode | 0o011)  # PostgreSQL may run as another user
    own = {"DATABASE_URL", "REDIS_URL", "TIDESCHED_EMBEDDED", "DEMO", "DATA_DIR", "DJANGO_SETTINGS_MODULE"}
    environment = {name: value for name, value in os.environ.items() if name not in own}
    port = servers.free_port()
    environment |= {"DATA_DIR": str(folder), "PORT": str(port), "ADMIN_PASSWORD": PASSWORD, "DEMO": str(int(cluster))}
    environment["DEMO_SIZE"] = size
    address = f"http://127.0.0.1:{port}"
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tidesched_web.embedded", "up"],
            cwd=servers.ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        patience = MEDIUM_READY_SECONDS if size == "M" else READY_SECONDS
        servers.until_it_answers(f"{address}/readyz", process, folder / "up.log", patience)
        yield Demo(address, folder)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
