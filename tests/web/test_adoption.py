"""Adoption on a cluster that answers: a queue made by other means is found, taken over, pushed, and loses nothing."""

import pytest
from django.test import Client
from django.utils import timezone

from tests import quota_writes
from tests.cluster.servers import SimulatedServer
from tidesched_web.accounts.models import User
from tidesched_web.accounts.selectors import access_of
from tidesched_web.accounts.services import create_user
from tidesched_web.changes import adoption, services
from tidesched_web.changes.models import QuotaChange
from tidesched_web.changes.selectors import read_tree
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.models import CardType, Cluster, ConnectionKind
from tidesched_web.quota.models import Queue
from tidesched_web.quota.tasks import push_pending

FOREIGN = {
    "apiVersion": QUEUE.group_version,
    "kind": "Queue",
    "metadata": {
        "name": "old-training",
        "labels": {"team": "blue"},
        "annotations": {"volcano.sh/card.quota": '{"NVIDIA-H200":6}', "note": "made by hand"},
    },
    "spec": {"weight": 4, "reclaimable": True, "capability": {"cpu": "8", "nvidia.com/gpu": "6"}},
}


@pytest.fixture
def server(tmp_path):
    running = SimulatedServer(tmp_path)
    running.start()
    yield running
    if running.running:
        running.kill()


def test_an_adopted_queue_keeps_what_nobody_here_writes(db, server):
    client = server.client()
    assert client.send("POST", QUEUE.path(), FOREIGN).done
    token = server.token_file.read_text(encoding="utf-8").strip()
    cluster = clusters.create(name="East", slug="east", api_url=server.url, token=token, mode="quota", actor="root")
    CardType.objects.create(cluster=cluster, name="NVIDIA-H200", hardware=16, last_seen_at=timezone.now())
    quota_writes.ensure_business_line(tenant=None, slug="research", actor="root")
    admin = access_of(create_user(username="ann", password=None, platform_role="admin", actor="root"))

    tree = read_tree(cluster)
    (found,) = adoption.unmanaged(cluster, cluster.queues.values_list("name", flat=True))
    document = adoption.adopted(found, tenant=None, project=None, business_line="research")
    acts = {line.key: line.act for line in adoption.dry_view(cluster, found, document, tree)}
    assert acts["metadata.labels.team"] == acts["spec.capability.nvidia.com/gpu"] == "stays"
    assert acts["metadata.labels.tidesched.io/business-line"] == "written"
    assert acts["metadata.annotations.volcano.sh/card.quota"] == acts["spec.weight"] == "same"

    services.carry_out(
        cluster=cluster, edits={"queue/old-training": document}, access=admin, reason="ours now", source="import"
    )
    push_pending()
    queue = Queue.objects.get(name="old-training")
    assert (queue.sync_state, queue.weight, queue.cpu_milli, queue.service_type) == ("in_step", 4, 8000, "training")
    live = client.get(QUEUE.path(name="old-training"))
    assert live["metadata"]["labels"] == {"team": "blue", "tidesched.io/business-line": "research"}
    assert live["metadata"]["annotations"]["note"] == "made by hand"
    assert live["spec"]["capability"] == {"cpu": "8000m", "nvidia.com/gpu": "6"}
    assert adoption.unmanaged(cluster, cluster.queues.values_list("name", flat=True)) == []


@pytest.mark.parametrize("cards", ['{"a": 0.5}', '{"a": Infinity}', '{"a": 1%s}' % ("0" * 9), "[" * 100_000, "[1]"])
def test_a_card_quota_that_cannot_be_promised_is_named(cards):
    found = adoption.read({"metadata": {"name": "q", "annotations": {"volcano.sh/card.quota": cards}}})
    wanted = [] if cards.endswith("00}") else ["metadata.annotations[volcano.sh/card.quota]"]
    assert found.unread == wanted


def test_a_cluster_that_does_not_answer_is_said(db, server):
    token = server.token_file.read_text(encoding="utf-8").strip()
    cluster = clusters.create(name="East", slug="east", api_url=server.url, token=token, mode="quota", actor="root")
    server.kill()
    with pytest.raises(Exception, match="does not say which queues it has"):
        adoption.unmanaged(cluster, [])


