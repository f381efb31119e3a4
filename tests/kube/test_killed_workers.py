"""Workers that die or sleep in the middle of a write to a real API server, one after the other, each at another step.

The server has done the request and no client knows of it: the worst moment. Another process goes on; each effect comes
once, no gang stays half bound, and no process writes under an old lease.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from celery import Celery
from django.db import connection

from tests import quota_writes
from tests.cluster.workers import Broker, Worker
from tests.kube.fault_proxy import Fault, FaultProxy
from tests.kube.real_server import RealServer
from tests.kube.shared import stand_aside, stand_by
from tests.waiting import until
from tests.web.pipeline.stage import Stage
from tidesched_web.accounts.models import BusinessLine
from tidesched_web.celery import broker_url
from tidesched_web.quota.models import Queue, SyncState
from tidesched_web.scheduling.models import ClusterLease, Decision, DecisionState, Reclaim, ReclaimState
from tidesched_web.waking import PUSH_TASK

pytestmark = [pytest.mark.timeout(600)]

SECONDS = 180.0
GANG, REPLICAS, QUEUES = 12, 8, 20
# So many of a kind come through before the one in whose middle it happens.
BEFORE = 3


class Scene:
    """A stage behind the proxy, and the processes of one test."""

    def __init__(self, server: RealServer, proxy: FaultProxy, folder: Path) -> None:
        stand_aside()
        server.clear()
        stand_by(server, grace=0.3)
        self.proxy, self._folder = proxy, folder
        self.broker = Broker(folder / "broker")
        self.stage = Stage(proxy, nodes=2, period=0.3)
        self.workers: list[Worker] = []
        # So many of these are kept at work: on a slow machine one ends by itself too, when its lease has passed.
        self.sessions = 0
        self.hit: Worker | None = None

    def worker(self, role: str) -> Worker:
        made = Worker(f"{role}-{len(self.workers)}", self._folder, self.broker, role=role, lease_seconds=5.0)
        self.workers.append(made)
        return made

    def holder(self) -> Worker | None:
        """Who has the cluster now."""
        said = ClusterLease.objects.values_list("holder", flat=True).first() or ""
        return next((one for one in self.workers if f":{one.process.pid}:" in said), None)

    def strike(self, method: str, part: str, number: int, *, after: int = BEFORE) -> None:
        """Send a signal to the holder at a write of this kind, once, after the server has done it unheard."""
        self.hit = None

        def done() -> None:
            self.hit = self.holder()
            assert self.hit is not None
            self.hit.process.send_signal(number)
            connection.close()

        self.proxy.spoil(Fault(method=method, part=part, after=after, times=1, done=done, lose_answer=True))

    def until(self, check: Callable[[], object], what: str) -> None:
        def look() -> object:
            at_work = sum(not (worker.ended or worker.stopped) for worker in self.workers)
            for _ in range(at_work, self.sessions):
                self.worker("sessions")
            return check()

        try:
            until(look, SECONDS)
        except AssertionError:
            said = "\n".join(f"--- {worker.name}\n{worker.said()}" for worker in self.workers)
            pytest.fail(f"{what}:\n{said}\n{list(Decision.objects.values_list('kind', 'target', 'state'))}")

    def effects(self, part: str) -> Counter[str]:
        """How often each object was written for good; its address with the answer of a success."""
        return Counter(
            path.partition("?")[0]
            for method, path, code in self.proxy.requests
            if method != "GET" and part in path and 200 <= code < 300 and "dryRun" not in path
        )

    def end(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.broker.stop()
        self.stage.close()


@pytest.fixture
def scene(server: RealServer, proxy: FaultProxy, tmp_path: Path, transactional_db: None) -> Iterator[Scene]:
    made = Scene(server, proxy, tmp_path)
    yield made
    proxy.heal()
    made.end()
    stand_aside()
    server.clear()


def nothing_open() -> bool:
    return not Decision.objects.filter(state__in=[DecisionState.DECIDED, DecisionState.SENDING]).exists()


def once(counts: Counter[str]) -> bool:
    return set(counts.values()) == {1}


def test_sessions_are_taken_over_at_each_step(scene: Scene) -> None:
    stage = scene.stage
    scene.sessions = 2
    scene.until(scene.holder, "a worker has the cluster")

    # -- a bind: twelve go out, eight at a time
    scene.strike("POST", "/binding", signal.SIGKILL)
    stage.train("job", pods=GANG)
    scene.until(lambda: scene.hit and scene.hit.ended, "the worker is killed between two binds")
    scene.until(lambda: stage.running("job") == GANG and nothing_open(), "the gang runs whole")
    binds = scene.effects("/binding")
    assert once(binds)
    assert sum(binds.values()) == GANG

    # -- an eviction: the service needs four cards more than are free, so the gang falls whole
    scene.strike("POST", "/eviction", signal.SIGKILL)
    stage.serve("web", replicas=REPLICAS)
    scene.until(lambda: scene.hit and scene.hit.ended, "the worker is killed between two evictions")
    scene.until(lambda: stage.running("web") == REPLICAS and nothing_open(), "the service runs")
    assert once(scene.effects("/eviction"))
    assert Decision.objects.filter(kind="evict", state="done").values("target").distinct().count() == GANG
    scene.until(lambda: Reclaim.objects.filter(state=ReclaimState.DONE).exists(), "the reclaim is done")
    assert Reclaim.objects.exclude(state=ReclaimState.CANCELLED).count() == 1
    assert stage.bound("job") in (0, GANG)

    # -- the status of a PodGroup, and the worker only sleeps: it must not write once another process goes on
    scene.strike("PATCH", "/podgroups/small-", signal.SIGSTOP, after=0)
    stage.train("small", pods=4)
    scene.until(lambda: scene.hit and scene.hit.stopped, "the worker sleeps")
    sleeper = scene.hit
    assert sleeper is not None
    scene.until(lambda: stage.running("small") == 4 and nothing_open(), "the small gang runs")
    scene.until(lambda: scene.holder() not in (None, sleeper), "another worker has the cluster")
    sleeper.go_on()
    scene.until(lambda: sleeper.ended or "lease of" in sleeper.said(), "the sleeper finds out")
    scene.until(lambda: _phase(stage, "small-") == "Running", "the cluster is told of it")

    assert once(scene.effects("/binding"))
    assert scene.proxy.epochs == sorted(scene.proxy.epochs), "an old lease wrote after a newer one"


def _phase(stage: Stage, name: str) -> str:
    groups = stage.client.get("/apis/scheduling.volcano.sh/v1beta1/podgroups")["items"]
    phases = [(one.get("status") or {}).get("phase", "") for one in groups if one["metadata"]["name"].startswith(name)]
    return str(phases[0]) if phases else ""


def test_a_push_is_finished_by_another_worker(scene: Scene) -> None:
    """Each queue is written once, also the one whose write was never answered."""
    line = BusinessLine.objects.get(slug="research")
    for index in range(QUEUES):
        quota_writes.create_queue(
            cluster=scene.stage.cluster,
            name=f"more-{index:02}",
            service_type="training",
            business_line=line,
            card_quota={},
            actor="test",
        )
    first = scene.worker("push")
    fault = Fault(
        method="PATCH", part="/queues/more-", after=BEFORE, times=1, done=first.process.kill, lose_answer=True
    )
    scene.proxy.spoil(fault)
    _ask_for_push(scene)
    scene.until(lambda: first.ended, "the worker is killed between two queues")
    assert Queue.objects.filter(name__startswith="more-", sync_state=SyncState.PENDING).exists()
    scene.worker("push")
    _ask_for_push(scene)
    left = Queue.objects.filter(name__startswith="more-").exclude(sync_state=SyncState.IN_STEP)
    scene.until(lambda: not left.exists(), "all queues are in step")
    written = scene.effects("/queues/more-")
    assert once(written)
    assert len(written) == QUEUES
    connection.close()


def _ask_for_push(scene: Scene) -> None:
    with Celery(broker=broker_url(scene.broker.url)) as app:
        app.conf.broker_transport_options = {"global_keyprefix": "celery:"}
        app.send_task(PUSH_TASK, queue="push")
