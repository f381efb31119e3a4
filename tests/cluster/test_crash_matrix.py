"""Crash and pause matrix: whatever happens to the process that holds a cluster, the cluster sees each effect once.

Real PostgreSQL, Valkey, Celery workers and the simulated cluster, each a process of its own. What is asserted is
asserted on the simulated cluster's own log of the writes that it received.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import Error as DatabaseError
from django.db import connection

from tests.cluster.servers import SimulatedServer
from tests.cluster.workers import Broker, Worker
from tests.waiting import until
from tests.web.pipeline.stage import Stage
from tidesched_web.clusters.models import Cluster
from tidesched_web.scheduling.models import ClusterLease, Decision, Reclaim, ReclaimState
from tidesched_web.scheduling.pipeline.failpoints import NAMES

pytestmark = [pytest.mark.timeout(600)]

GANG = 12
# Reached before anything of the kind is decided, or only while settling: tested by the others' second process.
_EVERYWHERE = [name for name in NAMES if not name.startswith(("settle.", "lease."))]
_BIND = [name for name in _EVERYWHERE if not name.startswith("evict.")]
_EVICT = [name for name in _EVERYWHERE if not name.startswith("bind.")]

# The gate's two; `make proof-crashes` has them all.
_IN_THE_GATE = {("bind", "bind.between_members", "kill9")}


def _case(*case: str) -> Any:
    return pytest.param(*case, marks=() if case in _IN_THE_GATE else pytest.mark.proof)


_CASES = [
    _case(kind, name, action)
    for kind, names in (("bind", _BIND), ("evict", _EVICT))
    for name in names
    for action in ("kill9", "pause")
]
_DISTURBED = [
    _case(kind, name, what)
    for kind, name in (
        ("bind", "send.before_batch"),
        ("bind", "bind.between_members"),
        ("bind", "bind.sent"),
        ("evict", "evict.dry_run_done"),
        ("evict", "evict.between_members"),
        ("evict", "evict.sent"),
    )
    for what in ("broker", "database", "connections")
]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("broker"))
    yield made
    made.stop()


class Scene:
    """A stage with the workers of one case."""

    def __init__(self, stage: Stage, folder: Path, broker: Broker) -> None:
        self.stage, self._folder, self.broker = stage, folder, broker
        self.workers: list[Worker] = []

    def worker(self, name: str, failpoints: str = "") -> Worker:
        made = Worker(f"sessions-{name}", self._folder, self.broker, failpoints=failpoints)
        self.workers.append(made)
        return made

    def beat(self) -> None:
        self.workers.append(Worker("beat", self._folder, self.broker, role="beat"))

    def bury_and_replace(self) -> None:
        """What the supervisor does: a worker that has ended itself (its lease had passed) gets a successor."""
        if self.workers and all(worker.process.poll() is not None for worker in self.workers):
            self.worker(f"successor-{len(self.workers)}")

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()

    def story(self) -> str:
        return "\n".join(f"--- {worker.name}\n{worker.said()}" for worker in self.workers)


@pytest.fixture
def scene(tmp_path: Path, broker: Broker, transactional_db: None) -> Iterator[Scene]:
    server = SimulatedServer(tmp_path, rate=30.0)
    server.start()
    stage = Stage(server, nodes=2, period=0.3)
    made = Scene(stage, tmp_path, broker)
    yield made
    made.end()
    stage.close()
    server.kill()


def prepare(scene: Scene, kind: str) -> None:
    """For evictions: a whole gang on the cards, bound by sessions of this process."""
    if kind == "evict":
        scene.stage.open("setup")
        scene.stage.train("victim", pods=GANG)
        scene.stage.sessions_until(lambda: scene.stage.running("victim") == GANG)
        scene.stage.leave()


def ask(scene: Scene, kind: str) -> None:
    if kind == "bind":
        scene.stage.train("job", pods=GANG)
    else:
        scene.stage.serve("web", replicas=8)


def settled(scene: Scene, kind: str) -> bool:
    """The gang runs whole, or the service runs on the cards of the gang that fell; and nothing is open."""
    stage = scene.stage
    there = stage.running("job") == GANG if kind == "bind" else stage.running("web") == 8
    try:
        open_ones = Decision.objects.filter(state__in=["decided", "sending"]).exists()
        done = kind == "bind" or Reclaim.objects.filter(state=ReclaimState.DONE).exists()
    except DatabaseError:  # the database is just coming back
        connection.close()
        return False
    return there and not open_ones and done


def eventually_settled(scene: Scene, kind: str) -> None:
    def look() -> bool:
        scene.bury_and_replace()
        return settled(scene, kind)

    try:
        until(look)
    except AssertionError:
        pytest.fail(f"not settled:\n{scene.story()}\n{list(Decision.objects.values_list('kind', 'target', 'state'))}")


def effects(scene: Scene) -> list[dict[str, Any]]:
    """The writes of sessions that had an effect, in the order in which the cluster received them."""
    return [
        row
        for row in scene.stage.server.writes()
        if row["epoch"] not in (None, "") and 200 <= row["code"] < 300 and not row["dry_run"]
    ]


def check(scene: Scene, kind: str) -> None:
    """Each effect once, no gang half bound, and no old epoch after a newer one."""
    rows = effects(scene)
    of_kind = {"bind": "pods/binding", "evict": "pods/eviction"}
    for resource in of_kind.values():
        times = Counter((row["key"], row["uid"]) for row in rows if row["resource"].endswith(resource))
        assert not {key: n for key, n in times.items() if n > 1}, "an effect came twice"
    epochs = [int(row["epoch"]) for row in rows]
    assert epochs == sorted(epochs), "an old epoch wrote after a newer one"
    # Every effect was a decision first, and every decision that is called done had its effect.
    for name, resource in of_kind.items():
        logged = {row["key"] for row in rows if row["resource"].endswith(resource)}
        decided = Decision.objects.filter(kind=name)
        assert logged <= set(decided.values_list("target", flat=True))
        # The controller takes the rest of a gang away by itself, in the time without a worker.
        by_itself = decided.filter(outcome__in=["Found leaving.", "It had left already."])
        done = set(decided.filter(state="done").values_list("target", flat=True))
        assert done - set(by_itself.values_list("target", flat=True)) <= logged
    assert scene.stage.bound("victim") in (0, GANG), "a gang is half bound"
    if kind == "evict":
        fallen = Decision.objects.filter(kind="evict", state="done")
        assert fallen.values("target").distinct().count() == GANG, "the gang did not fall whole"
        assert any(row["resource"].endswith("pods/eviction") for row in rows)
        assert Reclaim.objects.exclude(state=ReclaimState.CANCELLED).count() == 1


@pytest.mark.parametrize(("kind", "name", "action"), _CASES)
def test_a_session_that_dies_or_sleeps_is_taken_over(scene: Scene, kind: str, name: str, action: str) -> None:
    prepare(scene, kind)
    first = scene.worker("first", failpoints=f"{name}={action}:@{_times(name)}")
    until(lambda: ClusterLease.objects.filter(holder__contains=f":{first.process.pid}:").exists())
    scene.worker("second")
    ask(scene, kind)
    caught = (lambda: first.ended) if action == "kill9" else (lambda: first.stopped)
    try:
        until(caught)
    except AssertionError:
        pytest.fail(f"the failpoint was not reached:\n{scene.story()}")
    eventually_settled(scene, kind)
    until(lambda: not ClusterLease.objects.filter(holder__contains=f":{first.process.pid}:").exists())
    if action == "pause":
        first.go_on()
        # It ends itself during a session, or finds out in good order that another process goes on.
        until(lambda: first.ended or "lease of" in first.said())
    check(scene, kind)


def _times(name: str) -> int:
    """In the middle of a gang, not at its first member."""
    return 3 if name.endswith(".between_members") else 1


def _restart_broker(scene: Scene) -> None:
    scene.broker.restart()


def _crash_database(scene: Scene) -> None:
    """kill -9 of one server process: PostgreSQL ends all connections and goes through recovery."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        (victim, *_) = cursor.fetchone()
    os.kill(victim, 9)
    connection.close()
    until(_database_answers)


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        connection.close()
        return False
    return True


