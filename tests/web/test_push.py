"""The quota push against a (simulated) API server: what is written, what is left alone, and what is not forced."""

from __future__ import annotations

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.cluster.servers import SimulatedServer
from tidesched_web.changes.server_check import server_check
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.client import APPLY_PATCH, MERGE_PATCH
from tidesched_web.clusters.kubernetes.paths import PRIORITY_CLASS, QUEUE
from tidesched_web.clusters.kubernetes.pressure import run_all
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota import services as quota
from tidesched_web.quota.models import Drift, PushedObject, Queue
from tidesched_web.quota.services.push import push_cluster, push_pending
from tidesched_web.quota.services.push_object import bring
from tidesched_web.workloads.models import Gang


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = SimulatedServer(tmp_path_factory.mktemp("push"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(server):
    made = server.client()
    yield made
    made.close()


class Ground:
    """A cluster with two queues and a priority class whose names nobody else has."""

    def __init__(self, server, mode):
        mark = uuid.uuid4().hex[:6]
        self.server = server
        self.cluster = clusters.create(
            name=f"push-{mark}", api_url=server.url, actor="test", mode=mode, token=server.token, simulated=True
        )
        tenant = quota.ensure_tenant(slug="acme", actor="test")
        self.line = quota.ensure_business_line(tenant=tenant, slug="research", actor="test")
        clusters.ensure_card_type(cluster=self.cluster, name="NVIDIA-H200", actor="test", resource="nvidia.com/gpu")
        self.cluster.card_types.update(hardware=10_000)
        self.names = [f"a-{mark}", f"b-{mark}"]
        for name in self.names:
            self.queue(name)
        self.pc = f"pc-{mark}"
        quota.ensure_priority_class(cluster=self.cluster, name=self.pc, value=70_000, actor="test")

    def queue(self, name):
        quota.create_queue(
            cluster=self.cluster, name=name, service_type="training", card_quota={"NVIDIA-H200": 8}, actor="test",
            business_line=self.line,
        )  # fmt: skip

    def row(self, name):
        return Queue.objects.get(cluster=self.cluster, name=name)

    def weigh(self, name, weight):
        """As an edit does."""
        Queue.objects.filter(pk=self.row(name).pk).update(
            weight=weight, version=self.row(name).version + 1, sync_state="pending"
        )

    def push(self, **more):
        return push_cluster(cluster=Cluster.objects.get(pk=self.cluster.pk), **more)


@pytest.fixture
def ground(db, server):
    return Ground(server, "quota")


def sent(server):
    return len(server.writes())


def test_a_push_without_changes_sends_no_write(ground, server):
    first = ground.push(everything=True)
    assert (first.pushed, first.written, first.refused, first.unreachable) == (3, 3, {}, "")
    before = sent(server)
    again = ground.push(everything=True)
    assert (again.pushed, again.written) == (3, 0)
    assert sent(server) == before
    assert {ground.row(name).sync_state for name in ground.names} == {"in_step"}


def test_a_push_of_many_queues_takes_few_statements(ground, server):
    made = [f"{ground.names[0]}-{index}" for index in range(30)]
    for name in made:
        ground.queue(name)
    with CaptureQueriesContext(connection) as queries:
        report = ground.push()
    assert (report.pushed, report.refused, report.unreachable) == (33, {}, "")
    assert len(queries) < 20
    rows = Queue.objects.filter(cluster=ground.cluster)
    assert {(row.sync_state, row.live_state, row.pushed_version == row.version) for row in rows} == {
        ("in_step", "Open", True)
    }
    assert all(row.pushed_at for row in rows)


def test_what_others_own_is_left_alone(ground, client):
    ground.push()
    name = ground.names[0]
    path = QUEUE.path(name=name)
    note = {
        "metadata": {"annotations": {"example.org/owner": "ops"}},
        "spec": {"guarantee": {"resource": {"cpu": "1"}}},
    }
    assert client.send("PATCH", path, note, content_type=MERGE_PATCH, query={"fieldManager": "kubectl-edit"}).done
    ground.weigh(name, 7)
    assert ground.push().written == 1
    live = client.get(path)
    assert live["spec"]["weight"] == 7
    assert live["spec"]["guarantee"] == {"resource": {"cpu": "1"}}
    assert live["metadata"]["annotations"]["example.org/owner"] == "ops"


def test_what_was_changed_by_hand_is_not_overwritten_until_a_person_asks(ground, client):
    ground.push()
    name = ground.names[0]
    path = QUEUE.path(name=name)
    edit = {"spec": {"weight": 99}}
    assert client.send("PATCH", path, edit, content_type=MERGE_PATCH, query={"fieldManager": "kubectl-edit"}).done
    ground.weigh(name, 7)
    report = ground.push()
    assert list(report.refused) == [f"Queue {name}"]
    row = ground.row(name)
    assert (row.sync_state, row.sync_error) == ("failed", "Not overwritten: .spec.weight is set by kubectl-edit")
    assert client.get(path)["spec"]["weight"] == 99
    now = timezone.now()
    Drift.objects.create(
        cluster=ground.cluster, kind="Queue", name=name, what="changed", state="open", digest="d", found_at=now,
        changed_at=now, asked="pushed",
    )  # fmt: skip
    assert ground.push().written == 1
    assert client.get(path)["spec"]["weight"] == 7
    assert ground.row(name).sync_state == "in_step"


def test_an_adopted_queue_may_be_changed_although_its_maker_owns_the_old_value(ground, client):
    name = ground.names[0]
    ground.push(queues_named=[])
    body = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
    assert client.send("POST", QUEUE.path(), body | {"spec": {"weight": 1}}, query={"fieldManager": "helm"}).done
    assert ground.push(queues_named=[name]).written == 1, "the same values are owned together"
    ground.weigh(name, 7)
    report = ground.push(queues_named=[name])
    assert (report.written, report.refused) == (1, {})
    assert client.get(QUEUE.path(name=name))["spec"]["weight"] == 7
    # and whoever applies the old value again has to say that it takes the field
    outcome = client.send(
        "PATCH", QUEUE.path(name=name), body | {"spec": {"weight": 1}}, query={"fieldManager": "helm"},
        content_type=APPLY_PATCH,
    )  # fmt: skip
    assert outcome.reason == "Conflict"


def test_another_value_of_a_class_is_refused_and_named(ground, client):
    ground.push()
    path = PRIORITY_CLASS.path(name=ground.pc)
    client.send("DELETE", path)
    other = {"metadata": {"name": ground.pc}, "value": 5}
    assert client.send("POST", PRIORITY_CLASS.path(), other, query={"fieldManager": "kubectl-create"}).done
    report = ground.push(everything=True)
    assert "kubectl-create" in report.refused[f"PriorityClass {ground.pc}"]


def test_where_card_quotas_are_passed_over_each_resource_is_limited_by_the_sum_of_its_cards(
    ground, client, monkeypatch
):
    monkeypatch.setattr("tidesched_web.quota.limited_selectors.card_quota_enforced", lambda cluster: False)
    ground.push(queues_named=ground.names[:1])
    assert client.get(QUEUE.path(name=ground.names[0]))["spec"]["capability"] == {"nvidia.com/gpu": "8"}
    clusters.ensure_card_type(cluster=ground.cluster, name="NVIDIA-H800", actor="test", resource="nvidia.com/gpu")
    ground.push(queues_named=ground.names[1:])
    limited = client.get(QUEUE.path(name=ground.names[1]))["spec"]["capability"]
    assert limited == {"nvidia.com/gpu": "8"}, "a second model under the same resource takes no limit away"
    quota.set_card_quota(
        cluster=ground.cluster, owner=ground.row(ground.names[1]), service_type="training",
        cards={"NVIDIA-H200": 8, "NVIDIA-H800": 3}, actor="test",
    )  # fmt: skip
    ground.push(queues_named=ground.names[1:])
    assert client.get(QUEUE.path(name=ground.names[1]))["spec"]["capability"] == {"nvidia.com/gpu": "11"}


def test_card_limits_follow_what_the_connection_test_finds_without_an_edit(ground, client, monkeypatch):
    def limits():
        push_pending()
        specs = [client.get(QUEUE.path(name=name))["spec"] for name in ground.names]
        return [spec.get("capability") for spec in specs]

    for enforced, expected in ((True, None), (False, {"nvidia.com/gpu": "8"}), (None, None)):
        monkeypatch.setattr(
            "tidesched_web.quota.limited_selectors.card_quota_enforced", lambda cluster, says=enforced: says
        )
        assert limits() == [expected, expected]
    written = len([row for row in ground.server.writes() if row["resource"] == "queues"])
    assert limits() == [None, None]
    assert len([row for row in ground.server.writes() if row["resource"] == "queues"]) == written


@pytest.mark.parametrize(("mode", "state"), [("quota", "Closed"), ("schedule", "Closed")])
def test_a_queue_closes_and_opens_again(db, server, client, mode, state):
    ground = Ground(server, mode)
    ground.push()
    name = ground.names[0]
    client.send(
        "PATCH", QUEUE.path(name=name, subresource="status"), {"status": {"running": 1}}, content_type=MERGE_PATCH
    )
    row = ground.row(name)
    Queue.objects.filter(pk=row.pk).update(state="Closed", version=row.version + 1, sync_state="pending")
    ground.push()
    assert client.get(QUEUE.path(name=name))["status"]["state"] == "Closing"
    client.send(
        "PATCH", QUEUE.path(name=name, subresource="status"), {"status": {"running": 0}}, content_type=MERGE_PATCH
    )
    now = timezone.now()
    gang = Gang.objects.create(
        cluster=ground.cluster, namespace="a", name="g", uid="g", queue=row, queue_name=name, service_type="training",
        phase="Running", state="running", submitted_at=now, seen_at=now,
    )  # fmt: skip
    ground.push()
    assert client.get(QUEUE.path(name=name))["status"]["state"] == "Closing", "the sessions see a gang in it"
    Gang.objects.filter(pk=gang.pk).update(state="finished")
    ground.push()
    assert client.get(QUEUE.path(name=name))["status"]["state"] == state
    assert ground.row(name).live_state == state
    row = ground.row(name)
    Queue.objects.filter(pk=row.pk).update(state="Open", version=row.version + 1, sync_state="pending")
    ground.push()
    assert client.get(QUEUE.path(name=name))["status"]["state"] == "Open"


def test_while_the_cluster_does_not_answer_all_waits_and_says_why(ground):
    Cluster.objects.filter(pk=ground.cluster.pk).update(api_url="http://127.0.0.1:9")
    report = ground.push()
    assert report.unreachable
    rows = Queue.objects.filter(cluster=ground.cluster)
    assert {row.sync_state for row in rows} == {"pending"}
    assert all("refused" in row.sync_error for row in rows)


def test_a_plan_is_tried_at_the_cluster_without_writing(ground, server):
    def planned(name, **spec):
        return {
            "kind": "Queue",
            "name": name,
            "before": None,
            "after": {
                "apiVersion": QUEUE.group_version, "kind": "Queue", "metadata": {"name": name},
                "spec": {"weight": 1, **spec}, "status": {"state": "Closing"},
            },
        }  # fmt: skip

    before = sent(server)
    good, bad = planned("one"), planned("two", weight=70_000)
    child = planned("three", parent="one")
    cluster = Cluster.objects.get(pk=ground.cluster.pk)
    answer = server_check(cluster, [good, bad, child])
    assert (answer["checked"], answer["objects"], answer["unavailable"]) == (2, 3, "")
    ((kind, name, said),) = [(row["kind"], row["name"], row["detail"]) for row in answer["refused"]]
    assert (kind, name) == ("Queue", "two")
    assert "should be from 1 to 65535" in said
    assert [row for row in server.writes()[before:] if not row.get("dry_run")] == []
    cluster.api_url = "http://127.0.0.1:9"
    assert server_check(cluster, [good])["unavailable"]
    cluster.mode = "observe"
    assert server_check(cluster, [bad])["checked"] == 0


@pytest.mark.parametrize("there", [True, False], ids=["it is there", "it is made"])
def test_a_push_that_comes_late_does_not_overwrite_a_newer_figure(ground, client, monkeypatch, there):
    name = ground.names[0]
    if there:
        ground.push()
    ground.weigh(name, 2)

    def newer():
        ground.weigh(name, 5)
        assert ground.push(queues_named=[name]).written == 1
        assert client.get(QUEUE.path(name=name))["spec"]["weight"] == 5

    waiting = [newer]

    def later(calls, **more):
        """Between what this push has read and what it writes."""
        if waiting and any(call.func is bring for call in calls):
            waiting.pop()()
        return run_all(calls, **more)

    monkeypatch.setattr("tidesched_web.quota.services.push.run_all", later)
    ground.push(queues_named=[name])
    if not there:
        # Nothing tells the server that an object must not be there yet: the row waits for the next push again.
        assert ground.row(name).sync_state == "pending"
        ground.push()
    assert client.get(QUEUE.path(name=name))["spec"]["weight"] == 5
    row = ground.row(name)
    assert (row.sync_state, row.pushed_version) == ("in_step", row.version)
    kept = PushedObject.objects.get(cluster=ground.cluster, kind="Queue", name=name)
    assert (kept.version, kept.fields["spec.weight"]) == (row.version, "5")


def test_a_status_that_moves_between_reading_and_writing_stops_no_push(ground, client, monkeypatch):
    ground.push()
    name = ground.names[0]
    ground.weigh(name, 7)
    waiting = [1, 2]

    def later(calls, **more):
        if waiting and any(call.func is bring for call in calls):
            status = {"status": {"running": waiting.pop()}}
            path = QUEUE.path(name=name, subresource="status")
            assert client.send("PATCH", path, status, content_type=MERGE_PATCH).done
        return run_all(calls, **more)

    monkeypatch.setattr("tidesched_web.quota.services.push.run_all", later)
    report = ground.push(queues_named=[name])
    assert (report.written, report.refused) == (1, {})
    assert client.get(QUEUE.path(name=name))["spec"]["weight"] == 7
