"""The cache follows the cluster: it ends where a fresh list begins, whatever happened on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests import builders as b
from tests.cluster.objects import CARD, deployment, job, node
from tests.cluster.servers import ApiServer, SimulatedServer
from tests.waiting import PATIENCE, until
from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.clusters.kubernetes.cache import ClusterCache
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, JOB, NODE, POD, POD_GROUP
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.engine.model import Snapshot


def fresh(client: KubernetesClient) -> Snapshot:
    cache = ClusterCache(client, schedulers=("tidesched",))
    cache.start()
    try:
        assert cache.wait_synced(PATIENCE)
        return cache.snapshot()
    finally:
        cache.stop()


@pytest.fixture
def woken() -> threading.Event:
    return threading.Event()


@pytest.fixture
def cache(client: KubernetesClient, woken: threading.Event) -> Iterator[ClusterCache]:
    made = ClusterCache(client, schedulers=("tidesched",), wake=woken.set)
    made.start()
    assert made.wait_synced(PATIENCE)
    yield made
    made.stop()


def test_what_is_pushed_and_submitted_is_in_the_snapshot(
    client: KubernetesClient, writes: ClusterWrites, cache: ClusterCache, namespace: str
) -> None:
    queue = f"q-{namespace}"
    assert client.send("POST", NODE.path(), node(f"n-{namespace}", cards=4)).done
    assert writes.apply_queue(
        manifests.queue(
            queue,
            service_type="training",
            weight=1,
            priority=20000,
            reclaimable=True,
            card_quota={CARD: 4},
            cpu_milli=64000,
        )
    ).done
    assert client.send("POST", JOB.path(namespace), job("train", pods=2, cards=2, queue=queue)).done

    def arrived() -> Any:
        return next((g for g in cache.snapshot().pod_groups if g.namespace == namespace), None)

    group = until(arrived)
    assert (group.queue, group.min_member, group.waits_for_admission) == (queue, 2, True)
    assert group.card_request == {CARD: 4000}
    found = {q.name: q for q in cache.snapshot().queues}[queue]
    assert (found.card_quota, found.cpu_milli, found.service_type) == ({CARD: 4000}, 64000, "training")
    cards = {n.name: n for n in cache.snapshot().nodes}[f"n-{namespace}"].cards
    assert [(c.card, c.count) for c in cards] == [(CARD, 4)]


def test_a_change_wakes_and_a_status_count_does_not(
    client: KubernetesClient, cache: ClusterCache, woken: threading.Event, namespace: str
) -> None:
    assert client.send("POST", JOB.path(namespace), job("train", pods=1)).done
    assert woken.wait(60)
    until(lambda: [g for g in cache.snapshot().pod_groups if g.namespace == namespace])
    until(lambda: not woken.is_set() or woken.clear() or time.sleep(0.5))
    writes = ClusterWrites(client)
    before = cache.snapshot()
    group = next(g for g in before.pod_groups if g.namespace == namespace)
    conditions = [{"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "0/1"}]
    assert writes.patch_podgroup_status(
        namespace, group.name, uid=group.uid, phase="Pending", conditions=conditions
    ).done
    until(lambda: cache.snapshot() is not before)
    assert not woken.is_set()


def test_the_counts_of_a_podgroup_are_written_alone_and_read_back(
    client: KubernetesClient, writes: ClusterWrites, cache: ClusterCache, namespace: str
) -> None:
    group = {"apiVersion": POD_GROUP.group_version, "kind": "PodGroup", "metadata": {"name": "g"}}
    made = client.send("POST", POD_GROUP.path(namespace), {**group, "spec": {"minMember": 1, "queue": "default"}})
    assert made.body is not None
    uid, key = made.body["metadata"]["uid"], f"{namespace}/g"
    assert writes.patch_podgroup_status(namespace, "g", uid=uid, phase="Running").done
    until(lambda: cache.gang_counts().get(key) == (0, 0, 0))
    assert writes.patch_podgroup_counts(
        namespace, "g", uid=uid, counts={"running": 3, "succeeded": 0, "failed": 1}
    ).done
    until(lambda: cache.gang_counts()[key] == (3, 0, 1))
    assert client.get(POD_GROUP.path(namespace, "g"))["status"]["phase"] == "Running"
    assert client.send("DELETE", POD_GROUP.path(namespace, "g")).done
    until(lambda: key not in cache.gang_counts())


def test_an_object_that_cannot_be_read_is_named_until_it_can(cache: ClusterCache) -> None:
    until(lambda: cache.synced)
    good = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "odd", "uid": "u", "resourceVersion": "1"},
        "status": {"allocatable": {"cpu": "4"}},
    }
    cache.change(NODE, "ADDED", good)
    bad = {**good, "metadata": {**good["metadata"], "resourceVersion": "2"}, "status": {"allocatable": {"cpu": "-4"}}}
    cache.change(NODE, "MODIFIED", bad)
    snapshot = cache.snapshot()
    assert ["negative" in finding.message for finding in snapshot.findings if finding.object == "Node odd"] == [True]
    assert "odd" not in {n.name for n in snapshot.nodes}
    cache.change(NODE, "MODIFIED", {**good, "metadata": {**good["metadata"], "resourceVersion": "3"}})
    assert [finding for finding in cache.snapshot().findings if finding.object == "Node odd"] == []
    assert {n.name: n.cpu_milli for n in cache.snapshot().nodes}["odd"] == 4000
    better = {**good, "metadata": {**good["metadata"], "resourceVersion": "4"}, "status": {"allocatable": {"cpu": "8"}}}
    for newer_first in (better, good):
        cache.change(NODE, "MODIFIED", newer_first)
    assert {n.name: n.cpu_milli for n in cache.snapshot().nodes}["odd"] == 8000, "an older state changes nothing"


def test_an_object_that_breaks_its_reader_does_not_keep_the_others_out(
    cache: ClusterCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(lambda: cache.synced)
    read = cache._builder.upsert

    def fragile(obj: dict[str, Any], **place: Any) -> None:
        if obj["metadata"]["name"] == "monster":
            raise RecursionError("a bug")
        read(obj, **place)

    monkeypatch.setattr(cache._builder, "upsert", fragile)
    for name in ("monster", "tame"):
        metadata = {"name": name, "uid": name, "resourceVersion": "1"}
        status = {"allocatable": {"cpu": "4"}}
        cache.change(NODE, "ADDED", {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
    assert {f.object: f.message for f in cache.snapshot().findings}["Node monster"] == "RecursionError: a bug"
    assert "tame" in {n.name for n in cache.snapshot().nodes}


def test_what_fails_beside_the_reader_takes_no_object_away() -> None:
    class Broken:
        def seen(self, kind: Any, type_: str, obj: dict[str, Any]) -> None:
            raise RuntimeError("a bug")

    cache = ClusterCache(cast("Any", None), schedulers=("tidesched",), taps=(Broken(),))
    running = b.pod("r", node="n", cpu=6)
    running["metadata"]["resourceVersion"] = "1"
    running["status"]["conditions"] = ["odd"]
    cache.change(NODE, "ADDED", {**b.node("n"), "metadata": {"name": "n", "uid": "n", "resourceVersion": "1"}})
    cache.change(POD, "ADDED", running)
    snapshot = cache.snapshot()
    assert [(pod.name, pod.cpu_milli) for pod in snapshot.pods] == [("r", 6000)]
    assert snapshot.findings == ()
    assert snapshot.nodes[0].pods > 0
    cache.change(POD, "DELETED", {"metadata": {"namespace": "default", "name": "r", "resourceVersion": "2"}})
    assert cache.snapshot().pods == ()


def test_what_becomes_unreadable_or_readable_again_wakes() -> None:
    woken: list[None] = []
    cache = ClusterCache(cast("Any", None), schedulers=("tidesched",), wake=lambda: woken.append(None))
    for reflector in cache._reflectors:
        reflector.synced.set()
    good = b.pod("r", node="n", cpu=2)
    bad = {**good, "spec": {**good["spec"], "tolerations": [{"key": 5}]}}
    told = []
    for version, state in enumerate((good, good, bad, bad, good), start=1):
        before = len(woken)
        cache.change(POD, "MODIFIED", {**state, "metadata": {**state["metadata"], "resourceVersion": str(version)}})
        told.append(len(woken) > before)
    assert told == [True, False, True, False, True]


def test_after_much_has_happened_it_equals_a_fresh_list(
    api_server: ApiServer, client: KubernetesClient, writes: ClusterWrites, cache: ClusterCache, namespace: str
) -> None:
    if not api_server.simulated:
        pytest.skip("a bare API server has no controllers")
    for index in range(3):
        client.send("POST", NODE.path(), node(f"n-{namespace}-{index}"))
    client.send("POST", DEPLOYMENT.path(namespace), deployment("serve", replicas=6))
    for index in range(4):
        client.send("POST", JOB.path(namespace), job(f"train-{index}", pods=2, run_seconds=100))
        group = client.get(POD_GROUP.path(namespace, f"train-{index}"))["metadata"]
        writes.patch_podgroup_status(namespace, f"train-{index}", uid=group["uid"], phase="Inqueue")
    until(lambda: len(client.get(POD.path(namespace))["items"]) == 14)
    for index, pod in enumerate(client.get(POD.path(namespace))["items"]):
        metadata = pod["metadata"]
        writes.bind_pod(namespace, metadata["name"], uid=metadata["uid"], node=f"n-{namespace}-{index % 3}")
        if index % 4 == 0:
            writes.evict_pod(namespace, metadata["name"], uid=metadata["uid"])
    client.send("DELETE", JOB.path(namespace, "train-3"))

    def settled() -> bool:
        pods = [p for p in cache.snapshot().pods if p.namespace == namespace]
        return all(p.phase != "Pending" or not p.node for p in pods) and all(p.deleted is None for p in pods)

    until(settled)
    until(lambda: cache.snapshot() == fresh(client))


def test_it_survives_the_server_and_catches_up(own_server: SimulatedServer) -> None:
    client = own_server.client()
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    cache = ClusterCache(client, schedulers=("tidesched",))
    cache.start()
    try:
        assert cache.wait_synced(PATIENCE)
        own_server.kill()
        until(lambda: cache.errors() != {})
        own_server.start()
        client.send("POST", DEPLOYMENT.path("a"), deployment("serve", replicas=3))
        until(lambda: len(cache.snapshot().pods) == 3)
        until(lambda: cache.errors() == {})
        assert cache.age_seconds() < 30
    finally:
        cache.stop()


def test_it_lists_again_where_the_changes_are_lost(tmp_path: Any) -> None:
    server = SimulatedServer(tmp_path, "--ring", "20")
    server.start()
    client = server.client()
    client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    client.send("POST", DEPLOYMENT.path("a"), deployment("serve", replicas=3))
    cache = ClusterCache(client, schedulers=("tidesched",))
    cache.start()
    try:
        assert cache.wait_synced(PATIENCE)
        server.stop()
        # while the cache is blind, more happens than the ring holds
        server.start()
        writer = server.client()
        for replicas in (40, 2, 60, 5):
            patch = {"spec": {"replicas": replicas}}
            writer.send("PATCH", DEPLOYMENT.path("a", "serve"), patch, content_type="application/merge-patch+json")
        until(lambda: len(cache.snapshot().pods) == 5)
    finally:
        cache.stop()
        server.kill()