def _cut_connections(scene: Scene) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


_DISTURBANCES: dict[str, Callable[[Scene], None]] = {
    "broker": _restart_broker,
    "database": _crash_database,
    "connections": _cut_connections,
}


@pytest.mark.parametrize(("kind", "name", "what"), _DISTURBED)
def test_a_session_outlives_its_servers(scene: Scene, kind: str, name: str, what: str) -> None:
    prepare(scene, kind)
    first = scene.worker("first", failpoints=f"{name}=sleep:2")
    until(lambda: ClusterLease.objects.filter(holder__contains=f":{first.process.pid}:").exists())
    ask(scene, kind)
    reached = "pods/binding" if name.startswith(("bind", "send")) else "pods/eviction"
    until(lambda: any(row["resource"].endswith(reached) for row in scene.stage.server.writes()))
    _DISTURBANCES[what](scene)
    eventually_settled(scene, kind)
    check(scene, kind)


@pytest.mark.proof
def test_two_beats_and_two_workers_make_one_session_at_a_time(scene: Scene) -> None:
    scene.beat()
    scene.beat()
    scene.worker("first")
    scene.worker("second")
    ask(scene, "bind")
    eventually_settled(scene, "bind")
    Cluster.objects.update(session_period_seconds=0.2)
    triggers = until(lambda: set(_triggers()) >= {"period"})
    assert triggers
    check(scene, "bind")
    assert ClusterLease.objects.get().epoch == 1, "the lease moved without need"


def _triggers() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT trigger FROM scheduling_session")
        return [row[0] for row in cursor.fetchall()]
