"""What a person changes in the cluster by hand: found from the watch, pushed again, adopted, or ignored."""

from __future__ import annotations

import json
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.cluster.servers import SimulatedServer
from tests.waiting import PATIENCE, until
from tests.web.changes import ground as ground_module
from tests.web.changes.ground import H200
from tidesched_web.audit.models import AuditEntry
from tidesched_web.changes import drift as adopting
from tidesched_web.changes import services as changes
from tidesched_web.clusters.credentials import seal
from tidesched_web.clusters.kubernetes.cache import ClusterCache
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, KubernetesClient
from tidesched_web.clusters.kubernetes.paths import PRIORITY_CLASS, QUEUE
from tidesched_web.common.errors import DomainError
from tidesched_web.quota.drift_fields import FieldDrift
from tidesched_web.quota.drift_selectors import Intended, drift_counts, drift_look, visible_drift
from tidesched_web.quota.models import Drift, PushedObject, Queue
from tidesched_web.quota.services import drift, push
from tidesched_web.scheduling.models import Alert
from tidesched_web.scheduling.pipeline import drift_watch
from tidesched_web.scheduling.pipeline.drift_watch import DriftWatch


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = SimulatedServer(tmp_path_factory.mktemp("drift"))
    made.start()
    yield made
    made.stop()


class Scene:
    """A cluster in mode quota whose objects were pushed, and the watch that the sessions' process has."""

    def __init__(self, ground, client):
        self.ground, self.client, self.cluster = ground, client, ground.cluster
        self.watch = DriftWatch()
        self.cache = ClusterCache(client, schedulers=["tidesched"], kinds=(QUEUE, PRIORITY_CLASS), taps=[self.watch])
        self.cache.start()
        assert self.cache.wait_synced(PATIENCE)

    def edit(self, name, patch, kind=QUEUE):
        """As `kubectl edit` does it."""
        query = {"fieldManager": "kubectl-edit"}
        outcome = self.client.send("PATCH", kind.path(name=name), patch, query=query, content_type=MERGE_PATCH)
        assert outcome.done, outcome

    def cards(self, name, cards):
        self.edit(name, {"metadata": {"annotations": {"volcano.sh/card.quota": json.dumps(cards)}}})

    def delete(self, name, kind=QUEUE):
        outcome = self.client.send("DELETE", kind.path(name=name))
        assert outcome.done, outcome

    def until(self, check):
        """Look as the session thread does until ``check`` holds."""

        def look():
            self.watch._looked_at = float("-inf")
            self.watch.look(self.cluster)
            return check()

        return until(look, story=lambda: list(Drift.objects.values()))

    def row(self, name, **wanted):
        return self.until(lambda: Drift.objects.filter(name=name, **wanted).first())

    def live(self, name, kind=QUEUE):
        return self.client.get(kind.path(name=name))

    def push(self):
        push.push_cluster(cluster=self.cluster)


def opened(server) -> Scene:
    """A scene on a server of either kind, without what a test before left there."""
    # "Simulated" lets the cluster be on this machine; nothing else of it is asked here.
    ground = ground_module.build(mode="quota", api_url=server.url, simulated=True, ca_certificate=server.ca_certificate)
    seal(ground.cluster, server.token)
    ground.cluster.save()
    ground.cluster.refresh_from_db()
    client = KubernetesClient.for_cluster(ground.cluster)
    for kind in (QUEUE, PRIORITY_CLASS):
        for item in client.get(kind.path())["items"]:
            name = item["metadata"]["name"]
            if name not in ("root", "default") and not name.startswith("system-"):
                client.send("DELETE", kind.path(name=name))
    push.push_cluster(cluster=ground.cluster, everything=True)
    return Scene(ground, client)


@pytest.fixture
def scene(db, server, monkeypatch):
    monkeypatch.setattr(drift, "wake_push", lambda: True)
    made = opened(server)
    yield made
    made.cache.stop()
    made.client.close()


def fields(row):
    return {one["field"]: (one["intent"], one["pushed"], one["live"]) for one in row.fields}


