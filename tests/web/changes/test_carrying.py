"""A written change on its way to a (simulated) cluster: each object's state, failures, retry, and what is deleted."""

from __future__ import annotations

import json

import pytest
from django.utils import timezone

from tests.cluster.servers import SimulatedServer
from tests.web.changes import ground as ground_module
from tests.web.changes.ground import H200, QUEUE
from tidesched_web.changes import services as changes
from tidesched_web.changes.models import ChangeObject, QuotaChange
from tidesched_web.changes.services.carrying import CLAIM
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.models import Queue
from tidesched_web.quota.services import push


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = SimulatedServer(tmp_path_factory.mktemp("carrying"))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def ground(db, server):
    made = ground_module.build(mode="quota", api_url=server.url, simulated=True)
    clusters.set_connection(cluster=made.cluster, api_url=server.url, token=server.token, actor="tests")
    made.cluster.refresh_from_db()
    push.push_cluster(cluster=made.cluster, everything=True)
    return made


@pytest.fixture
def live(ground):
    """The objects as the cluster has them."""
    client = KubernetesClient.for_cluster(ground.cluster)
    yield ClusterWrites(client)
    client.close()


def card_quota(body):
    return json.loads(body["metadata"]["annotations"]["volcano.sh/card.quota"])


def states(change):
    rows = ChangeObject.objects.filter(change=change).order_by("kind", "name")
    return [(row.kind, row.name, row.state) for row in rows]


def test_a_change_is_applied_when_the_cluster_has_its_objects(ground, live):
    change = ground.carry_out(
        {"queue/acme-online": {"card_quota": {H200: 7}}, "priority-class/pc-new": {"value": 7}, "project/acme/new": {}}
    )
    assert (change.state, change.applied_at) == ("applying", None)
    assert states(change) == [("PriorityClass", "pc-new", "queued"), ("Queue", "acme-online", "queued")]
    assert changes.sweep() == 1
    change.refresh_from_db()
    assert (change.state, change.applied_at is None, change.claimed_until) == ("applied", False, None)
    assert {state for _kind, _name, state in states(change)} == {"applied"}
    assert card_quota(live.get_queue("acme-online").body) == {H200: 7}
    assert live.get_priority_class("pc-new").body["value"] == 7
    assert changes.sweep() == 0


def test_a_class_is_replaced_and_deleted_with_its_change(ground, live):
    ground.carry_out({"priority-class/pc-x": {"value": 7}})
    changes.sweep()
    before = live.get_priority_class("pc-x").body["metadata"]["uid"]
    ground.carry_out({"priority-class/pc-x": {"value": 8, "replace": True}})
    changes.sweep()
    replaced = live.get_priority_class("pc-x").body
    assert (replaced["value"], replaced["metadata"]["uid"] == before) == (8, False)
    ground.carry_out({"priority-class/pc-x": None})
    changes.sweep()
    assert live.get_priority_class("pc-x").kind is OutcomeKind.GONE


def test_a_queue_closes_opens_and_goes(ground, live):
    ground.carry_out({"queue/acme-two": {**QUEUE, "card_quota": {H200: 1}}})
    changes.sweep()
    assert live.get_queue("acme-two").done
    ground.carry_out({"queue/acme-two": {"state": "Closed"}})
    changes.sweep()
    assert live.get_queue("acme-two").body["status"]["state"] == "Closed"
    assert Queue.objects.get(name="acme-two").live_state == "Closed"
    ground.carry_out({"queue/acme-two": {"state": "Open"}})
    changes.sweep()
    assert live.get_queue("acme-two").body["status"]["state"] == "Open"
    live.patch_queue_status("acme-two", {"running": 2})
    gone = ground.carry_out({"queue/acme-two": None})
    changes.sweep()
    gone.refresh_from_db()
    assert (gone.state, states(gone)) == ("applying", [("Queue", "acme-two", "queued")])
    assert "2 gangs are still in it" in gone.error
    assert live.get_queue("acme-two").body["status"]["state"] == "Closing"
    live.patch_queue_status("acme-two", {"running": 0})
    changes.sweep()
    gone.refresh_from_db()
    assert gone.state == "applied"
    assert live.get_queue("acme-two").kind is OutcomeKind.GONE


