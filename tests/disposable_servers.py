"""Both servers in a folder that may be thrown away: for tests, benchmarks and the generation of documents."""

import subprocess
from pathlib import Path

from tests.waiting import until
from tidesched_web.embedded.child import spawn
from tidesched_web.embedded.errors import StartError
from tidesched_web.embedded.postgres import Postgres
from tidesched_web.embedded.valkey import Valkey


class DisposableServers:
    """PostgreSQL and Valkey without durability, started together and stopped together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.postgres, self.valkey = Postgres(folder, disposable=True), Valkey(folder, disposable=True)
        self.servers: list[Postgres | Valkey] = [self.postgres, self.valkey]
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def database_url(self) -> str:
        """The address of PostgreSQL, as the owner of what is made there."""
        return self.postgres.owner_url

    @property
    def redis_url(self) -> str:
        return self.valkey.url

    def start(self) -> None:
        """Start both and wait until both answer."""
        for server in self.servers:
            server.prepare()
            with self.folder.joinpath(f"{server.name}.log").open("ab") as log:
                self._children.append(
                    spawn(server.command(), env=server.environment(), account=server.account, output=log, cwd=Path("/"))
                )
        for server, child in zip(self.servers, self._children, strict=True):
            until(lambda server=server, child=child: server.ready() or child.poll() is not None)
            if child.poll() is not None:
                self.stop()
                tail = self.folder.joinpath(f"{server.name}.log").read_text(errors="replace")[-2000:]
                raise StartError(f"{server.name} did not start: {tail}", f"look at {self.folder}")

    def stop(self) -> None:
        """Stop both; what does not go in ten seconds is killed."""
        for server, child in zip(self.servers, self._children, strict=False):
            if child.poll() is None:
                child.send_signal(server.stop_signal)
        for child in self._children:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self._children.clear()
