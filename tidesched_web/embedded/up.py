"""`make up`: from a data folder to a running TideSched, and back to nothing at the end."""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from tidesched_web.common.problems import address
from tidesched_web.embedded import sockets
from tidesched_web.embedded.console_output import Output
from tidesched_web.embedded.data_folder import DataFolder, write_privately
from tidesched_web.embedded.errors import StartError
from tidesched_web.embedded.hangs import ask, web_question
from tidesched_web.embedded.options import Options, child_environment, free_port, listen, read_options
from tidesched_web.embedded.postgres import Postgres
from tidesched_web.embedded.prepared import PREPARED_FILE, is_prepared, kernels_are_current
from tidesched_web.embedded.processes import (
    APPLICATIONS,
    DECIDING,
    SERVERS,
    ProcessSpec,
    simulated_cluster,
    web_processes,
    workers,
)
from tidesched_web.embedded.supervisor import Supervisor, how_it_ended
from tidesched_web.embedded.valkey import Valkey, refused
from tidesched_web.env import Runtime

ADMIN_FILE = "admin.json"
PEOPLE_FILE = "demo-people.json"
SERVER_PATIENCE_SECONDS = 30.0
_DEATHS_BEFORE_READY = 3
_DEATHS_BEFORE_BROKEN = 5
_TELL_AFTER_SECONDS = 15.0


def up() -> None:
    """Run TideSched until a signal ends it. Raises StartError: where it cannot start; whatever was started is stopped
    again."""
    options = read_options()
    folder = DataFolder(options.data_dir)
    folder.open()
    try:
        with contextlib.ExitStack() as stack:
            listening = [stack.enter_context(one) for one in listen(options.host, options.port)]
            folder.make_secrets()
            asyncio.run(_Installation(options, folder, listening).run())
    finally:
        folder.close()


