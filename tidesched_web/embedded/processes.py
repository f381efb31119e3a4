"""The table of processes: what runs, in which order, and how each one is told to stop."""

import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from tidesched_web.embedded.account import Account
from tidesched_web.embedded.asking import Question, web_question
from tidesched_web.embedded.options import WILDCARDS, Options
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
    # It says how it moves on (`common.progress`), and is replaced where it does not.
    watched: bool = False
    # It is asked this now and then, and replaced where it does not answer any more.
    asked: Question | None = None


APPLICATIONS, CLUSTER, SERVERS = 0, 1, 2


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


def applications(options: Options, environment: Mapping[str, str]) -> list[ProcessSpec]:
    """Return web, the workers, and beat."""
    # Django's checks load every page; `make check` runs them once instead of each worker at each start.
    celery = [sys.executable, "-m", "celery", "--quiet", "--skip-checks", "--app", "tidesched_web.celery"]
    worker = [*celery, "worker", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    commands = {
        "web": [
            *(sys.executable, "-m", "uvicorn", "tidesched_web.asgi:application"),
            *(
                "--host",
                options.host,
                "--port",
                str(options.port),
                "--lifespan",
                "off",
                "--no-access-log",
                "--no-proxy-headers",
            ),
            # A page that listens to live events never ends its request by itself.
            # Longer than proxies and pools of clients keep an idle connection: they close it, not we under a request.
            *("--timeout-graceful-shutdown", "3", "--timeout-keep-alive", "75"),
        ],
        # The watchers of the clusters live in this process, so its pool is threads, never a fork.
        "sessions": [
            *worker,
            *("--hostname", "sessions@%h", "--queues", "sessions", "--pool", "threads", "--concurrency", "8"),
        ],
        # What carries intent to the clusters mostly waits for their answers, and waits for nobody's jobs.
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
    reached = "127.0.0.1" if options.host in WILDCARDS else options.host
    return [
        ProcessSpec(
            name=name,
            argv=argv,
            env={**environment, "TIDESCHED_ROLE": name},
            stage=APPLICATIONS,
            watched=name != "web",
            asked=web_question(reached, options.port) if name == "web" else None,
        )
        for name, argv in commands.items()
    ]
