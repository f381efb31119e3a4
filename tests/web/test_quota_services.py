"""Quota writes: sum rules under the lock, monotone after a loss, audited, one at a time under concurrency."""

import threading

import pytest
from django.db import connection, connections
from django.utils import timezone

from tests import quota_writes
from tidesched_web.audit.models import AuditEntry
from tidesched_web.audit.verification import verify_all
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.common.errors import DomainError
from tidesched_web.quota.models import CardQuota, Queue, QuotaTree
from tidesched_web.quota.selectors import queue_grants, with_card_quota
from tidesched_web.quota.services.push import queue_manifest


@pytest.fixture
def cluster(db):
    made = clusters.create(name="east", api_url="https://10.0.0.1:6443", actor="root", token="secret-of-east")
    for name, hardware in (("NVIDIA-H200", 16), ("NVIDIA-A100", 8)):
        CardType.objects.create(cluster=made, name=name, hardware=hardware, last_seen_at=timezone.now())
    return made


def owners(slug="acme"):
    tenant = quota_writes.ensure_tenant(slug=slug, actor="root")
    project = quota_writes.ensure_project(tenant=tenant, slug="chat", actor="root")
    line = quota_writes.ensure_business_line(tenant=tenant, slug="research", actor="root")
    return tenant, project, line


def inference(cluster, name, project, **cards):
    return quota_writes.create_queue(
        cluster=cluster,
        name=name,
        service_type="inference",
        project=project,
        card_quota={key.replace("_", "-"): value for key, value in cards.items()},
        actor="root",
    )


def test_a_queue_gets_the_defaults_of_its_service_type_and_its_tenant(cluster):
    tenant, project, line = owners()
    online = inference(cluster, "chat-online", project, NVIDIA_H200=4)
    offline = quota_writes.create_queue(
        cluster=cluster, name="research", service_type="training", business_line=line, actor="root"
    )
    assert (online.priority, online.reclaimable, online.tenant) == (80000, False, tenant)
    assert (offline.priority, offline.reclaimable, offline.tenant) == (20000, True, tenant)


def test_inference_may_not_exceed_hardware_but_training_may_overlap_it(cluster):
    _, project, line = owners()
    inference(cluster, "a", project, NVIDIA_H200=10)
    with pytest.raises(DomainError) as refused:
        inference(cluster, "b", project, NVIDIA_H200=7)
    assert refused.value.code == "quota_breach"
    error = refused.value.extra["errors"][0]
    assert error["pointer"] == "/edits/queue~1b/card_quota/NVIDIA-H200"
    assert (error["code"], error["requested"], error["limit"], error["in_use"]) == ("exceeds_hardware", 17, 16, 0.0)
    assert not Queue.objects.filter(name="b").exists()
    quota_writes.create_queue(
        cluster=cluster,
        name="t",
        service_type="training",
        business_line=line,
        card_quota={"NVIDIA-H200": 16},
        actor="root",
    )


def test_once_a_tenant_has_one_card_row_an_absent_card_is_zero(cluster):
    tenant, project, _ = owners()
    quota_writes.set_card_quota(
        cluster=cluster, owner=tenant, service_type="inference", cards={"NVIDIA-H200": 4}, actor="root"
    )
    with pytest.raises(DomainError) as refused:
        inference(cluster, "a", project, NVIDIA_A100=1)
    assert refused.value.extra["errors"][0]["code"] == "exceeds_tenant"


def test_lowering_a_parent_below_its_children_names_it(cluster):
    _, project, _ = owners()
    quota_writes.set_card_quota(
        cluster=cluster, owner=project, service_type="inference", cards={"NVIDIA-H200": 8}, actor="root"
    )
    inference(cluster, "a", project, NVIDIA_H200=8)
    with pytest.raises(DomainError) as refused:
        quota_writes.set_card_quota(
            cluster=cluster, owner=project, service_type="inference", cards={"NVIDIA-H200": 7}, actor="root"
        )
    error = refused.value.extra["errors"][0]
    assert (error["code"], error["sibling"]) == ("below_children", "a")


def test_after_a_node_is_lost_lowering_works_and_raising_does_not(cluster):
    _, project, _ = owners()
    first = inference(cluster, "a", project, NVIDIA_H200=8)
    inference(cluster, "b", project, NVIDIA_H200=8)
    CardType.objects.filter(name="NVIDIA-H200").update(hardware=8)
    assert quota_writes.set_card_quota(cluster=cluster, owner=first, cards={"NVIDIA-H200": 6}, actor="root")
    with pytest.raises(DomainError):
        quota_writes.set_card_quota(cluster=cluster, owner=first, cards={"NVIDIA-H200": 7}, actor="root")