def test_a_change_by_hand_is_found_named_and_healed_on_request(scene):
    scene.until(lambda: drift_look(scene.cluster))
    assert not Drift.objects.exists()
    assert PushedObject.objects.get(name="acme-online").fields["card_quota.NVIDIA-H200"] == "6"
    scene.cards("acme-online", {H200: 9})
    row = scene.row("acme-online")
    assert (row.kind, row.what, row.state) == ("Queue", "changed", "open")
    assert fields(row) == {"card_quota.NVIDIA-H200": ("6", "6", "9")}
    assert row.fields[0]["changed_by"] == "kubectl-edit"
    queue = Queue.objects.get(name="acme-online")
    assert queue.sync_state == "drifted"
    alert = scene.until(lambda: Alert.objects.filter(key=drift_watch.ALERT_KEY, resolved_at__isnull=True).first())
    assert alert.numbers == {"objects": 1}

    scene.push()  # no person asked: it stays
    assert json.loads(scene.live("acme-online")["metadata"]["annotations"]["volcano.sh/card.quota"]) == {H200: 9}

    assert drift.repush(drifts=[row], access=scene.ground.access("root"), reason="our figure holds") == 1
    scene.push()
    assert json.loads(scene.live("acme-online")["metadata"]["annotations"]["volcano.sh/card.quota"]) == {H200: 6}
    ended = scene.row("acme-online", state="resolved")
    assert (ended.end, ended.reason, ended.decided_by) == ("pushed", "our figure holds", "root")
    scene.until(lambda: Alert.objects.filter(key=drift_watch.ALERT_KEY, resolved_at__isnull=False).first())
    assert Queue.objects.get(name="acme-online").sync_state == "in_step"
    entry = AuditEntry.objects.get(action="drift.repush")
    assert (entry.object_label, entry.before, entry.reason) == (
        "Queue acme-online",
        {"card_quota.NVIDIA-H200": "9"},
        "our figure holds",
    )


def test_an_ignored_one_stays_ignored_until_it_changes_again(scene):
    scene.edit("acme-train", {"spec": {"weight": 7}})
    row = scene.row("acme-train")
    drift.ignore(drifts=[row], access=scene.ground.access("root"), reason="a test by the team")
    assert scene.row("acme-train", state="ignored").pk == row.pk
    assert drift_counts(scene.ground.access("root"), scene.cluster) == {"ignored": 1}
    scene.edit("acme-train", {"spec": {"weight": 8}})
    assert scene.row("acme-train", state="open").pk == row.pk
    scene.edit("acme-train", {"spec": {"weight": 1}})
    assert scene.row("acme-train", state="resolved").end == "reverted"


def test_what_was_deleted_by_hand_is_missed_and_made_again(scene):
    scene.delete("rival-train")
    row = scene.row("rival-train")
    assert (row.what, row.live) == ("missing", None)
    with pytest.raises(DomainError, match="gone from the cluster"):
        adopting.adopt(drifts=[row], access=scene.ground.access("root"), reason="gone")
    drift.repush(drifts=[row], access=scene.ground.access("root"), reason="needed")
    scene.push()
    assert scene.row("rival-train", state="resolved").end == "pushed"
    assert scene.live("rival-train")["spec"]["weight"] == 1


def test_a_class_made_anew_with_another_value_is_replaced_when_asked(scene):
    scene.ground.carry_out({"priority-class/pc-drift": {"value": 7}})
    changes.sweep()
    scene.delete("pc-drift", PRIORITY_CLASS)
    outcome = scene.client.send("POST", PRIORITY_CLASS.path(), {"metadata": {"name": "pc-drift"}, "value": 9})
    assert outcome.done
    row = scene.row("pc-drift")
    assert fields(row) == {"value": ("7", "7", "9")}
    drift.repush(drifts=[row], access=scene.ground.access("root"), reason="seven")
    scene.push()
    assert scene.live("pc-drift", PRIORITY_CLASS)["value"] == 7
    scene.row("pc-drift", state="resolved")
    scene.delete("pc-drift", PRIORITY_CLASS)


