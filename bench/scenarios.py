"""The benchmarks, each under the name of its target: what is measured, and what must be true of the result."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from bench import lists, openb, snapshots, tide
from bench.clock import clock
from bench.clusters import GANG, SIZES, Size, objects
from bench.console import grid, tree_page
from bench.million import TASKS, cost_at
from bench.own_plugins import OverArrays, PodByPod, own_plugin
from bench.persist import persist
from bench.policies import POD_BY_POD, VOLCANO, each_plugin, other, other_policy, pod_by_pod
from bench.push import unchanged_push
from bench.reasons import reasons
from bench.review import review
from bench.sessions import cold_session
from bench.soak import soak
from bench.steady import steady_session, what_if
from bench.storms import STORM_TARGETS, storm
from bench.tree_import import large_import
from bench.writes import audited_writes
from scheduler_core import SnapshotBuilder
from scheduler_core.serde.policy.founding import FOUNDING_POLICY


class Scenario(NamedTuple):
    """One benchmark. `prepare` gives what is measured; that gives its own seconds (or percent)."""

    id: str
    unit: str
    target: float
    prepare: Callable[[], Callable[[], float]]
    once: bool = False


def _snapshot(size: Size) -> Callable[[], Callable[[], float]]:
    def prepare() -> Callable[[], float]:
        encoded = [msgspec.json.encode(item) for item in objects(size)]

        def measure() -> float:
            start = clock()
            builder = SnapshotBuilder()
            for number, item in enumerate(encoded):
                builder.upsert(msgspec.json.decode(item), path=f"items[{number}]")
            snapshot = builder.build()
            taken = clock() - start
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
        start = clock()
        for pod in pods:
            builder.upsert(msgspec.json.decode(pod))
        return (clock() - start) / len(pods)

    return measure


SCENARIOS = (
    Scenario("A1-S", "ms", 2.0, cold_session(snapshots.SIZES["S"])),
    Scenario("A1-M", "ms", 10.0, cold_session(snapshots.SIZES["M"])),
    Scenario("A1-L", "ms", 60.0, cold_session(snapshots.SIZES["L"])),
    Scenario("A1-XL", "ms", 150.0, cold_session(snapshots.SIZES["XL"])),
    Scenario("A1-XL-500", "ms", 1000.0, cold_session(snapshots.SIZES["XL"], classes=500)),
    *(Scenario(f"A15-{size}", "x", 3.0, each_plugin(snapshots.SIZES[size]), once=True) for size in ("S", "M", "XL")),
    Scenario("A15-own-arrays-M", "x", 5.0, own_plugin(snapshots.SIZES["M"], OverArrays), once=True),
    Scenario("A15-own-pods-M", "x", 20.0, own_plugin(snapshots.SIZES["M"], PodByPod), once=True),
    *(Scenario(f"A15-pod-{name}-M", "us", 100.0, pod_by_pod(snapshots.SIZES["M"], name)) for name in POD_BY_POD),
    *(
        Scenario(f"A16-{name}-{size}", "x", 3.0, other_policy(snapshots.SIZES[size], name), once=True)
        for name in VOLCANO
        for size in ("S", "M", "XL")
    ),
    *(
        Scenario(f"A17-{name}-{tasks // 1000}k", "ms", target, cost_at(tasks, text), once=True)
        for name, text, target in (("founding", FOUNDING_POLICY, 5000.0), ("volcano", other("volcano"), 8000.0))
        for tasks in TASKS
    ),
    Scenario("A2", "ms", 5.0, steady_session(snapshots.SIZES["XL"])),
    Scenario("A2-nodes", "ms", 5.0, steady_session(snapshots.SIZES["XL"], nodes=100)),
    *(Scenario(name, "ms", target, storm(name)) for name, target in STORM_TARGETS),
    Scenario("A5", "ms", 50.0, reasons),
    Scenario("A4-action", "ms", 15.0, storm("A4", step="reclaim")),
    Scenario("A6", "ms", 200.0, what_if(snapshots.SIZES["XL"])),
    Scenario("A7-M", "ms", 100.0, _snapshot(SIZES["M"])),
    Scenario("A7-event", "us", 15.0, _event),
    Scenario("A9-500", "ms", 20.0, persist(500)),
    Scenario("A9-10k", "ms", 250.0, persist(10_000)),
    *(Scenario(f"A12-{name}", "%", means[2], openb.over_seeds(name), once=True) for name, means in openb.known()),
    *(Scenario(name, unit, goal, tide.measured(name), once=True) for name, (unit, goal, _) in tide.MEASURES.items()),
    Scenario("W1-first", "ms", 15.0, lists.first_page),
    Scenario("W1-deep", "ms", 15.0, lists.deep_page),
    Scenario("W2", "ms", 20.0, lists.filtered),
    Scenario("W3", "ms", 20.0, lists.gang_detail),
    Scenario("W4", "ms", 15.0, lists.queues_with_use),
    Scenario("W5", "ms", 10.0, lists.overview_data),
    Scenario("W6-overview", "ms", 60.0, lists.overview_page),
    Scenario("W6-gangs", "ms", 60.0, lists.gangs_page),
    Scenario("W6-tenants", "ms", 60.0, lists.tenants_page),
    Scenario("W-review-M", "ms", 400.0, review(snapshots.SIZES["M"])),
    Scenario("W-review-XL", "ms", 400.0, review(snapshots.SIZES["XL"])),
    Scenario("W-tree-5k", "ms", 60.0, tree_page(5000)),
    Scenario("W-tree-find", "ms", 60.0, tree_page(5000, "?q=q00042")),
    Scenario("W-writes", "ms", 25.0, audited_writes),
    Scenario("W-push", "ms", 2000.0, unchanged_push),
    Scenario("W-import", "ms", 20_000.0, large_import),
    Scenario("A14", "%", 2.0, soak(), once=True),
    # Last: the browser keeps an event loop running, in which Django asks no database.
    Scenario("W-grid-500", "ms", 50.0, grid(500)),
)
