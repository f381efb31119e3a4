"""The benchmarks, each under the name of its target: what is measured, and what must be true of the result."""

import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from bench.clusters import GANG, SIZES, Size, objects
from bench.persist import persist
from scheduler_core import Result, Snapshot, SnapshotBuilder, parse_policy, run_session
from scheduler_core.serde.policy.founding import FOUNDING_POLICY

NOW = 1_767_225_600.0


class Scenario(NamedTuple):
    """One benchmark. `prepare` gives what is measured; that gives its own seconds."""

    id: str
    unit: str
    target: float
    prepare: Callable[[], Callable[[], float]]


def _build(size: Size) -> tuple[Snapshot, list[dict]]:
    listed = objects(size)
    builder = SnapshotBuilder()
    for number, item in enumerate(listed):
        builder.upsert(item, path=f"items[{number}]")
    return builder.build(), listed


def _cold_session(size: Size) -> Callable[[], Callable[[], float]]:
    def prepare() -> Callable[[], float]:
        snapshot, _ = _build(size)
        policy = parse_policy(FOUNDING_POLICY)

        def measure() -> float:
            start = time.perf_counter()
            result, _memory = run_session(snapshot, policy, now=NOW)
            taken = time.perf_counter() - start
            _check_session(result, size)
            return taken

        return measure

    return prepare


def _check_session(result: Result, size: Size) -> None:
    """All gangs whole: a fast wrong answer is no result."""
    bound: dict[str, int] = {}
    for bind in result.binds:
        gang = bind.pod.rpartition("-")[0]
        bound[gang] = bound.get(gang, 0) + 1
    assert bound, "nothing was placed"
    assert set(bound.values()) == {GANG}, "a gang was placed in part"
    assert not result.evictions, "somebody was evicted from an empty cluster"
    assert len(result.binds) + GANG * len(result.reasons) >= size.tasks, "a gang neither runs nor has a reason"


def _snapshot(size: Size) -> Callable[[], Callable[[], float]]:
    def prepare() -> Callable[[], float]:
        encoded = [msgspec.json.encode(item) for item in objects(size)]

        def measure() -> float:
            start = time.perf_counter()
            builder = SnapshotBuilder()
            for number, item in enumerate(encoded):
                builder.upsert(msgspec.json.decode(item), path=f"items[{number}]")
            snapshot = builder.build()
            taken = time.perf_counter() - start
            assert len(snapshot.pods) == size.tasks // GANG * GANG
            return taken

        return measure

    return prepare


def _event() -> Callable[[], float]:
    size = SIZES["S"]
    builder = SnapshotBuilder()
    listed = objects(size)
    for item in listed:
        builder.upsert(item)
    pods = [msgspec.json.encode(item) for item in listed if item["kind"] == "Pod"]

    def measure() -> float:
        start = time.perf_counter()
        for pod in pods:
            builder.upsert(msgspec.json.decode(pod))
        return (time.perf_counter() - start) / len(pods)

    return measure


SCENARIOS = (
    Scenario("A1-S", "ms", 2.0, _cold_session(SIZES["S"])),
    Scenario("A1-M", "ms", 10.0, _cold_session(SIZES["M"])),
    Scenario("A7-M", "ms", 100.0, _snapshot(SIZES["M"])),
    Scenario("A7-event", "us", 15.0, _event),
    Scenario("A9-500", "ms", 20.0, persist(500)),
    Scenario("A9-10k", "ms", 250.0, persist(10_000)),
)
