"""The quota push against a (simulated) API server: what is written, what is left alone, and what is not forced."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests import quota_writes
from tests.cluster.servers import SimulatedServer
from tests.quota_writes import write_tide_plan
from tests.web.test_tide import layer
from tests.web.test_tide_plans import NIGHT, NOON, H, clock
from tidesched_web.changes.server_check import server_check
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.client import APPLY_PATCH, MERGE_PATCH
from tidesched_web.clusters.kubernetes.paths import PRIORITY_CLASS, QUEUE
from tidesched_web.clusters.kubernetes.pressure import run_all
from tidesched_web.clusters.models import Cluster, ConnectionKind
from tidesched_web.quota.models import Drift, PushedObject, Queue, TidePlan, TideStep
from tidesched_web.quota.services.push import push_cluster, push_pending
from tidesched_web.quota.services.push_object import bring
from tidesched_web.quota.services.tide_steps import delete_old_steps
from tidesched_web.quota.tide_selectors import document_of
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
    """A cluster with two queues and a priority class whose names are in no other cluster."""

    def __init__(self, server, mode):
        mark = uuid.uuid4().hex[:6]
        self.server = server
        self.cluster = clusters.create(
            name=f"push-{mark}", api_url=server.url, actor="test", mode=mode, token=server.token, simulated=True
        )
        tenant = quota_writes.ensure_tenant(slug="acme", actor="test")
        self.line = quota_writes.ensure_business_line(tenant=tenant, slug="research", actor="test")
        clusters.ensure_card_type(cluster=self.cluster, name="NVIDIA-H200", actor="test", resource="nvidia.com/gpu")
        self.cluster.card_types.update(hardware=10_000)
        self.names = [f"a-{mark}", f"b-{mark}"]
        for name in self.names:
            self.queue(name)
        self.pc = f"pc-{mark}"
        quota_writes.ensure_priority_class(cluster=self.cluster, name=self.pc, value=70_000, actor="test")

    def queue(self, name):
        quota_writes.create_queue(
            cluster=self.cluster, name=name, service_type="training", card_quota={"NVIDIA-H200": 8}, actor="test",
            business_line=self.line,
        )  # fmt: skip

    def row(self, name):
        return Queue.objects.get(cluster=self.cluster, name=name)

    def become(self, name, **fields):
        """As an edit does."""
        row = self.row(name)
        Queue.objects.filter(pk=row.pk).update(version=row.version + 1, sync_state="pending", **fields)

    def push(self, **more):
        return push_cluster(cluster=Cluster.objects.get(pk=self.cluster.pk), **more)


@pytest.fixture
def ground(db, server):
    return Ground(server, "quota")


@pytest.fixture
def between(monkeypatch):
    """Arranges acts, each of which happens once between what a push has read and what it writes."""

    def arrange(*acts):
        waiting = list(acts)

        def later(calls, **more):
            if waiting and any(call.func is bring for call in calls):
                waiting.pop(0)()
            return run_all(calls, **more)

        monkeypatch.setattr("tidesched_web.quota.services.push.run_all", later)

    return arrange


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
    assert len(queries) < 22
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
    ground.become(name, weight=7)
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
    ground.become(name, weight=7)
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
    ground.become(name, weight=7)
    report = ground.push(queues_named=[name])
    assert (report.written, report.refused) == (1, {})
    assert client.get(QUEUE.path(name=name))["spec"]["weight"] == 7
    # and a manager that applies the old value again has to say that it takes the field
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
    monkeypatch.setattr("tidesched_web.quota.push_selectors.card_quota_enforced", lambda cluster: False)
    ground.push(queues_named=ground.names[:1])
    assert client.get(QUEUE.path(name=ground.names[0]))["spec"]["capability"] == {"nvidia.com/gpu": "8"}
    clusters.ensure_card_type(cluster=ground.cluster, name="NVIDIA-H800", actor="test", resource="nvidia.com/gpu")
    ground.push(queues_named=ground.names[1:])
    limited = client.get(QUEUE.path(name=ground.names[1]))["spec"]["capability"]
    assert limited == {"nvidia.com/gpu": "8"}, "a second model under the same resource takes no limit away"
    quota_writes.set_card_quota(
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
            "tidesched_web.quota.push_selectors.card_quota_enforced", lambda cluster, says=enforced: says
        )
        assert limits() == [expected, expected]
    written = len([row for row in ground.server.writes() if row["resource"] == "queues"])
    assert limits() == [None, None]
    assert len([row for row in ground.server.writes() if row["resource"] == "queues"]) == written


@pytest.mark.parametrize("mode", ["quota", "schedule"])
def test_a_queue_closes_and_opens_again(db, server, client, mode):
    ground = Ground(server, mode)
    ground.push()
    name = ground.names[0]
    client.send(
        "PATCH", QUEUE.path(name=name, subresource="status"), {"status": {"running": 1}}, content_type=MERGE_PATCH
    )
    ground.become(name, state="Closed")
    ground.push()
    assert client.get(QUEUE.path(name=name))["status"]["state"] == "Closing"
    client.send(
        "PATCH", QUEUE.path(name=name, subresource="status"), {"status": {"running": 0}}, content_type=MERGE_PATCH
    )
    now = timezone.now()
    gang = Gang.objects.create(
        cluster=ground.cluster, namespace="a", name="g", uid="g", queue=ground.row(name), queue_name=name,
        service_type="training", phase="Running", state="running", submitted_at=now, seen_at=now,
    )  # fmt: skip
    ground.push()
    assert client.get(QUEUE.path(name=name))["status"]["state"] == "Closing", "the sessions see a gang in it"
    Gang.objects.filter(pk=gang.pk).update(state="finished")
    ground.push()
    assert client.get(QUEUE.path(name=name))["status"]["state"] == "Closed"
    assert ground.row(name).live_state == "Closed"
    ground.become(name, state="Open")
    ground.push()
    assert client.get(QUEUE.path(name=name))["status"]["state"] == "Open"


def test_while_the_cluster_does_not_answer_all_waits_and_says_why(ground):
    Cluster.objects.filter(pk=ground.cluster.pk).update(api_url="http://127.0.0.1:9")
    report = ground.push()
    assert report.unreachable
    rows = Queue.objects.filter(cluster=ground.cluster)
    assert {row.sync_state for row in rows} == {"pending"}
    assert all("refused" in row.sync_error for row in rows)


def nights(ground, act, cards, name="night"):
    others = layer(quota={ground.names[1]: {H: {"add": 0}}}, name="others")
    document = {"enabled": True, "layers": [others, layer(quota={ground.names[0]: {H: {act: cards}}}, name=name)]}
    write_tide_plan(cluster=ground.cluster, name="nights", document=document, actor="tests")


def kept(ground):
    """The steps of the tide plans, the oldest first."""
    rows = TideStep.objects.filter(cluster=ground.cluster).order_by("id")
    return [(row.before, row.after, row.wanted, row.answer, row.layers) for row in rows]


def test_each_step_of_the_tide_plans_is_kept_once_with_what_the_cluster_answered(ground, client):
    clock(ground.cluster, NOON)
    ground.push()
    nights(ground, "set", 5)
    ground.push()
    assert kept(ground) == [], "no layer is open"
    clock(ground.cluster, NIGHT)
    for _time in range(2):
        ground.push()
    assert kept(ground) == [(8, 5, 5, "taken", ["nights: night"])]
    step = TideStep.objects.get(cluster=ground.cluster)
    assert (step.queue.name, step.card, step.plans) == (ground.names[0], H, ["nights"])
    assert (step.since, step.at) == (NIGHT.replace(hour=22), pytest.approx(NIGHT, abs=dt.timedelta(seconds=1)))
    ground.become(ground.names[0], weight=7)
    ground.push()
    assert len(kept(ground)) == 1, "an edit of a person is no step"
    clock(ground.cluster, NOON + dt.timedelta(days=1))
    ground.push()
    assert kept(ground)[1:] == [(5, 8, 8, "taken", [])]
    clock(ground.cluster, NIGHT + dt.timedelta(days=1))
    Cluster.objects.filter(pk=ground.cluster.pk).update(api_url="http://127.0.0.1:9")
    for _time in range(2):
        ground.push()
    assert kept(ground)[2:] == [(8, 5, 5, "pending", ["nights: night"])]
    assert "refused" in TideStep.objects.first().message
    Cluster.objects.filter(pk=ground.cluster.pk).update(api_url=ground.server.url)
    ground.push()
    assert kept(ground)[2:] == [(8, 5, 5, "taken", ["nights: night"])]
    write_tide_plan(cluster=ground.cluster, name="nights", document=None, actor="tests")
    ground.push()
    assert kept(ground)[3:] == [(5, 8, 8, "taken", [])]
    assert TideStep.objects.first().plans == ["nights"], "the plan that is gone is about the step that ends it"
    assert delete_old_steps(cluster_id=ground.cluster.pk, keep=1, limit=2) == 2
    assert delete_old_steps(cluster_id=ground.cluster.pk, keep=1, limit=2) == 1
    assert kept(ground) == [(5, 8, 8, "taken", [])]


def test_a_step_that_follows_a_take_back_says_what_was_ended_by_whom_and_when_it_opens_again(ground):
    clock(ground.cluster, NIGHT)
    nights(ground, "set", 5)
    ground.push()
    plan = TidePlan.objects.get(cluster=ground.cluster)
    ended = {**plan.layers[1], "ended_at": (NIGHT + dt.timedelta(minutes=1)).isoformat()}
    document = {**document_of(plan), "layers": [plan.layers[0], ended]}
    clock(ground.cluster, NIGHT + dt.timedelta(minutes=2))
    write_tide_plan(cluster=ground.cluster, name="nights", document=document, actor="mei")
    write_tide_plan(cluster=ground.cluster, name="nights", document=document | {"position": 3}, actor="li")
    ground.push()
    opened, taken_back = TideStep.objects.filter(cluster=ground.cluster).order_by("id")
    assert opened.taken_back == []
    again = (NIGHT.replace(hour=22) + dt.timedelta(days=1)).isoformat()
    assert taken_back.taken_back == [{"plan": "nights", "layer": "night", "by": "mei", "opens_next": again}]
    assert (taken_back.before, taken_back.after, taken_back.layers) == (5, 8, [])


def test_a_step_that_the_cluster_refuses_says_so_in_its_words(ground, client):
    clock(ground.cluster, NIGHT)
    ground.push()
    path = QUEUE.path(name=ground.names[0])
    note = {"metadata": {"annotations": {"volcano.sh/card.quota": "{}"}}}
    assert client.send("PATCH", path, note, content_type=MERGE_PATCH, query={"fieldManager": "kubectl-edit"}).done
    nights(ground, "add", -2, name="")
    ground.push()
    assert kept(ground) == [(8, 6, 6, "refused", ["nights: #2"])]
    assert "kubectl-edit" in TideStep.objects.get(cluster=ground.cluster).message


@pytest.mark.parametrize(
    ("act", "cards", "steps"), [("set", 5, []), ("add", -2, [(6, 8, 8, "taken", ["nights: night"])])]
)
def test_an_edit_of_a_queues_own_cards_is_a_step_where_an_open_layer_adds_to_them(ground, act, cards, steps):
    clock(ground.cluster, NIGHT)
    ground.push()
    nights(ground, act, cards)
    ground.push()
    assert len(kept(ground)) == 1
    quota_writes.set_card_quota(cluster=ground.cluster, owner=ground.row(ground.names[0]), cards={H: 10}, actor="tests")
    ground.push()
    assert kept(ground)[1:] == steps


@pytest.mark.parametrize("why", ["a pod of its own", "another key"])
def test_a_cluster_that_this_process_cannot_reach_keeps_no_other_from_being_pushed_to(ground, why):
    first = Cluster.objects.create(name="aaa", slug="aaa", mode="quota", api_url="https://aaa.example.org")
    if why == "another key":
        Cluster.objects.filter(pk=first.pk).update(credentials=b"sealed elsewhere", credentials_key_id="0123456789ab")
    else:
        Cluster.objects.filter(pk=first.pk).update(connection_kind=ConnectionKind.IN_CLUSTER)
    quota_writes.create_queue(
        cluster=first,
        name="left-alone",
        service_type="training",
        card_quota={},
        actor="test",
        business_line=ground.line,
    )
    reports = push_pending()
    assert list(reports) == ["aaa", ground.cluster.slug]
    assert {ground.row(name).sync_state for name in ground.names} == {"in_step"}
    left = Queue.objects.get(cluster=first)
    assert left.sync_state == "pending"
    assert left.sync_error == reports["aaa"].unreachable
    assert left.sync_error
    assert server_check(first, [])["unavailable"] == ""
    after = {"kind": "Queue", "name": "x", "before": None, "after": {"metadata": {"name": "x"}, "spec": {}}}
    assert server_check(Cluster.objects.get(pk=first.pk), [after])["unavailable"] == left.sync_error


def test_a_failure_of_our_own_at_one_cluster_keeps_no_other_from_being_pushed_to(ground, monkeypatch):
    first = Cluster.objects.create(name="aaa", slug="aaa", mode="quota", api_url="http://127.0.0.1:9")
    quota_writes.create_queue(
        cluster=first,
        name="left-alone",
        service_type="training",
        card_quota={},
        actor="test",
        business_line=ground.line,
    )
    push_one = push_cluster

    def fails_at_one(*, cluster, **more):
        if cluster.slug == "aaa":
            raise KeyError("metadata")
        return push_one(cluster=cluster, **more)

    monkeypatch.setattr("tidesched_web.quota.services.push.push_cluster", fails_at_one)
    assert list(push_pending()) == [ground.cluster.slug]
    assert {ground.row(name).sync_state for name in ground.names} == {"in_step"}


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


@pytest.mark.parametrize(
    ("mode", "older", "newer", "there"),
    [
        ("quota", "Open", "Open", True),
        ("quota", "Open", "Open", False),
        ("quota", "Closed", "Open", True),
        ("quota", "Open", "Closed", True),
        ("schedule", "Closed", "Open", True),
        ("schedule", "Open", "Closed", True),
    ],
)
def test_a_push_that_comes_late_undoes_nothing_newer(db, server, client, between, mode, older, newer, there):
    """The row becomes ``older``, and then ``newer`` with another figure; the push of the first edit is late.

    ``there``: the object exists before.
    """
    ground = Ground(server, mode)
    name = ground.names[0]

    def live():
        found = client.get(QUEUE.path(name=name))
        return (found.get("status") or {}).get("state") or "Open", found["spec"]["weight"]

    if there:
        ground.become(name, state=newer, weight=1)
        ground.push()
        assert live() == (newer, 1)
    ground.become(name, state=older, weight=2)

    def meanwhile():
        ground.become(name, state=newer, weight=5)
        ground.push(queues_named=[name])
        assert live()[1] == 5

    between(meanwhile)
    ground.push(queues_named=[name])
    if not there:
        # Nothing says to the server that an object must not be there yet: the row waits for the next push again.
        assert ground.row(name).sync_state == "pending"
        ground.push()
    assert live() == (newer, 5)
    row = ground.row(name)
    assert (row.sync_state, row.pushed_version, row.live_state) == ("in_step", row.version, newer)
    kept = PushedObject.objects.get(cluster=ground.cluster, kind="Queue", name=name)
    assert (kept.version, kept.fields["spec.weight"]) == (row.version, "5")


def test_a_status_that_moves_between_reading_and_writing_stops_no_push(ground, client, between):
    ground.push()
    name = ground.names[0]
    ground.become(name, weight=7)

    def runs(count):
        path = QUEUE.path(name=name, subresource="status")
        assert client.send("PATCH", path, {"status": {"running": count}}, content_type=MERGE_PATCH).done

    between(lambda: runs(2), lambda: runs(1))
    report = ground.push(queues_named=[name])
    assert (report.written, report.refused) == (1, {})
    assert client.get(QUEUE.path(name=name))["spec"]["weight"] == 7