def test_a_queue_that_is_made_anew_while_its_deletion_goes_on_stays(ground, live, monkeypatch):
    ground.carry_out({"queue/acme-two": {**QUEUE, "state": "Closed"}})
    changes.sweep()
    gone = ground.carry_out({"queue/acme-two": None})
    get_queue, waiting = ClusterWrites.get_queue, [1]

    def later(self, name):
        found = get_queue(self, name)
        if waiting:
            waiting.pop()
            ground.carry_out({"queue/acme-two": {**QUEUE, "weight": 5}})
            push.push_cluster(cluster=ground.cluster, queues_named=[name])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(ClusterWrites, "get_queue", later)
        changes.sweep()
    assert live.get_queue("acme-two").body["spec"]["weight"] == 5
    gone.refresh_from_db()
    assert gone.state == "applied"


def test_a_cluster_that_does_not_answer_only_costs_time(ground, server):
    Cluster.objects.update(api_url="http://127.0.0.1:9")
    change = ground.carry_out({"queue/acme-online": {"card_quota": {H200: 7}}})
    changes.sweep()
    change.refresh_from_db()
    assert (change.state, states(change)) == ("applying", [("Queue", "acme-online", "queued")])
    assert change.error
    Cluster.objects.update(api_url=server.url)
    changes.sweep()
    change.refresh_from_db()
    assert (change.state, change.error) == ("applied", "")


def test_a_cluster_whose_secrets_this_process_cannot_read_is_said_to_be_why_a_change_waits(ground):
    change = ground.carry_out({"queue/acme-online": {"card_quota": {H200: 7}}})
    sealed = Cluster.objects.values("credentials", "credentials_key_id").get()
    Cluster.objects.update(credentials=b"sealed elsewhere", credentials_key_id="0123456789ab")
    changes.sweep()
    change.refresh_from_db()
    assert (change.state, states(change)) == ("applying", [("Queue", "acme-online", "queued")])
    assert "0123456789ab" in change.error
    assert change.claimed_until is None
    Cluster.objects.update(**sealed)
    changes.sweep()
    change.refresh_from_db()
    assert (change.state, change.error) == ("applied", "")


def test_what_the_cluster_refuses_is_named_and_can_be_tried_again(ground, monkeypatch):
    change = ground.carry_out({"queue/acme-online": {"weight": 2}, "queue/acme-train": {"weight": 2}})
    apply_queue = ClusterWrites.apply_queue

    def refuse_one(self, manifest, **more):
        if manifest["metadata"]["name"] == "acme-online":
            return Outcome(OutcomeKind.REFUSED, "Forbidden", "a webhook says no")
        return apply_queue(self, manifest, **more)

    with monkeypatch.context() as patched:
        patched.setattr(ClusterWrites, "apply_queue", refuse_one)
        changes.sweep()
    change.refresh_from_db()
    assert (change.state, change.error) == ("failed", "Queue acme-online: a webhook says no")
    assert states(change) == [("Queue", "acme-online", "failed"), ("Queue", "acme-train", "applied")]
    assert change.failure["objects"] == [{"kind": "Queue", "name": "acme-online", "reason": "a webhook says no"}]
    again = changes.retry(change=change, access=ground.access("second"))
    assert again.state == "applying"
    changes.sweep()
    change.refresh_from_db()
    assert change.state == "applied"


def test_a_disconnected_cluster_is_left_alone_until_it_is_back(ground, live):
    ground.carry_out({"queue/acme-left": QUEUE})
    changes.sweep()
    Cluster.objects.update(disconnected_at=timezone.now())
    change = ground.carry_out({"queue/acme-left": None, "queue/acme-online": {"weight": 3}})
    changes.sweep()
    change.refresh_from_db()
    assert (change.state, {state for _kind, _name, state in states(change)}) == ("applying", {"queued"})
    assert "disconnected" in change.error
    assert live.get_queue("acme-left").done
    Cluster.objects.update(disconnected_at=None)
    changes.sweep()
    change.refresh_from_db()
    assert change.state == "applied"


def test_a_worker_that_died_leaves_its_change_to_the_next(ground):
    change = ground.carry_out({"queue/acme-online": {"weight": 2}})
    QuotaChange.objects.update(claimed_until=timezone.now() + CLAIM)
    assert changes.sweep() == 0  # another worker has it
    QuotaChange.objects.update(claimed_until=timezone.now())
    assert changes.sweep() == 1
    change.refresh_from_db()
    assert change.state == "applied"
