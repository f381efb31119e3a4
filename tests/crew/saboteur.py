"""Kills and stops processes of the installation now and then, and writes each fault into the crew's own log."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.error import URLError
from urllib.request import urlopen

from tests.crew.faults import Fault
from tests.crew.ledger import STOPPED, UNEXPECTED
from tests.crew.scene import Scene, until

WORKERS = ("sessions", "push", "work", "what-if")
SERVERS = ("valkey", "postgres", "simcluster", "web", "web-2")
# A worker that hangs has to be replaced within so long.
REPLACED_SECONDS = 60.0
STOPPED_SECONDS = 8.0
BACK_SECONDS = 120.0
PAUSE_SECONDS = (45.0, 75.0)


def pid_of(scene: Scene, name: str) -> int:
    """The process that runs now; 0 where the installation names none."""
    with suppress(OSError, ValueError, KeyError):
        return int(json.loads((scene.demo.folder / "runtime.json").read_text())["processes"][name]["pid"])
    return 0


def ready(scene: Scene) -> bool:
    """Whether the installation says that all of it answers."""
    with suppress(URLError, OSError), urlopen(f"{scene.address}/readyz", timeout=5) as answer:
        return bool(answer.status == 200)
    return False


def kill(scene: Scene, name: str) -> None:
    """SIGKILL: it is there again before long."""
    pid = pid_of(scene, name)
    fault = scene.faults.begin(name, "SIGKILL", time.time())
    os.kill(pid, signal.SIGKILL)
    fault.end = time.time()
    _back(scene, fault, pid)


def hang(scene: Scene, name: str) -> None:
    """SIGSTOP of a worker: it is replaced by another one, and never continued."""
    pid = pid_of(scene, name)
    fault = scene.faults.begin(name, "SIGSTOP", time.time())
    os.kill(pid, signal.SIGSTOP)
    if not until(lambda: pid_of(scene, name) not in (0, pid), seconds=REPLACED_SECONDS, every=0.5):
        scene.ledger.trouble(
            UNEXPECTED, "saboteur", name, f"a stopped worker was not replaced within {REPLACED_SECONDS} s"
        )
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    fault.end = time.time()
    _back(scene, fault, pid)


def stop(scene: Scene, name: str) -> None:
    """SIGSTOP of a server for a while."""
    pid = pid_of(scene, name)
    fault = scene.faults.begin(name, "SIGSTOP", time.time())
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED_SECONDS)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    fault.end = time.time()
    _back(scene, fault, 0)


def _back(scene: Scene, fault: Fault, pid: int) -> None:
    """The fault is over; the next one waits until all answers again. What is not back in time is a trouble."""
    back = until(lambda: pid_of(scene, fault.part) not in (0, pid) and ready(scene), seconds=BACK_SECONDS, every=0.5)
    fault.back = time.time() if back else None
    if not back and not scene.over():
        detail = f"{fault.what}: not ready again within {BACK_SECONDS:.0f} s"
        scene.ledger.trouble(STOPPED, "saboteur", fault.part, detail)


def plan() -> list[tuple[Callable[[Scene, str], None], str]]:
    """Each part killed and stopped once, in an order that the seed gives; a worker that is stopped hangs for good."""
    every: list[tuple[Callable[[Scene, str], None], str]] = [
        *((kill, name) for name in WORKERS + SERVERS),
        *((hang, name) for name in WORKERS),
        *((stop, name) for name in SERVERS),
    ]
    random.Random(1).shuffle(every)
    return every


def work(scene: Scene) -> None:
    """One fault after another, with time to recover between."""
    choice = random.Random(1)
    for act, name in itertools.cycle(plan()):
        scene.rest(choice.uniform(*PAUSE_SECONDS))
        if scene.over():
            return
        if pid_of(scene, name):
            act(scene, name)
