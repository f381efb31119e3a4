"""A1: a cold session on a built snapshot: the tables are loaded, nothing has been decided yet, kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bench import reference
from bench.checks import check
from bench.clock import clock
from bench.snapshots import BORN, CLASSES, GANG, Size, waiting
from scheduler_core import Workspace, parse_policy, run_session
from scheduler_core.model.decision import Bind, Result
from scheduler_core.model.policy import Policy
from scheduler_core.model.snapshot import Snapshot
from scheduler_core.serde.policy.founding import FOUNDING_POLICY

# Sizes at which each decision is worked out a second time, plainly.
COMPARED = ("S", "M")


def cold_session(size: Size, classes: int = CLASSES) -> Callable[[], Callable[[], float]]:
    """All tasks of a size wait for an empty cluster, and all of them get a place."""
    return partial(_prepare, size, classes)


def differences(snapshot: Snapshot, result: Result) -> list[str]:
    """Pods that the plain scheduler of :mod:`bench.reference` puts elsewhere."""
    ours = {bind.pod: (bind.node, bind.card, bind.card_indices) for bind in result.binds}
    theirs = reference.decide(snapshot)
    return sorted(pod for pod in ours.keys() | theirs.keys() if ours.get(pod) != theirs.get(pod))


def _prepare(size: Size, classes: int) -> Callable[[], float]:
    snapshot, policy = waiting(size, classes), parse_policy(FOUNDING_POLICY)
    built = Workspace()
    built.load(snapshot)
    result, _ = run_session(snapshot, policy, now=BORN, workspace=built.fork(), check=True)
    check(snapshot, result, placed=size.tasks // GANG * GANG)
    if size.name in COMPARED:
        wrong = differences(snapshot, result)
        assert not wrong, f"the plain scheduler decides otherwise: {wrong[:5]}"
    decided = list(result.binds)

    return lambda: session_seconds(snapshot, policy, built, decided)


def session_seconds(snapshot: Snapshot, policy: Policy, built: Workspace, decided: list[Bind]) -> float:
    """Time of a session with loaded tables, which decides what it decided before."""
    workspace = built.fork()
    start = clock()
    result, _ = run_session(snapshot, policy, now=BORN, workspace=workspace)
    taken = clock() - start
    assert list(result.binds) == decided, "the same session decided something else"
    return taken
