"""What is pushed to a cluster whose Volcano runs: its webhooks refuse, its controllers close, its scheduler counts.

People edit by REST, and a worker's part is done in this process: `changes.sweep` carries what was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from tests.api.cast import ApiClient
from tests.cluster.objects import node
from tests.volcano.real_volcano import RealVolcano
from tests.waiting import until
from tests.web.changes.ground import A100, H200
from tests.web.test_drift import Scene, fields
from tidesched_web.changes import services as changes
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.cache import ClusterCache
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH
from tidesched_web.clusters.kubernetes.paths import NAMESPACE, NODE, POD, POD_GROUP, QUEUE
from tidesched_web.clusters.kubernetes.probe import Probe
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.clusters.models import CardType, Cluster
from tidesched_web.engine.demo import FOUNDING_POLICY
from tidesched_web.jobs import running
from tidesched_web.jobs.models import Job
from tidesched_web.quota.models import Queue
from tidesched_web.quota.services.push import push_pending
from tidesched_web.scheduling.models import Alert
from tidesched_web.scheduling.pipeline import drift_watch, lease, session
from tidesched_web.scheduling.pipeline.context import ClusterContext
from tidesched_web.scheduling.pipeline.statuses import clear_queue_figures

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(scene: Scene) -> ApiClient:
    return ApiClient(scene.ground.users["root"])


def edit(admin: ApiClient, name: str, **document: Any) -> None:
    """As a platform admin edits a queue by REST; then a worker carries it to the cluster."""
    address = f"queues/{Queue.objects.get(name=name).pk}/"
    etag = admin.get(f"/api/v1/{address}").headers["ETag"]
    answer = admin.change("PATCH", address, {**document, "reason": "as was asked"}, If_Match=etag)
    assert answer.status_code in (200, 202), answer.content
    changes.sweep()


def connection_test(admin: ApiClient, cluster: Cluster) -> None:
    """A connection test in the cluster's mode, which finds the Volcano that runs."""
    assert admin.send(f"clusters/{cluster.pk}/connection/test/", {"mode": "quota"}).status_code == 202
    job = Job.objects.order_by("-pk").first()
    assert job is not None
    running.run(job.pk)


def state_of(scene: Scene, name: str) -> str:
    return str((scene.live(name).get("status") or {}).get("state") or "")


def test_the_running_scheduler_is_found(volcano: RealVolcano, scene: Scene) -> None:
    probe = Probe(volcano.client, mode="quota", installation="tests", now=timezone.now())
    *_, (_percent, findings) = probe.run()
    codes = {one.code for one in findings}
    assert {"volcano_runs", "card_quota_ignored"} <= codes


def test_mode_schedule_is_refused_while_volcano_schedules(scene: Scene, admin: ApiClient) -> None:
    connection_test(admin, scene.cluster)
    address = f"clusters/{scene.cluster.pk}/"
    etag = admin.get(f"/api/v1/{address}").headers["ETag"]
    refused = admin.change("PATCH", address, {"mode": "schedule", "reason": "Take over."}, If_Match=etag)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (409, "/mode")
    assert Cluster.objects.get(pk=scene.cluster.pk).mode == "quota"


@pytest.fixture
def waiting(volcano: RealVolcano, scene: Scene) -> Iterator[str]:
    """A gang of two pods that Volcano's scheduler looks after, and that no node can take."""
    name, client = "team-of-two", volcano.client
    client.send("POST", NAMESPACE.path(), {"metadata": {"name": "acme"}})
    client.send("POST", NODE.path(), node("n0", 8))
    group = {
        "apiVersion": POD_GROUP.group_version, "kind": "PodGroup", "metadata": {"name": name},
        "spec": {"minMember": 2, "queue": "acme-train"},
    }  # fmt: skip
    assert client.send("POST", POD_GROUP.path("acme"), group).done
    requests = {"cpu": "4000", "memory": "1Gi"}
    container = {"name": "main", "image": "example/none", "resources": {"requests": requests}}
    for number in range(2):
        pod = {
            "metadata": {"name": f"{name}-{number}", "annotations": {"scheduling.k8s.io/group-name": name}},
            "spec": {"schedulerName": "volcano", "containers": [container]},
        }
        assert client.send("POST", POD.path("acme"), pod).done
    yield name
    for number in range(2):
        client.send("DELETE", POD.path("acme", f"{name}-{number}"))
    client.send("DELETE", POD_GROUP.path("acme", name))
    client.send("DELETE", NODE.path(name="n0"))


def test_in_mode_quota_the_gangs_of_volcano_s_scheduler_are_gangs(scene: Scene, admin: ApiClient, waiting: str) -> None:
    """With the scheduler name of another mode alone each of them would read "0 of 2 pods are there"."""
    clusters.set_policy(cluster=scene.cluster, text=FOUNDING_POLICY, actor="test")
    held = lease.take(scene.cluster.pk, "test")
    assert held is not None
    # Simulated is what lets it be on this machine; its clock is that of the machine, as of any real cluster.
    Cluster.objects.filter(pk=scene.cluster.pk).update(simulated=False, clock_anchor=None, clock_wall_anchor=None)
    cluster = Cluster.objects.get(pk=scene.cluster.pk)
    cache = ClusterCache(scene.client, schedulers=cluster.schedulers)
    cache.start()
    try:
        assert cache.wait_synced(30)
        context = ClusterContext(cluster, held, scene.client, cache)
        context.load()
        session.run(context, trigger="test")
    finally:
        cache.stop()
    (gang,) = admin.read("gangs/", cluster="east", name=waiting)["results"]
    assert (gang["namespace"], gang["queue"]["name"], gang["min_member"]) == ("acme", "acme-train", 2)
    assert gang["reason"]["code"] != "GangIncomplete", gang["reason"]
    assert len(admin.read(f"gangs/{gang['id']}/pods/")["results"]) == 2


