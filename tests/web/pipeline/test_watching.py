"""The thread that holds a cluster: nothing drifts by itself, a change by hand shows, an API server that is away too."""

from __future__ import annotations

import threading

import pytest
from django.db import connections

from tests.cluster.objects import CARD
from tests.cluster.servers import SimulatedServer
from tests.waiting import until
from tests.web.pipeline.stage import Stage
from tidesched_web.clusters.credentials import seal
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH
from tidesched_web.clusters.kubernetes.in_cluster import in_cluster_connection
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.models import Drift, DriftLook
from tidesched_web.quota.services import push
from tidesched_web.scheduling.models import Alert, ClusterReach, Session
from tidesched_web.scheduling.pipeline import lease, reach
from tidesched_web.scheduling.pipeline.shard import ClusterShard


class Holder:
    """A session thread and the heartbeat of its lease, as a worker has them."""

    def __init__(self, stage: Stage) -> None:
        held = lease.take(stage.cluster.pk, "test")
        assert held is not None
        self.shard, self._ends = ClusterShard(held), threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)
        self.shard.start()
        self._heart.start()

    def _beat(self) -> None:
        try:
            while not self._ends.wait(1.0):
                lease.renew(self.shard.lease)
        finally:
            connections.close_all()

    def stop(self) -> None:
        self.shard.stop()
        self.shard.join(60)
        self._ends.set()
        self._heart.join(60)


@pytest.fixture
def holder(server: SimulatedServer, transactional_db: None):
    stage = Stage(server)
    for name in ("serve", "train"):  # made by hand; from here on they are TideSched's
        assert stage.client.send("DELETE", QUEUE.path(name=name)).done
    push.push_cluster(cluster=stage.cluster, everything=True)
    made = Holder(stage)
    yield stage, made
    made.stop()
    stage.close()


def test_drift_and_an_api_server_that_is_away(holder, server, monkeypatch) -> None:
    stage, made = holder
    stage.train("ring", pods=2, cards=4)
    until(lambda: stage.running("ring") == 2)
    first = until(lambda: DriftLook.objects.filter(objects_compared__gte=2).first())
    until(lambda: DriftLook.objects.get().looked_at > first.looked_at, 90)
    assert list(Drift.objects.values_list("name", "fields")) == []
    assert until(lambda: ClusterReach.objects.filter(state="connected").exists())

    patch = {"metadata": {"annotations": {"volcano.sh/card.quota": f'{{"{CARD}": 3}}'}}}
    query = {"fieldManager": "kubectl-edit"}
    assert stage.client.send("PATCH", QUEUE.path(name="train"), patch, query=query, content_type=MERGE_PATCH).done
    row = until(Drift.objects.first)
    assert (row.name, row.fields[0]["changed_by"], row.fields[0]["live"]) == ("train", "kubectl-edit", "3")

    monkeypatch.setattr(reach, "PATIENCE_SECONDS", 1.0)
    server.kill()
    until(lambda: ClusterReach.objects.filter(state="unreachable").exists())
    assert Alert.objects.filter(code="cluster_unreachable", resolved_at__isnull=True).count() == 1
    before = Session.objects.order_by("-id").values_list("id", flat=True).first()
    server.start()
    until(lambda: ClusterReach.objects.filter(state="connected").exists())
    assert not Alert.objects.filter(code="cluster_unreachable", resolved_at__isnull=True).exists()
    until(lambda: Session.objects.filter(id__gt=before, state="done").exists())

    # credentials that do not hold any more, and others: no session has to succeed for these to be taken
    replace_token(stage, "ended")
    until(lambda: not made.shard.is_alive())
    made.stop()
    second = Holder(stage)
    try:
        until(lambda: ClusterReach.objects.filter(state="refused").exists())
        assert Alert.objects.filter(code="cluster_refused", resolved_at__isnull=True).count() == 1
        replace_token(stage, server.token)
        until(lambda: not second.shard.is_alive())
    finally:
        second.stop()
    before = Session.objects.order_by("-id").values_list("id", flat=True).first()
    third = Holder(stage)
    try:
        until(lambda: Session.objects.filter(id__gt=before, state="done").exists())
        until(lambda: ClusterReach.objects.filter(state="connected").exists())
    finally:
        third.stop()


def test_a_cluster_of_the_own_pod_without_one_is_said_and_not_tried_without_end(stage, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(in_cluster_connection, "__defaults__", (tmp_path,))
    monkeypatch.setattr("tidesched_web.scheduling.pipeline.shard._CONNECT_AGAIN_SECONDS", 0.0)
    Cluster.objects.filter(pk=stage.cluster.pk).update(connection_kind="in_cluster")
    ClusterShard(stage.context.lease).run()
    row = ClusterReach.objects.get(cluster=stage.cluster)
    assert (row.state, "in no pod" in row.detail) == ("refused", True)


def replace_token(stage: Stage, token: str) -> None:
    cluster = Cluster.objects.get(pk=stage.cluster.pk)
    seal(cluster, token)
    cluster.save()
