"""Start what docker-compose.yml would start, without containers: `python -m tests.compose_outside`.

Each service's command runs with its environment beside a PostgreSQL and a Redis-protocol server of its own; then each
health check is run the same way. What a container adds (image, user, read-only root, network) is not tried here.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from cryptography.fernet import Fernet

from tests.disposable_servers import DisposableServers
from tidesched_web.embedded import sockets

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 300.0
_SERVERS = {"postgres", "redis"}
_IMAGE_COMMAND = re.compile(r"^CMD (\[.*\])$", re.MULTILINE)


def main() -> int:
    """Exit status 0 when every process came up and every health check passes."""
    services: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    with tempfile.TemporaryDirectory(prefix="tidesched-compose-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        servers = DisposableServers(folder)
        servers.start()
        running: dict[str, subprocess.Popen[bytes]] = {}
        try:
            given = _given(servers)
            release = _spawn("release", services["release"], given, folder)
            if release.wait(PATIENCE_SECONDS) != 0:
                return _tell("release", folder, "did not end well")
            print("release: done")
            for service in [name for name in services if name not in _SERVERS | {"release"}]:
                running[service] = _spawn(service, services[service], given, folder)
            return _checked(services, running, given, folder)
        finally:
            for process in running.values():
                process.send_signal(signal.SIGTERM)
            for service, process in running.items():
                print(f"{service}: ended with {process.wait(30)}")
            servers.stop()


def _given(servers: DisposableServers) -> dict[str, str]:
    """The variables that a person exports, and the two that point at the servers."""
    return {
        "POSTGRES_PASSWORD": "unused",
        "POSTGRES_APP_PASSWORD": "unused",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "TIDESCHED_KEYS": Fernet.generate_key().decode(),
        "TIDESCHED_INSTALLATION_ID": "compose-outside",
        "ADMIN_PASSWORD": secrets.token_urlsafe(12),
        "DATABASE_URL": sockets.database_url(servers.folder),
        "DATABASE_OWNER_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
    }


def _environment(service: str, described: dict[str, Any], given: dict[str, str], folder: Path) -> dict[str, str]:
    """As compose would set it; what points at other containers points at the servers here."""

    def filled(text: object) -> str:
        return re.sub(r"\$\{(\w+)(?::[-?]([^}]*))?\}", lambda m: given.get(m[1], m[2] or ""), str(text))

    own = {name: filled(value) for name, value in described.get("environment", {}).items()}
    paths = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "DATA_DIR": str(folder / "data"),
        "TIDESCHED_PROGRESS_DIR": str(folder / f"progress-{service}"),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "kernels")),
        "TIDESCHED_EMBEDDED": "0",
        "DEMO": "0",
    }
    servers = {name: given[name] for name in own.keys() & {"DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL"}}
    switches = {name: os.environ[name] for name in ("NUMBA_DISABLE_JIT",) if name in os.environ}
    return own | paths | servers | switches


def _spawn(service: str, described: dict[str, Any], given: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
    image: list[str] = yaml.safe_load(_IMAGE_COMMAND.findall((ROOT / "Dockerfile").read_text())[0])
    log = (folder / f"{service}.log").open("ab")
    environment = _environment(service, described, given, folder)
    command: list[str] = described.get("command") or image
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)


def _checked(
    services: dict[str, Any], running: dict[str, subprocess.Popen[bytes]], given: dict[str, str], folder: Path
) -> int:
    deadline, waiting = time.monotonic() + PATIENCE_SECONDS, dict(running)
    while waiting and time.monotonic() < deadline:
        for service, process in list(waiting.items()):
            if process.poll() is not None:
                return _tell(service, folder, f"ended with {process.returncode}")
            if _healthy(service, services[service], given, folder):
                print(f"{service}: healthy")
                del waiting[service]
        time.sleep(0.5)
    for service in waiting:
        _tell(service, folder, "is not healthy")
    return 1 if waiting else 0


def _healthy(service: str, described: dict[str, Any], given: dict[str, str], folder: Path) -> bool:
    form, *words = described["healthcheck"]["test"]
    command = words if form == "CMD" else ["/bin/sh", "-c", words[0].replace("$$", "$")]
    environment = _environment(service, described, given, folder)
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False).returncode == 0


def _tell(service: str, folder: Path, what: str) -> int:
    tail = (folder / f"{service}.log").read_text(errors="replace")[-3000:]
    print(f"{service}: {what}\n{tail}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