def test_adopting_is_a_change_that_makes_the_live_figures_the_intent(scene):
    scene.cards("acme-online", {H200: 7})
    scene.edit("acme-online", {"spec": {"weight": 5}})
    row = scene.until(lambda: (r := Drift.objects.filter(name="acme-online").first()) and len(r.fields) == 2 and r)
    change = adopting.adopt(drifts=[row], access=scene.ground.access("root"), reason="agreed with the team")
    assert change.state == "applying"
    document = scene.ground.tree()["queue/acme-online"]
    assert (document["card_quota"], document["weight"]) == ({H200: 7}, 5)
    with pytest.raises(DomainError, match="says already"):  # from another tab
        adopting.adopt(drifts=[row], access=scene.ground.access("root"), reason="agreed with the team")
    changes.sweep()
    ended = scene.row("acme-online", state="resolved")
    assert (ended.end, ended.change_id) == ("adopted", change.pk)
    assert AuditEntry.objects.filter(action="drift.adopt", object_label="Queue acme-online").exists()


def test_an_adoption_that_breaks_the_tree_is_refused_and_nothing_changes(scene):
    scene.cards("acme-online", {H200: 99})
    row = scene.row("acme-online")
    with pytest.raises(DomainError) as caught:
        adopting.adopt(drifts=[row], access=scene.ground.access("root"), reason="more")
    assert caught.value.code == "quota_breach"
    row.refresh_from_db()
    assert (row.state, row.asked) == ("open", "")


def test_queues_of_nobody_are_listed_and_go_when_they_are_taken_over(scene):
    stray = {"apiVersion": QUEUE.group_version, "kind": QUEUE.name, "metadata": {"name": "stray"}}
    assert scene.client.send("POST", QUEUE.path(), stray | {"spec": {"weight": 1}}).done
    scene.until(lambda: "stray" in (look := drift_look(scene.cluster)).unmanaged and look)
    scene.delete("stray")
    scene.until(lambda: "stray" not in drift_look(scene.cluster).unmanaged)
    assert not Drift.objects.filter(name="stray").exists()


def test_only_a_platform_admin_decides_and_says_why(scene):
    scene.edit("acme-train", {"spec": {"weight": 7}})
    row = scene.row("acme-train")
    for who in ("auditor", "owner", "rival"):
        with pytest.raises(DomainError) as caught:
            drift.ignore(drifts=[row], access=scene.ground.access(who), reason="mine")
        assert caught.value.code == "permission_denied"
    with pytest.raises(DomainError) as caught:
        drift.repush(drifts=[row], access=scene.ground.access("root"), reason=" ")
    assert caught.value.extra["errors"][0]["code"] == "reason_required"
    assert visible_drift(scene.ground.access("owner")).count() == 1
    assert visible_drift(scene.ground.access("rival")).count() == 0
    type(scene.cluster).objects.filter(pk=scene.cluster.pk).update(mode="observe")
    with pytest.raises(DomainError) as caught:
        drift.repush(drifts=[row], access=scene.ground.access("root"), reason="because")
    assert caught.value.code == "conflict"


def test_an_edit_takes_nothing_from_others_in_silence_and_pushing_again_does(scene):
    scene.edit("acme-train", {"spec": {"weight": 7}})
    row = scene.row("acme-train")
    change = scene.ground.carry_out({"queue/acme-train": {"weight": 3}})
    changes.sweep()
    change.refresh_from_db()
    assert change.state == "failed"
    assert "kubectl-edit" in change.error
    assert scene.live("acme-train")["spec"]["weight"] == 7
    drift.repush(drifts=[row], access=scene.ground.access("root"), reason="three it is")
    scene.push()
    assert scene.row("acme-train", state="resolved").end == "pushed"
    assert scene.live("acme-train")["spec"]["weight"] == 3