def test_a_cluster_that_only_a_pod_of_its_own_reaches_is_said_on_the_page(db):
    cluster = clusters.create(name="East", slug="east", api_url="https://10.0.0.1:6443", mode="quota", actor="root")
    Cluster.objects.filter(pk=cluster.pk).update(connection_kind=ConnectionKind.IN_CLUSTER)
    client = Client()
    client.force_login(create_user(username="ann", password=None, platform_role="admin", actor="root"))
    page = client.get("/clusters/east/adoption/")
    assert (page.status_code, "does not say which queues it has" in page.content.decode()) == (503, True)


ORDINARY = {
    "apiVersion": QUEUE.group_version,
    "kind": "Queue",
    "metadata": {"name": "team.a"},
    "spec": {"weight": 1, "reclaimable": True, "capability": {"cpu": "64", "nvidia.com/gpu": "8"}},
}


@pytest.fixture
def stock(db, server, monkeypatch):
    """A cluster whose Volcano passes over card quotas, with an ordinary queue of its own."""
    client = server.client()
    assert client.send("POST", QUEUE.path(), ORDINARY, query={"fieldManager": "kubectl-create"}).done
    token = server.token_file.read_text(encoding="utf-8").strip()
    cluster = clusters.create(name="East", slug="east", api_url=server.url, token=token, mode="quota", actor="root")
    monkeypatch.setattr("tidesched_web.quota.push_selectors.card_quota_enforced", lambda _cluster: False)
    CardType.objects.create(
        cluster=cluster, name="NVIDIA-H200", resource="nvidia.com/gpu", hardware=16, last_seen_at=timezone.now()
    )
    quota_writes.ensure_business_line(tenant=None, slug="research", actor="root")
    return cluster, client, access_of(create_user(username="ann", password=None, platform_role="admin", actor="root"))


def test_the_limit_of_an_ordinary_queue_becomes_its_card_quota(stock):
    cluster, client, admin = stock
    tree = read_tree(cluster)
    (found,) = adoption.unmanaged(cluster, cluster.queues.values_list("name", flat=True))
    assert found.document["card_quota"] == {"NVIDIA-H200": 8}
    document = adoption.adopted(found, tenant=None, project=None, business_line="research")
    acts = {line.key: line.act for line in adoption.dry_view(cluster, found, document, tree)}
    assert acts["spec.capability.nvidia.com/gpu"] == "same"
    services.carry_out(
        cluster=cluster, edits={"queue/team.a": document}, access=admin, reason="ours now", source="import"
    )
    push_pending()
    queue = Queue.objects.get(name="team.a")
    assert (queue.sync_state, queue.sync_error) == ("in_step", "")
    assert client.get(QUEUE.path(name="team.a"))["spec"]["capability"]["nvidia.com/gpu"] == "8"


def test_where_a_resource_counts_several_cards_a_person_says_which_is_meant(stock, client):
    cluster, _client, _admin = stock
    CardType.objects.create(
        cluster=cluster, name="NVIDIA-H800", resource="nvidia.com/gpu", hardware=8, last_seen_at=timezone.now()
    )
    tree = read_tree(cluster)
    (found,) = adoption.unmanaged(cluster, cluster.queues.values_list("name", flat=True))
    assert (found.document["card_quota"], found.unclear) == ({}, {"nvidia.com/gpu": ["NVIDIA-H200", "NVIDIA-H800"]})
    left = adoption.adopted(found, tenant=None, project=None, business_line="research")
    acts = {line.key: line.act for line in adoption.dry_view(cluster, found, left, tree)}
    assert acts["spec.capability.nvidia.com/gpu"] == "contested", "the preview says what the push would meet"
    client.force_login(User.objects.get(username="ann"))
    owner = next(key for key in tree if key.startswith("business-line/"))
    sent = {"owner-team.a": owner, "reason": "ours now", "act": "adopt"}
    refused = client.post("/clusters/east/adoption/", sent)
    assert refused.status_code == 400
    assert "nvidia.com/gpu counts several card types" in refused.content.decode()
    taken = client.post("/clusters/east/adoption/", sent | {"card-team.a-nvidia.com/gpu": "NVIDIA-H800"})
    assert taken.status_code == 302
    assert QuotaChange.objects.get().edits["queue/team.a"]["card_quota"] == {"NVIDIA-H800": 8}
