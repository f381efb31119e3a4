"""A5: why each of a thousand gangs waits, in a full cluster of 10,000 nodes."""

from __future__ import annotations

from collections.abc import Callable

from bench.clock import clock
from bench.clusters import CARDS
from bench.storms import Storm, group, objects, pod, queue
from scheduler_core import Result, SnapshotBuilder, Workspace, parse_policy, run_session
from scheduler_core.serde.policy.founding import FOUNDING_POLICY

NOW = 1_767_225_600.0
SCENE = Storm(10_000, 8, 0, 0)
GANGS, MEMBERS, CLASSES, QUEUES = 1_000, 8, 50, 10
# Every tenth queue has no quota left, so that two kinds of reasons are asked for.
SMALL_QUOTA = "{" + ", ".join(f'"{card}": {MEMBERS - 1}' for card in CARDS) + "}"
LARGE_QUOTA = "{" + ", ".join(f'"{card}": 80000' for card in CARDS) + "}"


def reasons() -> Callable[[], float]:
    """Measure the part of a session that finds the reasons."""
    builder = SnapshotBuilder()
    for item in objects(SCENE):
        builder.upsert(item)
    for number in range(QUEUES):
        quota = SMALL_QUOTA if number == 0 else LARGE_QUOTA
        builder.upsert(queue(f"waiting-{number}", quota, 20000, reclaimable=True))
    for number in range(GANGS):
        name, kind = f"waits-{number:04}", number % CLASSES
        builder.upsert(group(name, f"waiting-{number % QUEUES}", MEMBERS, "Job", "Inqueue"))
        for member in range(MEMBERS):
            builder.upsert(pod(f"{name}-{member}", name, kind % len(CARDS), 1, cpu=1 + kind))
    snapshot, policy, workspace = builder.build(), parse_policy(FOUNDING_POLICY), Workspace()

    def measure() -> float:
        result, _ = run_session(snapshot, policy, now=NOW, workspace=workspace, timer=clock)
        check(result)
        return result.timings_ms["reasons"] / 1000

    return measure


def check(result: Result) -> None:
    """Each gang has one reason, with numbers and those who hold what it lacks."""
    codes = {reason.podgroup: reason.code.value for reason in result.reasons}
    assert len(codes) == GANGS, "a waiting gang has no reason"
    assert not result.evictions, "training took something back"
    for reason in result.reasons:
        number = int(reason.podgroup.rpartition("-")[2])
        expected = ("WaitingForQuota", "ExceedsMaxQuota") if number % QUEUES == 0 else ("WaitingForCards",)
        assert reason.code.value in expected, f"{reason.podgroup}: {reason.code.value}"
        assert reason.numbers.requested == MEMBERS, "the request is not in the numbers"
        assert reason.numbers.position, "no place in the queue"
        assert number % QUEUES == 0 or len(reason.numbers.holders or ()) == 10, "no gang holds the cards"