class _Installation:
    """The steps of a start, in order."""

    def __init__(self, options: Options, folder: DataFolder, listening: list[socket.socket]) -> None:
        self.options = options
        self.listening = listening
        self.folder = folder
        self.output = Output(options.data_dir / "logs" / "tidesched.log")
        self.runtime = Runtime(
            database_url=options.database_url or sockets.database_url(options.data_dir),
            # An external owner's password is for the release step alone, and stands in no file.
            database_owner_url="" if options.database_url else options.database_owner_url,
            redis_url=options.redis_url or sockets.redis_url(options.data_dir),
            web_url=options.web_url,
        )
        self.supervisor = Supervisor(folder, self.output, self.runtime)
        self.servers: list[Postgres | Valkey] = []
        self.probes: list[str] = []  # where each web process is asked
        self.prepared = options.data_dir / PREPARED_FILE

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        # By itself the loop would write to standard error, which may have no reader.
        loop.set_exception_handler(lambda _loop, context: self.output.say(f"supervisor: {context['message']}"))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup means it
                loop.add_signal_handler(number, self.supervisor.request_stop)
        try:
            await self._start()
            await self.supervisor.stopping.wait()
        except _StoppedWhileStarting:
            pass
        finally:
            self.output.say("stopping")
            for one in self.listening:
                one.close()
            await self.supervisor.stop()
            self._clean()
            self.output.say("stopped")
            self.output.flush(patience=1.0)

    async def _start(self) -> None:
        self.output.say(f"TideSched starts; its data is in {self.options.data_dir}")
        admin_file = self.options.data_dir / ADMIN_FILE
        first = not admin_file.exists()
        await self._start_servers()
        environment = self._environment()
        if self.options.demo:
            environment = self._start_simulated_cluster(environment)
        compiled = kernels_are_current(environment)
        self.prepared.unlink(missing_ok=True)
        preparing = asyncio.create_task(self._prepare(environment))
        await asyncio.gather(preparing, self._begin_applications(environment, preparing, compiled=compiled))
        with self.output.step("web, workers and beat"):
            await self._until_ready()
        self._announce(admin_file, first=first)
        self._announce_people(first=first)
        if not compiled:
            await self._compile(environment)

    async def _start_servers(self) -> None:
        if not self.options.database_url:
            self.servers.append(Postgres(self.options.data_dir))
        if not self.options.redis_url:
            self.servers.append(Valkey(self.options.data_dir))
        if self.options.redis_url:
            await self._until_redis_answers()
        for server in self.servers:
            with self.output.step(f"{server.name}: files"):
                server.prepare()
            self.supervisor.keep(
                ProcessSpec(
                    name=server.name,
                    argv=server.command(),
                    env=server.environment(),
                    stage=SERVERS,
                    stop_signal=server.stop_signal,
                    account=server.account,
                    before_restart=server.prepare,
                    cwd=Path("/"),
                    asked=server.question,
                )
            )
        for server in self.servers:
            with self.output.step(f"{server.name}: answers"):
                await self._until_server_answers(server)

    async def _until_server_answers(self, server: Postgres | Valkey) -> None:
        deadline = asyncio.get_running_loop().time() + SERVER_PATIENCE_SECONDS
        while not server.ready():
            self._go_on()
            late = asyncio.get_running_loop().time() > deadline
            if late or self.supervisor.deaths.get(server.name, 0) >= _DEATHS_BEFORE_READY:
                raise StartError(
                    f"{server.name} does not start on {server.folder}; its own last lines are above",
                    "docs/operations.md, Recovery, lists what may be wrong",
                )
            await asyncio.sleep(0.05)

    async def _until_redis_answers(self) -> None:
        deadline = asyncio.get_running_loop().time() + SERVER_PATIENCE_SECONDS
        while refusal := refused(self.options.redis_url):
            self._go_on()
            if asyncio.get_running_loop().time() > deadline:
                raise StartError(
                    f"Redis at {address(self.options.redis_url)} does not answer: {refusal}",
                    "start it or correct REDIS_URL; without the variable TideSched brings a server of its own",
                )
            await asyncio.sleep(0.3)

    def _environment(self) -> dict[str, str]:
        return child_environment(
            self.options,
            {
                "DATABASE_URL": self.runtime.database_url,
                "REDIS_URL": self.runtime.redis_url,
                "TIDESCHED_PROGRESS_DIR": str(self.supervisor.hangs.folder),
            },
        )

    def _start_simulated_cluster(self, environment: dict[str, str]) -> dict[str, str]:
        folder = self.options.data_dir / "simcluster"
        folder.mkdir(mode=0o700, exist_ok=True)
        token_file = folder / "token"
        if not token_file.exists():
            write_privately(token_file, secrets.token_urlsafe(32) + "\n")
        port_file = folder / "port"
        port = free_port(int(port_file.read_text()) if port_file.exists() else 0)
        write_privately(port_file, f"{port}\n")
        self.runtime.simcluster_url = f"http://127.0.0.1:{port}"
        self.runtime.simcluster_token_file = str(token_file)
        self.supervisor.keep(simulated_cluster(self.options, port, token_file, environment))
        return environment | {
            "SIMCLUSTER_URL": self.runtime.simcluster_url,
            "SIMCLUSTER_TOKEN_FILE": self.runtime.simcluster_token_file,
        }

    async def _until_simulated_cluster_answers(self) -> None:
        """The first session would else find no server there, and say so."""
        deadline = asyncio.get_running_loop().time() + SERVER_PATIENCE_SECONDS
        server = urlsplit(self.runtime.simcluster_url)
        while self.options.demo and asyncio.get_running_loop().time() < deadline:
            self._go_on()
            with contextlib.suppress(OSError):
                _reader, writer = await asyncio.open_connection(server.hostname, server.port)
                writer.close()
                return
            await asyncio.sleep(0.1)

    async def _begin_applications(
        self, environment: dict[str, str], preparing: asyncio.Task[None], *, compiled: bool
    ) -> None:
        """Pages answer as soon as all but the demo is there."""
        begins_at_once = is_prepared(self.options.database_owner_url or self.runtime.database_url)
        while not (begins_at_once or preparing.done() or self.prepared.exists()):
            self._go_on()
            await asyncio.sleep(0.5)
        if preparing.done():
            preparing.result()
        await self._until_simulated_cluster_answers()
        listening = [one.fileno() for one in self.listening]
        web = web_processes(self.options, environment, listening)
        self.probes = [spec.asked.address for spec in web if spec.asked]
        for spec in [*web, *workers(environment, compiled=compiled)]:
            self.supervisor.keep(spec)

    async def _compile(self, environment: dict[str, str]) -> None:
        """One process compiles the engine; then the workers that run it begin again with what it made."""
        argv = ["nice", sys.executable, "manage.py", "prepare", "--build-only"]
        spec = ProcessSpec(name="prepare", argv=argv, env=environment, stage=APPLICATIONS)
        with self.output.step("the scheduler compiled, beside its work"):
            await self.supervisor.run_once(spec)
        if self.supervisor.stopping.is_set():
            return
        if not kernels_are_current(environment):
            self.output.say("the scheduler is not compiled, for the reason above: sessions compile what they need")
        for worker in workers(environment, compiled=True):
            if worker.name in DECIDING:
                self.supervisor.replace(worker)

    async def _prepare(self, environment: dict[str, str]) -> None:
        password = os.environ.get("ADMIN_PASSWORD", "")
        spec = ProcessSpec(
            name="prepare",
            argv=[sys.executable, "manage.py", "prepare"],
            env=environment
            | {"DATABASE_OWNER_URL": self.options.database_owner_url}
            | ({"ADMIN_PASSWORD": password} if password else {}),
            stage=APPLICATIONS,
        )
        with self.output.step("schema, first account, static files, demo"):
            status = await self.supervisor.run_once(spec)
            self._go_on()
            if status != 0:
                raise StartError(
                    f"the installation could not be made ready: {how_it_ended(status)}; its own last lines are above",
                    f"all lines are in {self.options.data_dir / 'logs' / 'tidesched.log'}",
                )

    async def _until_ready(self) -> None:
        """Wait until each web process says so: any of them may accept the next connection."""
        loop = asyncio.get_running_loop()
        said = loop.time()
        while True:
            self._go_on()
            missing = [reason for probe in self.probes if (reason := await _missing(probe))]
            if not missing:
                return
            for name, deaths in self.supervisor.deaths.items():
                if deaths >= _DEATHS_BEFORE_BROKEN:
                    raise StartError(
                        f"{name} ends each time it is started; its own last lines are above",
                        "if packages are missing run `make clean`, then `make up`",
                    )
            if loop.time() - said > _TELL_AFTER_SECONDS:
                said = loop.time()
                self.output.say(f"  ...  not ready yet: {missing[0]}")
            await asyncio.sleep(0.3)

    def _announce(self, admin_file: Path, *, first: bool) -> None:
        self.output.say(f"TideSched is ready at {self.options.web_url}")
        if not admin_file.exists():
            return
        account = msgspec.json.decode(admin_file.read_bytes(), type=dict[str, str])
        self.output.say(f"Admin user: {account['username']}")
        if "password" not in account:
            self.output.say("Admin password: changed since; `manage.py user password admin` sets a new one")
        elif first:
            self.output.plainly(f"Admin password: {account['password']}")
        else:
            self.output.say(f"Admin password: see {admin_file}")

    def _announce_people(self, *, first: bool) -> None:
        """The demo's accounts: each with its password at the first start, and where they stand later."""
        file = self.options.data_dir / PEOPLE_FILE
        if not self.options.demo or not file.exists():
            return
        people = msgspec.json.decode(file.read_bytes(), type=list[dict[str, str]])
        if not first:
            names = ", ".join(person["username"] for person in people)
            self.output.say(f"Demo accounts: {names}; passwords: see {file}")
            return
        self.output.say("Demo accounts, offered on the sign-in page too:")
        for person in people:
            self.output.plainly(f"  {person['username']:<12} {person['password']}   ({person['part']})")

    def _go_on(self) -> None:
        if self.supervisor.stopping.is_set():
            raise _StoppedWhileStarting

    def _clean(self) -> None:
        for server in self.servers:
            server.clean()
        place = sockets.socket_dir(self.options.data_dir)
        for probe in place.glob("web*.sock"):
            probe.unlink(missing_ok=True)
        for folder in (sockets.postgres_dir(self.options.data_dir), place):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


class _StoppedWhileStarting(Exception):
    """A signal came before the start was done."""


class _Readiness(msgspec.Struct):
    missing: dict[str, str] = {}


async def _missing(probe: str) -> str:
    """What a web process lacks to be ready; nothing where it is ready."""
    head, _blank, body = (await ask(web_question(probe, "/readyz"), -1)).partition(b"\r\n\r\n")
    if head.split(b" ")[1:2] == [b"200"]:
        return ""
    with contextlib.suppress(msgspec.DecodeError):
        return "; ".join(msgspec.json.decode(body, type=_Readiness).missing.values()) or "it has just become ready"
    return "the web process does not answer"