def test_the_same_quota_again_writes_nothing(cluster):
    _, project, _ = owners()
    queue = inference(cluster, "a", project, NVIDIA_H200=2)
    before = (AuditEntry.objects.count(), QuotaTree.objects.get().version, queue.version)
    assert not quota_writes.set_card_quota(cluster=cluster, owner=queue, cards={"NVIDIA-H200": 2}, actor="root")
    queue.refresh_from_db()
    assert before == (AuditEntry.objects.count(), QuotaTree.objects.get().version, queue.version)


def test_an_unknown_card_is_answered_with_the_nearest(cluster):
    _, project, _ = owners()
    with pytest.raises(DomainError, match="Did you mean NVIDIA-H200"):
        inference(cluster, "a", project, NVIDIA_H20=1)


def test_a_cards_name_with_a_slash_has_an_escaped_pointer(cluster):
    _, project, _ = owners()
    CardType.objects.create(cluster=cluster, name="H200/mig-1g", hardware=1, last_seen_at=timezone.now())
    with pytest.raises(DomainError) as refused:
        quota_writes.create_queue(
            cluster=cluster,
            name="m",
            service_type="inference",
            project=project,
            card_quota={"H200/mig-1g": 2},
            actor="root",
        )
    assert refused.value.extra["errors"][0]["pointer"] == "/edits/queue~1m/card_quota/H200~1mig-1g"


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"service_type": "inference"}, "q/tenant"),
        ({"service_type": "training"}, "q/business_line"),
        ({"service_type": "batch"}, "q/service_type"),
        ({"service_type": "inference", "name": "Not_A_Name"}, "Not_A_Name"),
        ({"service_type": "inference", "weight": 0}, "q/weight"),
    ],
)
def test_a_malformed_queue_is_refused_with_its_field(cluster, fields, pointer):
    _, project, _ = owners()
    wanted = {"cluster": cluster, "name": "q", "actor": "root"} | fields
    if pointer not in ("q/tenant", "q/business_line"):
        wanted["project"] = project
    with pytest.raises(DomainError) as refused:
        quota_writes.create_queue(**wanted)
    assert refused.value.extra["errors"][0]["pointer"] == f"/edits/queue~1{pointer}"


def test_grants_become_part_of_every_queue_of_the_cluster_that_has_one(cluster):
    _, project, _ = owners()
    first, second = inference(cluster, "first", project), inference(cluster, "second", project)

    def namespaces():
        rows = with_card_quota(Queue.objects.filter(cluster=cluster)).select_related("tenant", "project")
        rows = rows.select_related("business_line").annotate(granted=queue_grants()).order_by("name")
        return [queue_manifest(row)["metadata"]["annotations"].get("tidesched.io/namespaces") for row in rows]

    assert namespaces() == [None, None]
    Queue.objects.update(sync_state="in_step")
    quota_writes.ensure_grant(queue=first, namespace="chat", actor="root")
    assert namespaces() == ["chat", ""]
    assert set(Queue.objects.values_list("sync_state", flat=True)) == {"pending"}
    Queue.objects.update(sync_state="in_step")
    version = Queue.objects.get(pk=second.pk).version
    quota_writes.ensure_grant(queue=second, namespace="web", actor="root")
    quota_writes.ensure_grant(queue=second, namespace="chat", actor="root")
    assert namespaces() == ["chat", "chat,web"]
    assert list(Queue.objects.order_by("name").values_list("sync_state", flat=True)) == ["in_step", "pending"]
    assert Queue.objects.get(pk=second.pk).version == version + 2


@pytest.mark.django_db(transaction=True)
def test_eight_writers_never_exceed_the_limit_together():
    cluster = Cluster.objects.create(name="race", slug="race", api_url="https://10.0.0.2")
    CardType.objects.create(cluster=cluster, name="NVIDIA-H200", hardware=20, last_seen_at=timezone.now())
    _, project, _ = owners("racers")
    queues = [inference(cluster, f"q{index}", project) for index in range(8)]
    start, refusals = threading.Barrier(8), []

    def write(queue):
        try:
            start.wait()
            quota_writes.set_card_quota(cluster=cluster, owner=queue, cards={"NVIDIA-H200": 5}, actor="root")
        except DomainError as error:
            refusals.append(error.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=write, args=(queue,)) for queue in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refusals == ["quota_breach"] * 4
    assert sum(CardQuota.objects.values_list("cards", flat=True)) == 20
    assert QuotaTree.objects.get(cluster=cluster).version == 1 + 8 + 4
    assert all(report.intact for report in verify_all())
    connection.close()
