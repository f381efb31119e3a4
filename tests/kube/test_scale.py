"""Many gangs through the whole pipeline: worker processes, PostgreSQL, a real API server.

``TIDESCHED_KUBE_SCALE=full`` makes 500 nodes and 5,000 pods; without it thirty nodes will do. Figures go to stderr.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.objects import template
from tests.cluster.servers import ROOT
from tests.cluster.workers import Broker, Worker
from tests.kube.process_costs import cpu_seconds, resident_mib
from tests.kube.real_server import RealServer
from tests.kube.shared import stand_aside
from tests.waiting import until
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tidesched_web.clusters.kubernetes.client import Json, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import NODE, POD, POD_GROUP, Kind
from tidesched_web.clusters.kubernetes.reflector import Reflector
from tidesched_web.scheduling.models import Decision, DecisionState, Session

FULL = os.environ.get("TIDESCHED_KUBE_SCALE", "") == "full"
pytestmark = [pytest.mark.timeout(3600 if FULL else 600)]

NODES = 500 if FULL else 30
CARDS = NODES * 8
# All cards are in use; then a quarter of them is wanted by inference.
TRAINING, INFERENCE = CARDS, CARDS // 4
GANGS = (4, 8, 16, 32)
WAIT_SECONDS = 1800.0 if FULL else 240.0
CREATORS = 8
# What a worker has in production, so that the figures are those of production.
LEASE_SECONDS = 15.0 if FULL else 3.0


class Seen:
    """Pods as a watch brings them: where they are, and when each was seen bound first."""

    def __init__(self) -> None:
        self.pods: dict[str, Json] = {}
        self.bound_at: dict[str, float] = {}

    def replace(self, kind: Kind, objects: list[Json], version: int) -> None:
        self.pods = {}
        for obj in objects:
            self.change(kind, "ADDED", obj)

    def change(self, kind: Kind, type_: str, obj: Json) -> None:
        name = obj["metadata"]["name"]
        if type_ == "DELETED":
            self.pods.pop(name, None)
            return
        self.pods[name] = obj
        if obj["spec"].get("nodeName"):
            self.bound_at.setdefault(obj["metadata"]["uid"], time.monotonic())

    def bound(self) -> list[Json]:
        return [pod for pod in list(self.pods.values()) if pod["spec"].get("nodeName")]

    def staying(self, prefix: str) -> list[Json]:
        return [
            pod
            for pod in self.bound()
            if pod["metadata"]["name"].startswith(prefix) and "deletionTimestamp" not in pod["metadata"]
        ]


class Theatre:
    """The stage, its workers, and who watches."""

    def __init__(self, server: RealServer, folder: Path, broker: Broker) -> None:
        stand_aside()
        server.clear()
        self.server = server
        self.stage = Stage(server, nodes=NODES, period=1.0)
        # Whoever expects such a tide allows it: the usual guards would hold back a quarter of all training.
        self.stage.cluster.evict_gangs_per_minute = self.stage.cluster.evict_cards_per_minute = CARDS
        self.stage.cluster.evict_share_of_training = 1.0
        self.stage.cluster.save()
        self.client: KubernetesClient = server.client()
        self.seen = Seen()
        self._reflector = Reflector(self.client, POD, self.seen)
        self._reflector.start()
        argv = [sys.executable, "-m", "tests.kube", "stand-ins", str(server.folder), server.url, "--grace", "1"]
        self._beside = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._beside.stdout is not None
        assert self._beside.stdout.readline().strip() == "ready"
        self._folder, self._broker = folder, broker
        self.workers: list[Worker] = []

    def worker(self) -> Worker:
        name = f"sessions-{len(self.workers)}"
        made = Worker(name, self._folder, self._broker, lease_seconds=LEASE_SECONDS)
        self.workers.append(made)
        return made

    def create(self, kind: Kind, manifests: list[Json]) -> None:
        def one(manifest: Json) -> None:
            outcome = self.client.send("POST", kind.path(NAMESPACE_NAME), manifest)
            assert outcome.done, outcome

        with ThreadPoolExecutor(CREATORS) as pool:
            list(pool.map(one, manifests))

    def wait(self, check: Callable[[], Any], what: str) -> None:
        try:
            until(check, WAIT_SECONDS)
        except AssertionError:
            said = "\n".join(worker.said() for worker in self.workers)
            pytest.fail(f"{what}: {len(self.seen.bound())} pods are bound\n{said}")

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self._beside.kill()
        self._beside.wait(10)
        assert self._beside.stdout is not None
        self._beside.stdout.close()
        self._reflector.stop()
        self.stage.close()
        self.client.close()


@pytest.fixture
def theatre(server: RealServer, tmp_path: Path, transactional_db: None) -> Iterator[Theatre]:
    broker = Broker(tmp_path / "broker")
    made = Theatre(server, tmp_path, broker)
    yield made
    made.close()
    broker.stop()
    server.clear()


def gangs(prefix: str, pods: int) -> tuple[list[Json], list[Json]]:
    """PodGroups of several sizes and their pods, one card each."""
    groups: list[Json] = []
    members: list[Json] = []
    while len(members) < pods:
        name, size = f"{prefix}-{len(groups):04}", min(GANGS[len(groups) % len(GANGS)], pods - len(members))
        spec = {"minMember": size, "queue": "train", "priorityClassName": "pc-low"}
        kind = {"apiVersion": POD_GROUP.group_version, "kind": POD_GROUP.name}
        groups.append({**kind, "metadata": {"name": name}, "spec": spec})
        members += [pod(f"{name}-{index}", "pc-low", group=name) for index in range(size)]
    return groups, members


def pod(name: str, priority: str, *, group: str = "", queue: str = "") -> Json:
    made = template(1)
    notes = made["metadata"]["annotations"]
    if group:
        notes["scheduling.k8s.io/group-name"] = group
    if queue:
        notes["scheduling.volcano.sh/queue-name"] = queue
    made["metadata"]["name"] = name
    made["spec"] |= {"schedulerName": "tidesched", "priorityClassName": priority}
    return made


def half_bound(seen: Seen, groups: list[Json]) -> dict[str, int]:
    """Gangs of which some but not all members are bound."""
    bound = Counter(one["metadata"]["name"].rpartition("-")[0] for one in seen.staying("gang-"))
    sizes = {group["metadata"]["name"]: group["spec"]["minMember"] for group in groups}
    return {name: count for name, count in bound.items() if 0 < count < sizes[name]}


def settled() -> bool:
    return not Decision.objects.filter(state__in=[DecisionState.DECIDED, DecisionState.SENDING]).exists()


def test_gangs_fill_the_cluster_and_yield_to_inference(theatre: Theatre) -> None:
    seen, say = theatre.seen, Figures(theatre)
    assert len(theatre.client.get(NODE.path(), {"limit": NODES + 1})["items"]) == NODES
    groups, members = gangs("gang", TRAINING)
    began = time.monotonic()
    theatre.create(POD_GROUP, groups)
    theatre.create(POD, members)
    say.rate("pods created", len(members), time.monotonic() - began)

    # -- bound gang by gang; the worker is killed when a third is done
    first = theatre.worker()
    theatre.wait(lambda: len(seen.bound()) >= TRAINING // 3, "the first third is bound")
    at = sorted(seen.bound_at.values())
    say.rate("binds before the kill", len(at), at[-1] - at[0])
    first.kill()
    killed_at, killed_with = time.monotonic(), len(seen.bound())
    theatre.worker()
    theatre.wait(lambda: len(seen.staying("gang-")) == TRAINING, "all training pods are bound")
    theatre.wait(settled, "nothing is open")
    assert half_bound(seen, groups) == {}
    assert max(Counter(one["spec"]["nodeName"] for one in seen.bound()).values()) <= 8
    after = sorted(at for at in seen.bound_at.values() if at > killed_at)
    say.rate("binds after it", len(after), after[-1] - after[0])
    say.seconds(f"from the kill at {killed_with} binds to the next bind", after[0] - killed_at)

    # -- inference claims a quarter of the cards: whole training gangs are evicted, and no others
    theatre.wait(lambda: sum(one["status"]["phase"] == "Running" for one in seen.bound()) == TRAINING, "all run")
    began = time.monotonic()
    theatre.create(POD, [pod(f"serve-{index:04}", "pc-high", queue="serve") for index in range(INFERENCE)])
    theatre.wait(lambda: len(seen.staying("serve-")) == INFERENCE, "inference has its cards")
    say.rate("inference pods from their creation to a card that training had", INFERENCE, time.monotonic() - began)
    theatre.wait(settled, "nothing is open")
    assert half_bound(seen, groups) == {}
    left = len(seen.staying("gang-"))
    # The tide rules take whole gangs and no more of them than are needed: what is over is less than the largest gang.
    assert CARDS - INFERENCE - left < max(GANGS), f"{left} training pods are left on {CARDS - INFERENCE} cards"
    evicted = set(Decision.objects.filter(kind="evict", state="done").values_list("target", flat=True))
    assert evicted
    assert all(target.startswith(f"{NAMESPACE_NAME}/gang-") for target in evicted)

    # -- steady state: one pod at a time, where there is room
    for name in [one["metadata"]["name"] for one in seen.staying("serve-")][:20]:
        theatre.client.send("DELETE", POD.path(NAMESPACE_NAME, name))
    theatre.wait(lambda: len(seen.staying("serve-")) == INFERENCE - 20, "some left")
    taken = []
    for index in range(15):
        name = f"late-{index}"
        created = time.monotonic()
        theatre.create(POD, [pod(name, "pc-high", queue="serve")])
        theatre.wait(lambda name=name: seen.staying(name), f"{name} is bound")
        uid = seen.pods[name]["metadata"]["uid"]
        taken.append(seen.bound_at[uid] - created)
    say.seconds("a new pod to its bind, p50", statistics.median(taken))
    say.seconds("a new pod to its bind, longest but one", sorted(taken)[-2])
    say.seconds("a new pod to its bind, longest", max(taken))
    of_sessions = Session.objects.order_by("-id").values_list("timings_ms", flat=True)[:30]
    for part in ("snapshot", "decide", "write", "send", "record"):
        say.seconds(f"a session's {part}, p50", statistics.median(one.get(part, 0.0) for one in of_sessions) / 1000)
    say.memory()


class Figures:
    """What was measured, for a run with ``-s``: wall time, and the processor time that each one took."""

    def __init__(self, theatre: Theatre) -> None:
        self._theatre = theatre
        self._costs = self._all()

    def rate(self, what: str, count: int, seconds: float) -> None:
        costs = self._all()
        took = ", ".join(f"{name} {cost - self._costs.get(name, 0.0):.1f}" for name, cost in costs.items())
        self._costs = costs
        self._say(f"{what}: {count} in {seconds:.1f} s, {count / max(seconds, 1e-3):.0f}/s; processor seconds: {took}")

    def seconds(self, what: str, seconds: float) -> None:
        self._say(f"{what}: {seconds:.2f} s")

    def memory(self) -> None:
        held = self._theatre.server.resident_mib()
        held |= {one.name: resident_mib(one.process.pid) for one in self._theatre.workers if not one.ended}
        self._say("memory in MiB: " + ", ".join(f"{name} {mib}" for name, mib in held.items()))

    def _all(self) -> dict[str, float]:
        workers = {one.name: cpu_seconds(one.process.pid) for one in self._theatre.workers if not one.ended}
        return self._theatre.server.cpu_seconds() | workers

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{NODES} nodes: {text}\n")
