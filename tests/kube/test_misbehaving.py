"""A cluster that misbehaves, as a living installation meets it: refusals are told, others go on, all heals."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections

from tests.cluster.objects import CARD, deployment
from tests.kube.fault_proxy import Fault, FaultProxy
from tests.kube.living import Living
from tests.kube.real_server import RealServer
from tests.kube.shared import stand_aside, stand_by
from tests.waiting import until
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH
from tidesched_web.clusters.kubernetes.installation_lease import LEASE_SECONDS, InstallationLease
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, JOB, NAMESPACE, NODE, POD, QUEUE
from tidesched_web.quota.models import Drift, Queue
from tidesched_web.quota.services import push
from tidesched_web.scheduling.models import Session
from tidesched_web.workloads.models import Gang

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def living(server: RealServer, proxy: FaultProxy, transactional_db: None) -> Iterator[Living]:
    made = Living(server, proxy)
    yield made
    made.close()
    connections.close_all()


def refused(part: str, *, method: str = "", code: int = 403) -> Fault:
    return Fault(code=code, reason="Forbidden", method=method, part=part)


def test_a_gang_whose_binds_are_refused_gives_its_cards_to_others(living: Living) -> None:
    fault = living.proxy.spoil(refused("fenced-"))
    fault.part = "/pods/fenced-"  # bindings and statuses of these pods, whatever they are
    living.train("fenced", 12)
    until(living.alert("write_refused", "create pods/binding", "work/fenced-", "Forbidden by the test"))
    until(
        lambda: (
            Gang.objects.filter(name__startswith="fenced", reason_code="BackingOff").exclude(phase="Running").first()
        )
    )
    assert living.group("fenced").get("status", {}).get("phase") != "Running"
    living.train("other", 8)
    until(lambda: living.running("other") == 8)
    assert living.bound("fenced") == 0
    seen = fault.seen
    ended = Session.objects.filter(state="done").count()
    until(lambda: Session.objects.filter(state="done").count() > ended + 20)
    assert living.direct.get(QUEUE.path(name="train"))["status"]["allocated"].get("nvidia.com/gpu") in ("8", None)
    assert fault.seen - seen < 100
    living.end("other")
    living.proxy.heal()
    until(lambda: living.running("fenced") == 12, 90)
    until(lambda: "write_refused" not in living.alerts(), story=living.story)
    assert living.bound_twice() == []


@pytest.mark.parametrize("what", ["403", "hangs"])
def test_a_queue_whose_status_cannot_be_written_delays_nobody(living: Living, what: str) -> None:
    part = "/queues/train/status"
    living.proxy.spoil(refused(part) if what == "403" else Fault(part=part, delay=9.0, code=504, reason="Timeout"))
    living.train("first", 2)
    until(lambda: living.running("first") == 2)
    until(living.alert("write_refused", "patch queues/status", "train"))
    living.train("second", 2)
    until(lambda: living.running("second") == 2)
    assert "session_failed" not in living.alerts()
    living.proxy.heal()
    until(lambda: "write_refused" not in living.alerts(), 90)


def test_podgroups_that_may_not_be_written_are_told(living: Living) -> None:
    living.proxy.spoil(refused("/podgroups", method="PATCH"))
    living.train("first", 2)
    until(living.alert("write_refused", "podgroups", "Forbidden by the test"))
    living.proxy.heal()
    until(lambda: living.running("first") == 2 and "write_refused" not in living.alerts(), 90)


def test_podgroups_that_a_resource_quota_refuses_are_told_and_others_go_on(living: Living) -> None:
    living.direct.send("POST", NAMESPACE.path(), {"metadata": {"name": "cramped"}})
    path, hard = "/api/v1/namespaces/cramped/resourcequotas", {"count/podgroups.scheduling.volcano.sh": "0"}
    assert living.direct.send("POST", path, {"metadata": {"name": "none"}, "spec": {"hard": hard}}).done
    status = {"status": {"hard": hard, "used": hard}}  # as kube-controller-manager would write it
    assert living.direct.send("PATCH", f"{path}/none/status", status, content_type=MERGE_PATCH).done
    try:
        manifest = deployment("held", replicas=2, queue="serve")
        manifest["spec"]["template"]["spec"]["priorityClassName"] = "pc-high"
        assert living.direct.send("POST", DEPLOYMENT.path("cramped"), manifest).done
        until(living.alert("write_refused", "patch podgroups", "cramped/", "exceeded quota: none"), story=living.story)
        living.serve("other", 2)
        until(lambda: living.running("other") == 2, story=living.story)
        assert "session_failed" not in living.alerts()
    finally:
        assert living.direct.send("DELETE", f"{path}/none").done
    pods = POD.path("cramped")
    until(lambda: [pod["status"]["phase"] for pod in living.direct.get(pods)["items"]] == ["Running"] * 2, 120)
    until(lambda: "write_refused" not in living.alerts(), 90, story=living.story)


def test_a_pod_that_a_finalizer_holds_is_told(living: Living, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidesched_web.scheduling.pipeline.shard.STAYS_SECONDS", 3.0)
    living.train("held", 2)
    until(lambda: living.running("held") == 2)
    held = POD.path("work", living.pods("held")[0]["metadata"]["name"])
    for finalizers in (["example.com/wait"], None):
        patch = {"metadata": {"finalizers": finalizers}}
        assert living.direct.send("PATCH", held, patch, content_type=MERGE_PATCH).done
        if finalizers:
            living.direct.send("DELETE", held)
            until(living.alert("pod_stays", "work/held-", "example.com/wait"), story=living.story)
    until(lambda: "pod_stays" not in living.alerts(), story=living.story)


def test_what_a_webhook_makes_of_a_quota_is_drift(living: Living) -> None:
    """As a webhook does it: in the request itself, before the server answers."""

    def set_back() -> None:
        patch = {"metadata": {"annotations": {"volcano.sh/card.quota": json.dumps({CARD: 16})}}}
        query = {"fieldManager": "webhook"}
        assert living.direct.send("PATCH", QUEUE.path(name="train"), patch, query=query, content_type=MERGE_PATCH).done

    living.proxy.spoil(Fault(method="PATCH", part="/queues/train?", done=set_back, times=1))
    living.approve("train", 4)
    push.push_pending()
    row = until(lambda: Drift.objects.exclude(state="resolved").filter(name="train").first())
    assert (row.fields[0]["live"], row.fields[0]["intent"]) == ("16", "4")
    until(lambda: Queue.objects.get(name="train").sync_state == "drifted")


@pytest.mark.parametrize("other_server", [False, True])
def test_a_cluster_that_was_restored_is_read_anew(living: Living, other_server: bool) -> None:
    server = living.server
    living.train("old", 2)
    until(lambda: living.running("old") == 2)
    stand_aside()
    living.proxy.vanish()
    server.kill_api()
    server._etcd.end(signal.SIGKILL)
    copy = Path(tempfile.mkdtemp(prefix="etcd-", dir="/dev/shm")) / "data"
    shutil.copytree(server._data, copy)
    server.start_etcd()
    server.start_api()
    stand_by(server, grace=0.3)
    living.proxy.start()
    living.direct.send("DELETE", JOB.path("work", "old"))
    living.train("new", 8)
    until(lambda: living.running("new") == 8, 120)
    living.approve("train", 12)
    push.push_pending()
    until(lambda: living.quota("train") == 12)
    for number in range(60):
        patch = {"metadata": {"annotations": {"x": str(number)}}}
        living.direct.send("PATCH", NODE.path(name="n0"), patch, content_type=MERGE_PATCH)
    renewed = living.lease_version()
    until(lambda: living.lease_version() != renewed)
    stand_aside()
    server.kill_api()
    server._etcd.end(signal.SIGKILL)
    shutil.rmtree(server._data)
    shutil.copytree(copy, server._data)
    server.start_etcd()
    server.start_api()
    if other_server:  # the same objects, and more versions than before: only its uid tells it from the first
        for number in range(400):
            patch = {"metadata": {"annotations": {"y": str(number)}}}
            living.direct.send("PATCH", NODE.path(name="n0"), patch, content_type=MERGE_PATCH)
    stand_by(server, grace=0.3)
    until(living.alert("went_back"), 60, story=living.story)
    until(lambda: living.cached() == living.listed(), 60)
    row = until(lambda: Drift.objects.exclude(state="resolved").filter(name="train").first())
    assert (row.fields[0]["live"], row.fields[0]["intent"]) == ("16", "12")
    living.train("after", 2)
    until(lambda: living.running("after") == 2, 120)


def test_only_who_holds_the_lease_writes(living: Living) -> None:
    living.holder.stop()
    other = InstallationLease("another")
    until(lambda: other.hold(living.direct).held)
    written = len(living.proxy.requests)
    living.approve("train", 4)
    report = next(iter(push.push_pending().values()))
    assert "held by another" in report.unreachable
    writes = [row for row in living.proxy.requests[written:] if row[0] != "GET"]
    assert (writes, living.quota("train")) == ([], 16)
    until(lambda: next(iter(push.push_pending().values())).written == 1, 90)
    assert living.quota("train") == 4


def test_clocks_decide_nothing_about_the_lease(living: Living, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "tidesched_web.clusters.kubernetes.installation_lease.time.time"
    ahead = InstallationLease("ahead")
    monkeypatch.setattr(module, lambda: 4e9)
    for _ in range(3):
        assert not ahead.hold(living.direct).held
    monkeypatch.undo()
    living.holder.stop()
    assert LEASE_SECONDS < 60
    until(lambda: ahead.hold(living.direct).held)


def test_a_server_that_is_connected_already_is_known_by_its_uid(living: Living) -> None:
    until(lambda: type(living.stage.cluster).objects.get(pk=living.stage.cluster.pk).server_uid)
    from tidesched_web.clusters.connection_selectors import same_server
    from tidesched_web.clusters.kubernetes.probe import server_uid

    uid = server_uid(living.direct)
    found = same_server(uid, but=None)
    assert found is not None
    assert found.name == "stage"
    assert clusters.create(name="twin", api_url=living.server.url, actor="test", token="x") is not None


def test_a_server_that_hangs_is_told_while_its_watches_are_still_open(living: Living) -> None:
    living.train("first", 2)
    until(lambda: living.running("first") == 2)
    living.server.pause_api()
    try:
        until(living.alert("cluster_unreachable"), 25, story=living.story)
    finally:
        living.server.resume_api()
    until(lambda: not living.alerts(), story=living.story)
    living.train("second", 2)
    until(lambda: living.running("second") == 2)


def test_evictions_that_are_refused_are_told_until_they_are_not(living: Living) -> None:
    living.train("runs", 16)
    until(lambda: living.running("runs") == 16)
    fault = living.proxy.spoil(refused("/eviction", method="POST"))
    living.serve("web", 8)
    until(living.alert("write_refused", "create pods/eviction"), story=living.story)
    seen = fault.seen
    until(lambda: fault.seen > seen or "write_refused" not in living.alerts(), story=living.story)
    assert "write_refused" in living.alerts()
    living.proxy.heal()
    until(lambda: living.running("web") == 8, story=living.story)
    until(lambda: "write_refused" not in living.alerts(), story=living.story)
