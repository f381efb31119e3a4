"""What is pushed to a cluster whose Volcano runs: its webhooks refuse, its controllers close, its scheduler counts."""

from __future__ import annotations

import pytest
from django.utils import timezone

from tests.cluster.servers import eventually
from tests.web.test_drift import Scene, fields
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH
from tidesched_web.clusters.kubernetes.paths import QUEUE
from tidesched_web.clusters.kubernetes.probe import Probe
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.quota.models import Queue
from tidesched_web.quota.services.push import push_pending
from tidesched_web.scheduling.models import Alert
from tidesched_web.scheduling.pipeline import drift_watch
from tidesched_web.scheduling.pipeline.statuses import clear_queue_figures

pytestmark = pytest.mark.django_db


def edit(name: str, **values: object) -> None:
    """As an edit leaves the row: of a new version, waiting for its push."""
    row = Queue.objects.get(name=name)
    Queue.objects.filter(pk=row.pk).update(**values, version=row.version + 1, sync_state="pending")


def state_of(scene: Scene, name: str) -> str:
    return str((scene.live(name).get("status") or {}).get("state") or "")


def test_the_running_scheduler_is_found(volcano, scene: Scene) -> None:
    probe = Probe(volcano.client, mode="quota", installation="tests", now=timezone.now())
    *_, (_percent, findings) = probe.run()
    codes = {one.code for one in findings}
    assert {"volcano_runs", "card_quota_ignored"} <= codes


def test_what_the_webhook_refuses_is_drift_with_its_words(scene: Scene) -> None:
    edit("acme-online", cpu_milli=4000, deserved={"cpu": "8"})
    scene.push()
    row = scene.row("acme-online")
    assert row.what == "refused"
    assert "deserved[cpu]=8 must be <= capability[cpu]=4" in row.refusal
    assert fields(row)["spec.deserved.cpu"] == ("8", None, None)
    scene.until(lambda: Alert.objects.filter(key=drift_watch.REFUSED_KEY, resolved_at__isnull=True).exists())
    assert "acme-online" not in str(push_pending()), "it rests"
    edit("acme-online", cpu_milli=16000)
    scene.push()
    scene.until(lambda: not Alert.objects.filter(resolved_at__isnull=True).exists())
    assert scene.live("acme-online")["spec"]["deserved"] == {"cpu": "8"}


def test_a_limit_of_a_queue_that_kubectl_made_can_be_taken_back(volcano, scene: Scene) -> None:
    """kubectl owns the map, TideSched the only field in it: an apply alone leaves null, which the server refuses."""
    query = {"fieldManager": "kubectl-client-side-apply"}
    made = {
        "apiVersion": QUEUE.group_version, "kind": "Queue", "metadata": {"name": "by-hand"},
        "spec": {"weight": 1, "capability": {"cpu": "8"}},
    }  # fmt: skip
    assert volcano.client.send("POST", QUEUE.path(), made, query=query).done
    row = Queue.objects.get(name="acme-train")
    Queue.objects.create(
        cluster=row.cluster, name="by-hand", service_type="training", business_line=row.business_line, cpu_milli=8000
    )
    scene.push()
    edit("by-hand", cpu_milli=6000)
    scene.push()
    assert scene.live("by-hand")["spec"]["capability"]["cpu"] in ("6000m", "6")
    edit("by-hand", cpu_milli=None)
    scene.push()
    kept = Queue.objects.get(name="by-hand")
    assert (kept.sync_state, kept.sync_error) == ("in_step", "")
    assert "capability" not in scene.live("by-hand")["spec"]


def test_volcano_closes_what_is_asked_of_it(scene: Scene) -> None:
    edit("acme-train", state="Closed")
    scene.push()
    eventually(lambda: state_of(scene, "acme-train") == "Closed", 60)
    edit("acme-train", state="Open")
    scene.push()
    eventually(lambda: state_of(scene, "acme-train") == "Open", 60)


def test_figures_of_the_scheduler_before_hold_no_child_queue(volcano, scene: Scene) -> None:
    """Pods in a parent's status, which nobody counts any more, make the webhook refuse a child."""
    stale = {"status": {"running": 5, "allocated": {"cpu": "4", "pods": "3"}}}
    path = QUEUE.path(name="acme-train", subresource="status")
    assert volcano.client.send("PATCH", path, stale, content_type=MERGE_PATCH).done
    child = {
        "apiVersion": QUEUE.group_version, "kind": "Queue", "metadata": {"name": "child"},
        "spec": {"weight": 1, "parent": "acme-train"},
    }  # fmt: skip
    writes = ClusterWrites(volcano.client)
    eventually(lambda: "has allocated Pods" in writes.apply_queue(child, dry_run=True).message, 30)
    assert clear_queue_figures(volcano.client) >= 1
    eventually(lambda: writes.apply_queue(child, dry_run=True).done, 30)
    assert not scene.live("acme-train")["status"].get("running")