def test_a_new_worker_finds_what_is_there_and_no_more(scene):
    scene.edit("acme-train", {"spec": {"weight": 7}})
    row = scene.row("acme-train")
    scene.cache.stop()
    again = Scene(scene.ground, scene.client)
    try:
        again.until(lambda: again.watch._known)
        assert list(Drift.objects.values_list("pk", "state")) == [(row.pk, "open")]
    finally:
        scene.cache = again.cache


def heavier(name, weight):
    """An edit that the cluster does not take: a Queue's weight ends at 65535."""
    row = Queue.objects.get(name=name)
    Queue.objects.filter(pk=row.pk).update(weight=weight, version=row.version + 1, sync_state="pending")


def test_a_push_that_the_cluster_refuses_is_drift_with_its_words_and_an_alert(scene):
    scene.until(lambda: drift_look(scene.cluster))
    heavier("acme-online", 70_000)
    scene.push()
    row = scene.row("acme-online")
    assert (row.what, row.state, fields(row)) == ("refused", "open", {"spec.weight": ("70000", "1", "1")})
    assert "should be from 1 to 65535" in row.refusal
    alert = scene.until(lambda: Alert.objects.filter(key=drift_watch.REFUSED_KEY, resolved_at__isnull=True).first())
    assert (alert.code, alert.numbers["object"]) == ("push_refused", "Queue acme-online")
    assert "should be from 1 to 65535" in alert.message
    assert not Alert.objects.filter(key=drift_watch.ALERT_KEY).exists()
    heavier("acme-online", 7)
    scene.push()
    scene.until(lambda: Drift.objects.get().state == "resolved")
    scene.until(lambda: not Alert.objects.filter(resolved_at__isnull=True).exists())
    assert scene.live("acme-online")["spec"]["weight"] == 7


def test_a_refused_push_rests_longer_each_time_and_an_edit_goes_at_once(scene, server):
    heavier("acme-online", 70_000)
    pauses = []
    for _ in range(3):
        scene.push()
        row = Queue.objects.get(name="acme-online")
        pauses.append(round((row.retry_at - timezone.now()).total_seconds(), -1))
        sent = len(server.writes())
        push.push_pending()
        scene.push()
        assert len(server.writes()) == sent, "it rests"
        Queue.objects.filter(pk=row.pk).update(retry_at=timezone.now())
    assert pauses == [30, 60, 120]
    assert push.push_pending()[scene.cluster.slug].refused, "its rest is over"
    heavier("acme-online", 3)
    assert push.push_pending()[scene.cluster.slug].written == 1
    row = Queue.objects.get(name="acme-online")
    assert (row.sync_state, row.sync_error, row.refusals, row.retry_at) == ("in_step", "", 0, None)


def test_a_comparison_and_a_decision_take_as_many_statements_for_many_objects_as_for_one(db, monkeypatch):
    monkeypatch.setattr(drift, "wake_push", lambda: True)
    ground = ground_module.build(mode="quota")

    def statements(act):
        with CaptureQueriesContext(connection) as asked:
            act()
        return len(asked)

    def seen(count, live):
        keys = [(kind, f"{kind.lower()}-{number}") for kind in ("Queue", "PriorityClass") for number in range(count)]
        differs = {key: ("changed", [FieldDrift("spec.weight", "1", "1", live)]) for key in keys if live}
        return drift.Seen(differs, set(keys), {key: Intended({}) for key in keys}, {})

    def story(count):
        compare = partial(drift.record, cluster=ground.cluster, live={})
        decide = {"access": ground.access("root"), "reason": "drill"}
        found = [statements(partial(compare, seen=seen(count, live))) for live in ("2", "3")]
        rows = list(Drift.objects.filter(state="open"))
        assert len(rows) == 2 * count
        found += [statements(partial(act, drifts=rows, **decide)) for act in (drift.repush, drift.ignore)]
        found.append(statements(partial(compare, seen=seen(count, ""))))
        assert not Drift.objects.exclude(state="resolved").exists()
        return found

    assert story(30) == story(1)
