"""The whole of `make up`, without the demo: start, ready, kills, stop, and the next start."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import redis

from tests.waiting import PATIENCE, until
from tidesched_web.common import alive
from tidesched_web.embedded import identity, sockets
from tidesched_web.env import BASE_DIR

pytestmark = [pytest.mark.timeout(600)]

# The first start may compile the scheduler.
START_PATIENCE = 500.0
PROCESSES = {"postgres", "valkey", "web", "web-2", "sessions", "push", "work", "what-if", "beat"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Installation:
    """One data folder, and the processes that run on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.lines: list[str] = []
        self.supervisor: subprocess.Popen[str] | None = None
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("DATABASE_", "REDIS_"))}
        for name in ("SECRET_KEY", "TIDESCHED_KEYS", "TIDESCHED_EMBEDDED", "ALLOWED_HOSTS"):
            kept.pop(name, None)
        self.env = kept | {"DATA_DIR": str(folder), "PORT": str(self.port), "DEMO": "0", "WEB_PROCESSES": "2"}
        self.env.setdefault("NUMBA_CACHE_DIR", str(BASE_DIR / ".cache" / "kernels"))

    def start(self, **env: str) -> subprocess.Popen[str]:
        if self.supervisor and self.supervisor.poll() is None:  # a test that failed left it
            self.stop()
        self.lines = []
        command = [sys.executable, "-m", "tidesched_web.embedded", "up"]
        self.supervisor = subprocess.Popen(
            command, cwd=BASE_DIR, env=self.env | env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        threading.Thread(target=self._read, args=(self.supervisor,), daemon=True).start()
        return self.supervisor

    def _read(self, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        lines = self.lines
        for line in child.stdout:
            lines.append(line.rstrip("\n"))

    def stop(self) -> int:
        assert self.supervisor is not None
        self.supervisor.send_signal(signal.SIGTERM)
        return self.supervisor.wait(PATIENCE)

    def until(self, condition: Callable[[], object]) -> None:
        until(condition, START_PATIENCE, story=lambda: "\n".join(self.lines[-60:]))

    def said(self, beginning: str) -> list[str]:
        return [line for line in self.lines if line.startswith(beginning)]

    def until_ready(self) -> None:
        """Note on the way the first process of each name, and whether it does without the compiler."""
        self.first: dict[str, tuple[int, bool]] = {}
        self.until(lambda: self._noted() and self.said("Admin password"))

    def _noted(self) -> bool:
        for name, process in self.processes().items():
            # Read again and again: one that is only just being made has nothing of its own yet.
            if self.first.get(name, (process["pid"],))[0] == process["pid"]:
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    self.first[name] = process["pid"], interprets(process["pid"])
        return True

    def are_ready(self) -> bool:
        """Whether each web process is: so many connections that both accept some."""
        return all(self.is_ready() for _question in range(20))

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=PATIENCE) as answer:
                return answer.status == 200
        except OSError:
            return False

    def forget_signs_of_life(self) -> None:
        """Let only signs count that come from now on."""

        def forgotten() -> bool:
            with contextlib.suppress(redis.RedisError):
                with redis.Redis.from_url(sockets.redis_url(self.folder)) as connection:
                    for key in connection.scan_iter("*alive:*"):
                        connection.delete(key)
                return True
            return False

        self.until(forgotten)

    def all_have_spoken(self) -> bool:
        with contextlib.suppress(redis.RedisError), redis.Redis.from_url(sockets.redis_url(self.folder)) as connection:
            return len(list(connection.scan_iter("*alive:*"))) == len(alive.ROLES)
        return False

    def processes(self) -> dict[str, dict]:
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            return json.loads((self.folder / "runtime.json").read_text()).get("processes", {})
        return {}

    def leftovers(self) -> list[Path]:
        """Processes that hold the data folder's lock, and sockets."""
        sockets = [path for path in self.folder.rglob("*") if path.is_socket()]
        lock = str(self.folder / "lock")
        holders = []
        for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
            with contextlib.suppress(OSError):
                if str(descriptor.readlink()) == lock:
                    holders.append(descriptor)
        return sockets + holders


def kernels_without_stamp(compiled: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As if nothing was compiled; but what was is found again, instead of minutes of compiling."""
    folder = tmp_path_factory.mktemp("kernels")

    def copy(source: str, target: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # of another process that writes there
            shutil.copy2(source, target)

    if Path(compiled).is_dir():
        shutil.copytree(
            compiled, folder, ignore=shutil.ignore_patterns("engine.stamp"), copy_function=copy, dirs_exist_ok=True
        )
    return folder


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    made = Installation(tmp_path_factory.mktemp("up") / "data")
    made.env["NUMBA_CACHE_DIR"] = str(kernels_without_stamp(made.env["NUMBA_CACHE_DIR"], tmp_path_factory))
    yield made
    if made.supervisor and made.supervisor.poll() is None:
        made.stop()


def test_first_start_is_ready_and_tells_how_to_sign_in(installation: Installation) -> None:
    installation.start()
    installation.until_ready()
    account = json.loads((installation.folder / "admin.json").read_text())
    assert installation.said("TideSched is ready") == [f"TideSched is ready at http://127.0.0.1:{installation.port}"]
    assert installation.said("Admin user") == ["Admin user: admin"]
    assert installation.said("Admin password") == [f"Admin password: {account['password']}"]
    for name in ("admin.json", "runtime.json", "secret_key", "tidesched_keys"):
        assert (installation.folder / name).stat().st_mode & 0o777 == 0o600, name
    assert account["password"] not in (installation.folder / "logs" / "tidesched.log").read_text()
    assert set(installation.processes()) - {"prepare"} == PROCESSES
    assert installation.are_ready()


def interprets(pid: int) -> bool:
    return b"NUMBA_DISABLE_JIT=1" in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def test_sessions_begin_without_the_compiler_and_again_with_what_it_made(installation: Installation) -> None:
    assert {name for name, (_pid, interpreted) in installation.first.items() if interpreted} == {"sessions", "what-if"}

    def begun_again() -> bool:
        now = installation.processes()
        replaced = {name for name, process in now.items() if process["pid"] != installation.first[name][0]}
        return now.keys() == PROCESSES and replaced == {"sessions", "what-if"}

    installation.until(begun_again)
    assert not any(interprets(process["pid"]) for process in installation.processes().values())
    assert [line for line in installation.lines if "starts again" in line] == []
    installation.forget_signs_of_life()
    installation.until(installation.all_have_spoken)
    installation.until(installation.are_ready)


def niceness(pid: int) -> list[int]:
    """Of all threads of a process, and of those of its children; the process itself first."""
    tasks = Path(f"/proc/{pid}/task")
    children = [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    threads = [pid, *(number for number in (int(task.name) for task in tasks.iterdir()) if number != pid)]
    mine = [os.getpriority(os.PRIO_PROCESS, number) for number in threads]
    return mine + [one for child in children for one in niceness(child)]


def test_where_processors_are_scarce_pages_go_first(installation: Installation) -> None:
    found = {name: niceness(process["pid"]) for name, process in installation.processes().items()}
    pages = found["web"][0]
    most = {name: max(one) - pages for name, one in found.items()}
    assert {name: behind for name, behind in most.items() if behind} == {"sessions": 3, "what-if": 5, "work": 10}
    assert found["sessions"][0] == most["sessions"] + pages, "its threads begin as its first one is"


def test_a_command_finds_the_servers_by_the_data_folder(installation: Installation) -> None:
    command = [sys.executable, "manage.py", "migrate", "--check"]
    done = subprocess.run(command, cwd=BASE_DIR, env=installation.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_second_start_on_the_folder_is_refused(installation: Installation) -> None:
    command = [sys.executable, "-m", "tidesched_web.embedded", "up"]
    done = subprocess.run(command, cwd=BASE_DIR, env=installation.env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "already runs on" in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.proof
@pytest.mark.parametrize("name", ["web", "web-2"])
def test_while_one_web_process_stands_still_the_other_answers(installation: Installation, name: str) -> None:
    pid = installation.processes()[name]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        assert [installation.is_ready() for _ in range(20)] == [True] * 20
    finally:
        os.kill(pid, signal.SIGCONT)


class Visitor:
    """The first account, in a browser and by REST. What takes a minute counts as no answer."""

    def __init__(self, installation: Installation) -> None:
        address = f"http://127.0.0.1:{installation.port}"
        account = json.loads((installation.folder / "admin.json").read_text())
        command = [sys.executable, "manage.py", "token", "create", "admin", "--scope", "admin"]
        token = subprocess.run(command, cwd=BASE_DIR, env=installation.env, capture_output=True, text=True, check=True)
        bearer = {"Authorization": f"Bearer {token.stdout.strip()}"}
        self.rest = httpx.Client(base_url=f"{address}/api/v1", headers=bearer, timeout=PATIENCE)
        self.pages = httpx.Client(base_url=address, timeout=PATIENCE)
        self.pages.get("/sign-in/")
        form = {"username": "admin", "password": account["password"]}
        form["csrfmiddlewaretoken"] = self.pages.cookies["csrftoken"]
        assert self.pages.post("/sign-in/", data=form).status_code == 302

    def make(self, slug: str) -> httpx.Response:
        body = {"slug": slug, "reason": "a new department"}
        return self.rest.post("/tenants/", json=body, headers={"Idempotency-Key": f"make-{slug}"})

    def knows_that_the_database_is_away(self) -> bool:
        """Each of the two web processes may answer, and finds it out for itself."""
        address = self.pages.base_url.join("/readyz")
        return all("database" in httpx.get(address, timeout=PATIENCE).json()["missing"] for _ in range(20))

    def tenants(self) -> list[str]:
        return [row["slug"] for row in self.rest.get("/tenants/").json()["results"]]


@pytest.mark.proof
def test_while_the_database_stands_still_each_request_is_refused_and_no_write_is_lost(
    installation: Installation,
) -> None:
    visitor = Visitor(installation)
    assert (visitor.pages.get("/tenants/").status_code, visitor.tenants()) == (200, [])
    first = installation.processes()["postgres"]["pid"]
    stopped = {first: identity.started(first)} | identity.descendants(first)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(4) as threads:
        try:
            under_way = [threads.submit(visitor.make, f"early-{number}") for number in range(4)]
            installation.until(visitor.knows_that_the_database_is_away)
            answers = [visitor.pages.get("/tenants/"), visitor.rest.get("/tenants/"), visitor.make("late")]
            assert all(identity.is_same(pid, start) for pid, start in stopped.items()), "it was replaced before"
        finally:
            for pid, start in stopped.items():
                identity.kill_if_same(pid, start, signal.SIGCONT)
        assert {early.result().status_code for early in under_way} <= {201, 503}
    assert [answer.status_code for answer in answers] == [503] * len(answers)
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in answers)
    text = "The database does not answer at the moment. Nothing was changed; try again."
    assert text in answers[0].text
    assert [answer.json()["detail"] for answer in answers[1:]] == [text] * 2

    def again() -> bool:
        return installation.is_ready() and visitor.make("late").status_code == 201

    installation.until(again)
    assert visitor.pages.get("/tenants/").status_code == 200
    # A request that was given up may have been under way: under its key it is made once, whatever became of it.
    for number in range(4):
        installation.until(lambda slug=f"early-{number}": visitor.make(slug).status_code == 201)
    assert sorted(visitor.tenants()) == ["early-0", "early-1", "early-2", "early-3", "late"]


@pytest.mark.parametrize(
    "name",
    [name if name == "sessions" else pytest.param(name, marks=pytest.mark.proof) for name in sorted(PROCESSES)],
)
def test_each_killed_process_comes_back(installation: Installation, name: str) -> None:
    before = installation.processes()[name]["pid"]
    os.kill(before, signal.SIGKILL)
    installation.until(lambda: installation.processes().get(name, {}).get("pid") not in {None, before})
    installation.forget_signs_of_life()
    installation.until(installation.all_have_spoken)
    installation.until(installation.is_ready)


def test_sigterm_leaves_no_process_and_no_socket(installation: Installation) -> None:
    pids = [process["pid"] for process in installation.processes().values()]
    assert installation.stop() == 0
    assert [pid for pid in pids if identity.started(pid)] == []
    assert installation.leftovers() == []
    assert not (installation.folder / "runtime.json").exists()


def test_the_second_start_does_nothing_again(installation: Installation) -> None:
    installation.start()
    installation.until_ready()
    steps = [line.partition("|")[2].strip() for line in installation.said("prepare")]
    done = [step.partition(" (")[0] for step in steps if not step.startswith("partitions")]  # those go by the hour
    assert done == [
        "catalogues: up to date",
        "static files: up to date",
        "schema: up to date",
        "rights of the application's role: up to date",
        "encryption keys: up to date",
        "audit log: up to date",
        "first account: up to date",
        "identity provider: up to date",
    ]
    assert installation.said("Admin password") == [f"Admin password: see {installation.folder / 'admin.json'}"]
    assert not any(interpreted for _pid, interpreted in installation.first.values()), "compiled by now"


@pytest.mark.proof
def test_after_a_kill_of_the_supervisor_a_new_start_recovers(installation: Installation) -> None:
    assert installation.supervisor is not None
    installation.supervisor.kill()
    installation.supervisor.wait()
    installation.start()
    installation.until_ready()
    assert installation.are_ready()


@pytest.mark.proof
def test_after_a_kill_of_all_a_new_start_recovers(installation: Installation) -> None:
    assert installation.supervisor is not None
    pids = [process["pid"] for process in installation.processes().values()]
    for pid in (installation.supervisor.pid, *pids):
        os.kill(pid, signal.SIGKILL)
    installation.supervisor.wait()
    installation.start()
    installation.until_ready()
    assert installation.are_ready()


def test_make_down_stops_it(installation: Installation) -> None:
    assert installation.supervisor is not None
    command = [sys.executable, "-m", "tidesched_web.embedded", "down"]
    done = subprocess.run(command, cwd=BASE_DIR, env=installation.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert installation.supervisor.wait(PATIENCE) == 0
    assert installation.leftovers() == []


@pytest.mark.proof
def test_a_signal_during_the_start_stops_it(installation: Installation) -> None:
    installation.start()
    installation.until(lambda: installation.said("prepare"))
    assert installation.stop() == 0
    assert installation.leftovers() == []


def test_a_start_that_is_killed_for_memory_says_so(installation: Installation) -> None:
    child = installation.start()
    installation.until(lambda: "prepare" in installation.processes())
    os.kill(installation.processes()["prepare"]["pid"], signal.SIGKILL)
    assert child.wait(PATIENCE) == 1
    installation.until(lambda: installation.said("hint: "))
    (error,) = installation.said("error: ")
    assert "could not be made ready: killed from outside (signal 9), probably for too little memory" in error
    assert "TideSched needs about 2 GB" in error
    assert installation.leftovers() == []


def test_a_port_in_use_stops_nothing_else(installation: Installation) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        child = installation.start(PORT=str(taken.getsockname()[1]))
        assert child.wait(PATIENCE) == 1
    installation.until(lambda: installation.said("error: port"))
    assert installation.said("hint: ")
    assert installation.leftovers() == []


def test_a_schema_of_a_newer_version_is_refused(installation: Installation) -> None:
    import psycopg

    from tidesched_web.embedded.child import spawn
    from tidesched_web.embedded.postgres import Postgres

    server = Postgres(installation.folder)
    server.prepare()
    child = spawn(
        server.command(), env=server.environment(), account=server.account, output=subprocess.DEVNULL, cwd=Path("/")
    )
    installation.until(server.ready)
    with psycopg.connect(server.owner_url) as connection:
        connection.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('quota', '9999_from_the_future', now())"
        )
    child.send_signal(server.stop_signal)
    child.wait()

    started = installation.start()
    assert started.wait(PATIENCE) == 1
    installation.until(lambda: installation.said("hint: "))
    assert any("newer TideSched" in line and "9999_from_the_future" in line for line in installation.lines)
    assert installation.leftovers() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=90m", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root mounts a disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(file: Path) -> None:
    with contextlib.suppress(OSError), file.open("ab", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))


@pytest.mark.proof
def test_a_full_disk_is_told_and_all_comes_back_when_there_is_room(small_disk: Path) -> None:
    made = Installation(small_disk / "data")
    filler = small_disk / "filler"

    def missing() -> dict[str, str]:
        with contextlib.suppress(OSError, httpx.HTTPError):
            return httpx.get(f"http://127.0.0.1:{made.port}/readyz", timeout=PATIENCE).json()["missing"]
        return {}

    try:
        made.start()
        made.until_ready()
        fill(filler)
        made.until(lambda: "make room" in missing().get("disk", ""))
        for name in ("postgres", "sessions", "beat"):
            os.kill(made.processes()[name]["pid"], signal.SIGKILL)
        made.until(lambda: made.said("postgres ended"))
        fill(filler)
        made.until(lambda: made.said("postgres cannot start"))
        assert str(made.folder) in missing()["disk"]
        assert len([line for line in made.lines if "make room" in line]) == 1
        filler.unlink()
        made.until(made.are_ready)
        fill(filler)
        command = [sys.executable, "-m", "tidesched_web.embedded", "down"]
        done = subprocess.run(command, cwd=BASE_DIR, env=made.env, capture_output=True, text=True, check=False)
        assert done.stdout == "TideSched has stopped\n", done.stderr
    finally:
        if made.supervisor and made.supervisor.poll() is None:
            made.supervisor.kill()
