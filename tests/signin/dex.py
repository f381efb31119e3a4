"""Dex, a real OIDC provider, for tests: built once from its Go module, and kept outside the tree.

`python -m tests.signin.dex` builds it by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from tests.kube import binaries as kube
from tests.kube.binaries import NoBinaries
from tests.kube.server_process import ServerProcess, free_ports
from tests.waiting import until

SOURCES = Path(__file__).with_name("dex")
MODULE = "github.com/dexidp/dex"
GROUPS = {"ada": ["gpu-admins"], "ben": []}
PASSWORD = "a-password-at-the-provider"


def find_or_build() -> Path:
    """The program; of several processes one builds it and the others wait.

    Raises:
        NoBinaries: it cannot be built; says why.
    """
    target = _home() / "dex"
    target.parent.parent.mkdir(parents=True, exist_ok=True)
    with kube.only_one(target.parent.parent / "lock"):
        if not os.access(target, os.X_OK):
            _build(target)
    return target


def _home() -> Path:
    digest = hashlib.sha256()
    for file in sorted(path for path in SOURCES.iterdir() if path.is_file()):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    version = re.search(rf"^\s*{MODULE} (v\S+)", (SOURCES / "go.mod").read_text(), re.MULTILINE)
    assert version
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "tidesched" / "dex" / f"{version[1]}-{platform.machine()}-{digest.hexdigest()[:12]}"


def _build(target: Path) -> None:
    go = kube.go_program(target.parent.parent)
    kube.say(f"building Dex, once, with {go}")
    with tempfile.TemporaryDirectory(prefix="building-", dir=target.parent.parent) as folder:
        made = Path(folder) / "dex"
        command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-gcflags=all=-dwarf=false"]
        done = subprocess.run(
            [*command, "-o", str(made), "."],
            cwd=SOURCES, env=kube.environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise NoBinaries(f"go build of Dex failed:\n{done.stderr[-2000:]}")
        target.parent.mkdir(parents=True, exist_ok=True)
        made.rename(target)
    kube.say(f"built: {target}")


class Dex:
    """``ada`` and ``ben`` sign in as ``ada@example.org`` and so on with `PASSWORD`; ``ada`` is in a group at first.

    What it keeps is in a database of its own at the server of ``database_url``, so that refresh tokens and keys
    outlive a restart. Signing keys are changed when they are older than ``rotation``, looked at each 30 seconds and at
    each start; ``id_tokens`` is how long an id token is valid.
    """

    client_id, client_secret = "tidesched", "the-secret-of-the-client"

    def __init__(
        self,
        folder: Path,
        database_url: str,
        *,
        redirect_uris: Sequence[str] = (),
        rotation: str = "5m",
        id_tokens: str = "10m",
    ) -> None:
        self.redirect_uris = list(redirect_uris)
        self.groups: dict[str, list[str]] = {name: list(groups) for name, groups in GROUPS.items()}
        self.rotation, self.id_tokens = rotation, id_tokens
        (self.port,) = free_ports(1)
        self._folder, self._database_url = folder, database_url
        self._database = f"dex_{self.port}"
        self._process: ServerProcess | None = None

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}/dex"

    def start(self) -> None:
        program = find_or_build()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._make_database()
        file = self._folder / "dex.json"
        file.write_text(json.dumps(self._configuration()))
        self._process = ServerProcess([str(program), str(file)], self._folder / "dex.log", dict(os.environ))
        until(lambda: self._answers() or not self._running(), story=self.said)
        assert self._running(), self.said()

    def stop(self) -> None:
        if self._process is not None:
            self._process.end(signal.SIGTERM)

    def restart(self, groups: Mapping[str, Sequence[str]] | None = None) -> None:
        """With the groups of those named changed; a person who is not named keeps theirs."""
        self.stop()
        self.groups |= {name: list(of) for name, of in (groups or {}).items()}
        self.start()

    def drop(self) -> None:
        """Stop it and take its database away."""
        self.stop()
        with psycopg.connect(self._database_url, autocommit=True) as connection:
            connection.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(self._database)))

    def said(self) -> str:
        return self._process.said() if self._process else ""

    def _running(self) -> bool:
        return self._process is not None and self._process.running

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.issuer}/.well-known/openid-configuration", trust_env=False).is_success
        except httpx.TransportError:
            return False

    def _make_database(self) -> None:
        with psycopg.connect(self._database_url, autocommit=True) as connection:
            name = Identifier(self._database)
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [self._database]).fetchone():
                connection.execute(SQL("CREATE DATABASE {} TEMPLATE template0").format(name))

    def _configuration(self) -> dict[str, object]:
        place = conninfo_to_dict(self._database_url)
        people = [
            {"email": f"{name}@example.org", "username": name, "preferredUsername": name, "userID": f"id-of-{name}",
             "groups": groups, "password": PASSWORD}
            for name, groups in self.groups.items()
        ]  # fmt: skip
        client = {"id": self.client_id, "secret": self.client_secret, "name": "TideSched"}
        return {
            "issuer": self.issuer,
            "address": f"127.0.0.1:{self.port}",
            "database": {
                "Host": place["host"], "Port": int(place.get("port", 5432)), "User": place["user"],
                "Password": place.get("password", ""), "Database": self._database, "ssl": {"Mode": "disable"},
            },
            "clients": [client | {"redirectURIs": self.redirect_uris}],
            "people": people,
            "keysRotation": self.rotation,
            "idTokens": self.id_tokens,
        }  # fmt: skip


if __name__ == "__main__":
    sys.stdout.write(f"{find_or_build()}\n")
