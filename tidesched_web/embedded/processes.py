"""The table of processes: what runs, in which order, and how each one is stopped."""

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from tidesched_web.embedded.account import Account
from tidesched_web.embedded.hangs import Question, web_question
from tidesched_web.embedded.options import Options
from tidesched_web.embedded.sockets import web_probe
from tidesched_web.env import BASE_DIR, demo_size, text


class ProcessSpec(msgspec.Struct, frozen=True):
    """One process that the supervisor keeps alive."""

    name: str
    argv: list[str]
    env: Mapping[str, str]
    # The stage of the stop: all of stage 0 go first, the servers that they use last.
    stage: int
    stop_signal: int = signal.SIGTERM
    account: Account | None = None
    # What to do before it is started again after a death.
    before_restart: Callable[[], object] | None = None
    cwd: Path = BASE_DIR
    # Open files that it gets besides the usual three.
    keep_fds: tuple[int, ...] = ()
    # It says how it moves on (`common.progress`), and is replaced where it does not.
    watched: bool = False
    # It is asked this now and then, and replaced where it does not answer any more.
    asked: Question | None = None


APPLICATIONS, CLUSTER, SERVERS = 0, 1, 2
# The workers that run the engine all the time.
DECIDING = ("sessions", "what-if")


def simulated_cluster(options: Options, port: int, token_file: Path, environment: Mapping[str, str]) -> ProcessSpec:
    """Return the demo's cluster: a Kubernetes API server of its own, whose day takes ten minutes."""
    return ProcessSpec(
        name="simcluster",
        argv=[
            *(sys.executable, "-m", "tidesched_web.simcluster"),
            *("--data-dir", str(options.data_dir / "simcluster"), "--host", "127.0.0.1", "--port", str(port)),
            *("--token-file", str(token_file), "--rate", text("DEMO_RATE", "144")),
            *("--seed", text("DEMO_SEED", "1"), "--stage", "medium" if demo_size() == "M" else "demo"),
        ],
        env=environment,
        stage=CLUSTER,
    )


def web_processes(options: Options, environment: Mapping[str, str], listening: Sequence[int]) -> list[ProcessSpec]:
    """Return the processes that answer at the one listening socket; each is asked at a socket of its own."""
    specs = []
    for number in range(1, options.web_processes + 1):
        name = "web" if number == 1 else f"web-{number}"
        probe = str(web_probe(options.data_dir, name))
        specs.append(
            ProcessSpec(
                name=name,
                argv=[
                    *(sys.executable, "-m", "tidesched_web.embedded.web", "--probe", probe),
                    *(text for one in listening for text in ("--fd", str(one))),
                ],
                env={**environment, "TIDESCHED_ROLE": "web"},
                stage=APPLICATIONS,
                asked=web_question(probe),
                keep_fds=tuple(listening),
            )
        )
    return specs


def workers(environment: Mapping[str, str], *, compiled: bool = True) -> list[ProcessSpec]:
    """Return the workers and beat; until the engine is ``compiled`` those that run it begin with the interpreter."""
    # Django's checks load every page; `make check` runs them once instead of each worker at each start.
    celery = [sys.executable, "-m", "celery", "--quiet", "--skip-checks", "--app", "tidesched_web.celery"]
    worker = [*celery, "worker", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    commands = {
        # The watchers of the clusters live in this process, so its pool is threads, never a fork.
        "sessions": [
            *worker,
            *("--hostname", "sessions@%h", "--queues", "sessions", "--pool", "threads", "--concurrency", "8"),
        ],
        # What carries intent to the clusters mostly waits for their answers, and waits for no job.
        "push": [
            *worker,
            *("--hostname", "push@%h", "--queues", "push", "--pool", "threads", "--concurrency", "4"),
            *("--prefetch-multiplier", "1"),
        ],
        "work": [
            *worker,
            *("--hostname", "work@%h", "--queues", "work", "--pool", "prefork", "--concurrency", "2"),
            *("--prefetch-multiplier", "1"),
        ],
        # One process that keeps the latest snapshots loaded, so that an edit is tried out at once. It is ended where a
        # session that is tried out does not end, or when it has grown too large.
        "what-if": [
            *worker,
            *("--hostname", "what-if@%h", "--queues", "what-if", "--pool", "prefork", "--concurrency", "1"),
            *("--prefetch-multiplier", "1", "--max-memory-per-child", "4000000"),
            *("--soft-time-limit", "60", "--time-limit", "120"),
        ],
        "beat": [*celery, "beat", "--loglevel", "WARNING", "--scheduler", "celery.beat:Scheduler"],
    }
    return [
        ProcessSpec(
            name=name,
            argv=argv,
            env={
                **environment,
                "TIDESCHED_ROLE": name,
                **({} if compiled or name not in DECIDING else {"NUMBA_DISABLE_JIT": "1"}),
            },
            stage=APPLICATIONS,
            watched=True,
        )
        for name, argv in commands.items()
    ]