def test_the_plan_names_what_the_webhook_would_refuse(scene: Scene, admin: ApiClient) -> None:
    edits = {"queue/acme-online": {"cpu_milli": 4000, "deserved": {"cpu": "8"}}}
    made = admin.send("quota-changes/", {"cluster": "east", "edits": edits, "reason": "a try"})
    assert made.status_code == 201, made.content
    address = f"quota-changes/{made.json()['id']}/plan/"
    said = until(lambda: (plan := admin.read(address).get("server")) and plan["checked"] and plan)
    (refused,) = said["refused"]
    assert (refused["kind"], refused["name"]) == ("Queue", "acme-online")
    assert "deserved[cpu]=8 must be <= capability[cpu]=4" in refused["detail"]
    assert "deserved" not in scene.live("acme-online")["spec"], "a dry run writes nothing"


def test_what_the_webhook_refuses_is_drift_with_its_words(scene: Scene, admin: ApiClient) -> None:
    edit(admin, "acme-online", cpu_milli=4000, deserved={"cpu": "8"})
    row = scene.row("acme-online")
    assert row.what == "refused"
    assert "deserved[cpu]=8 must be <= capability[cpu]=4" in row.refusal
    assert fields(row)["spec.deserved.cpu"] == ("8", None, None)
    scene.until(lambda: Alert.objects.filter(key=drift_watch.REFUSED_KEY, resolved_at__isnull=True).exists())
    assert "acme-online" not in str(push_pending()), "it rests"
    edit(admin, "acme-online", cpu_milli=16000)
    scene.until(lambda: not Alert.objects.filter(resolved_at__isnull=True).exists())
    assert scene.live("acme-online")["spec"]["deserved"] == {"cpu": "8"}


def test_a_second_card_model_keeps_the_limit_of_their_resource(scene: Scene, admin: ApiClient) -> None:
    """This Volcano knows no card quotas: both models count under one resource, whose limit is the sum of the two."""
    connection_test(admin, scene.cluster)
    CardType.objects.filter(cluster=scene.cluster, name=H200).update(resource="nvidia.com/gpu")  # as nodes show it
    edit(admin, "acme-train", card_quota={H200: 6})
    limit = scene.live("acme-train")["spec"]["capability"]
    assert limit["nvidia.com/gpu"] == "6"
    CardType.objects.filter(cluster=scene.cluster, name=A100).update(resource="nvidia.com/gpu")
    edit(admin, "acme-train", card_quota={A100: 2})
    assert scene.live("acme-train")["spec"]["capability"]["nvidia.com/gpu"] == "8"
    edit(admin, "acme-train", card_quota={H200: 1})
    assert scene.live("acme-train")["spec"]["capability"]["nvidia.com/gpu"] == "3"


def test_a_limit_of_a_queue_that_kubectl_made_can_be_taken_back(
    volcano: RealVolcano, scene: Scene, admin: ApiClient
) -> None:
    """kubectl owns the map, TideSched the only field in it: an apply alone leaves null, which the server refuses."""
    query = {"fieldManager": "kubectl-client-side-apply"}
    made = {
        "apiVersion": QUEUE.group_version, "kind": "Queue", "metadata": {"name": "by-hand"},
        "spec": {"weight": 1, "capability": {"cpu": "8"}},
    }  # fmt: skip
    assert volcano.client.send("POST", QUEUE.path(), made, query=query).done
    wanted = {
        "cluster": "east", "name": "by-hand", "service_type": "training", "tenant": "acme",
        "business_line": "research", "cpu_milli": 8000, "reason": "It is used.",
    }  # fmt: skip
    made = admin.send("queues/", wanted)
    assert made.status_code in (201, 202), made.content
    changes.sweep()
    edit(admin, "by-hand", cpu_milli=6000)
    assert scene.live("by-hand")["spec"]["capability"]["cpu"] in ("6000m", "6")
    edit(admin, "by-hand", cpu_milli=None)
    kept = Queue.objects.get(name="by-hand")
    assert (kept.sync_state, kept.sync_error) == ("in_step", "")
    assert "capability" not in scene.live("by-hand")["spec"]


def test_volcano_closes_what_is_asked_of_it(scene: Scene, admin: ApiClient) -> None:
    edit(admin, "acme-train", state="Closed")
    until(lambda: state_of(scene, "acme-train") == "Closed")
    edit(admin, "acme-train", state="Open")
    until(lambda: state_of(scene, "acme-train") == "Open")


def test_figures_of_the_scheduler_before_hold_no_child_queue(volcano: RealVolcano, scene: Scene) -> None:
    """Pods in a parent's status, which nobody counts any more, make the webhook refuse a child."""
    stale = {"status": {"running": 5, "allocated": {"cpu": "4", "pods": "3"}}}
    path = QUEUE.path(name="acme-train", subresource="status")
    assert volcano.client.send("PATCH", path, stale, content_type=MERGE_PATCH).done
    child = {
        "apiVersion": QUEUE.group_version, "kind": "Queue", "metadata": {"name": "child"},
        "spec": {"weight": 1, "parent": "acme-train"},
    }  # fmt: skip
    writes = ClusterWrites(volcano.client)
    until(lambda: "has allocated Pods" in writes.apply_queue(child, dry_run=True).message)
    assert clear_queue_figures(volcano.client) >= 1
    until(lambda: writes.apply_queue(child, dry_run=True).done)
    assert not scene.live("acme-train")["status"].get("running")
