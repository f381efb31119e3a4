"""A17: cost over size, up to 100,000 nodes and 1,000,000 tasks; the sessions of A1, and the memory of the process."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from functools import partial

from bench.clock import clock
from bench.snapshots import BORN, GANG, Size, waiting
from scheduler_core import Workspace, parse_policy, run_session

TASKS = (1_000, 10_000, 100_000, 1_000_000)
TASKS_A_NODE = 10


def cost_at(tasks: int, policy: str) -> Callable[[], Callable[[], float]]:
    """A session that finds a place for so many tasks; its result is counted, and not read."""
    return partial(_prepare, Size(str(tasks), tasks // TASKS_A_NODE, tasks), policy)


def _prepare(size: Size, policy: str) -> Callable[[], float]:
    snapshot, parsed = waiting(size), parse_policy(policy)
    built = Workspace()
    built.load(snapshot)
    run_session(snapshot, parsed, now=BORN, workspace=built.fork())

    def measure() -> float:
        workspace = built.fork()
        start = clock()
        result, _ = run_session(snapshot, parsed, now=BORN, workspace=workspace)
        taken = clock() - start
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"       {size.tasks} tasks: {taken * 1e6 / size.tasks:.2f} us each, {memory:.2f} GiB", file=sys.stderr)
        assert len(result.binds) == size.tasks // GANG * GANG, f"{len(result.binds)} tasks were placed"
        return taken * 1000

    return measure
