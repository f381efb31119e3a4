"""Evictions by others in a cluster that is only observed: recognised, named, recorded once, beside the own decision."""

from __future__ import annotations

import datetime as dt
import json

import msgspec
import pytest
from django.test import Client

from scheduler_core.model.podgroup import EvictedPolicy
from tests.cluster.objects import CARD, template
from tests.waiting import PATIENCE, until
from tidesched_web.accounts.services import create_user
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.kubernetes.cache import ClusterCache
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH
from tidesched_web.clusters.kubernetes.manifests import GROUP_NAME
from tidesched_web.clusters.kubernetes.paths import EVENT, POD, POD_GROUP
from tidesched_web.clusters.models import Cluster
from tidesched_web.console.gangs import timeline
from tidesched_web.engine.model import CardRequest, Pod, PodGroup, PodPhase, Snapshot
from tidesched_web.scheduling.models import ObservedEviction, Reclaim, ReclaimVictim
from tidesched_web.scheduling.pipeline import inputs, observed, sightings
from tidesched_web.scheduling.pipeline.context import ClusterContext
from tidesched_web.scheduling.pipeline.observed import Observer
from tidesched_web.scheduling.pipeline.observed_instead import instead_of
from tidesched_web.scheduling.pipeline.observed_losses import Gangs
from tidesched_web.scheduling.selectors import others_and_own
from tidesched_web.workloads.models import Gang, GangEvent
from tidesched_web.workloads.selectors import with_steps

WORK = "work"


class Watched:
    """A stage whose training runs, switched to mode observe; evictions are made as Volcano makes them."""

    def __init__(self, stage):
        self.stage = stage
        stage.train("ring", pods=2, cards=8)
        stage.sessions_until(lambda: stage.running("ring") == 2)
        Cluster.objects.filter(pk=stage.cluster.pk).update(mode="observe")
        self.observer = self.restart()

    def restart(self):
        """The process ends and another one takes the cluster: a new cache, nothing in mind."""
        context, observer = self.stage.context, Observer(self.stage.cluster.pk)
        context.cache.stop()
        cache = ClusterCache(self.stage.client, schedulers=["tidesched"], taps=[observer.sightings])
        cache.start()
        assert cache.wait_synced(PATIENCE)
        self.stage._cache = cache
        self.stage.context = ClusterContext(
            context_cluster(self.stage), context.lease, self.stage.client, cache, observer=observer
        )
        self.stage.context.load()
        self.observer = observer
        return observer

    def pod(self, prefix):
        return self.stage.pods(prefix)[0]

    def status(self, pod, status):
        path = POD.path(WORK, pod["metadata"]["name"], "status")
        outcome = self.stage.client.send("PATCH", path, {"status": status}, content_type=MERGE_PATCH)
        assert outcome.done, outcome

    def evict(self, pod, *, action="reclaim", leave=True):
        """Conditions first, then a plain DELETE, as Volcano does."""
        said = f"Pod is evicted, because of {action}"
        self.status(
            pod,
            {
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "Evict", "message": said},
                    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": said},
                ]
            },
        )
        if leave:
            name = pod["metadata"]["name"]
            assert self.stage.client.send("DELETE", POD.path(WORK, name), {"gracePeriodSeconds": 30}).done

    def event(self, victim, reclaimer):
        """As kube-scheduler says it."""
        body = {
            "metadata": {"generateName": "preempted-", "namespace": WORK},
            "involvedObject": {
                "kind": "Pod",
                "namespace": WORK,
                "name": victim["metadata"]["name"],
                "uid": victim["metadata"]["uid"],
            },
            "reason": "Preempted",
            "message": f"Preempted by pod {reclaimer['metadata']['uid']} on node n0",
            "type": "Normal",
        }
        outcome = self.stage.client.send("POST", EVENT.path(WORK), body)
        assert outcome.done, outcome

    def reclaim(self, check=lambda row: True):
        def found():
            row = Reclaim.objects.filter(source="observed").order_by("-id").first()
            return row if row is not None and check(row) else None

        return self.stage.sessions_until(found)


def context_cluster(stage):
    return Cluster.objects.get(pk=stage.cluster.pk)


@pytest.fixture
def watched(stage):
    return Watched(stage)


def test_a_nominated_pod_names_the_reclaimer_and_the_own_decision_stands_beside(watched):
    stage = watched.stage
    stage.serve("web", replicas=1, cards=8)
    stage.sessions_until(lambda: stage.pods("web"))
    own = stage.sessions_until(lambda: (s := stage.session()) and s.counts["reclaims"] and s)
    victim, claimant = watched.pod("ring"), watched.pod("web")
    watched.status(claimant, {"nominatedNodeName": victim["spec"]["nodeName"]})
    watched.evict(victim)
    row = watched.reclaim()
    assert (row.source, row.made_by, row.action) == ("observed", "volcano", "reclaim")
    assert row.reclaimer.startswith(f"{WORK}/web")
    assert (row.queue_name, row.state) == ("serve", "promised")
    assert (row.needed["cards"], row.freed["cards"]) == ({CARD: 8}, {CARD: 8})
    fallen = ReclaimVictim.objects.get(reclaim=row)
    assert (fallen.gang, fallen.queue_name, fallen.cards) == (f"{WORK}/ring", "train", {CARD: 8})
    assert fallen.pods == [f"{WORK}/{victim['metadata']['name']}"]
    assert ObservedEviction.objects.get().evidence == "nominated"
    instead = row.instead
    assert (instead["found"], instead["gangs"]) == ("reclaims", 1)
    assert instead["session"] >= own.number
    assert instead["reclaims"][0]["reclaimer"] == row.reclaimer
    # The own way takes the gang whole, so it frees both of its pods.
    assert instead["cards"] == {CARD: 16}
    snapshot, _ = inputs.read(row.session)
    quota = {one.name: one.card_quota for one in snapshot.queues if one.card_quota}
    assert_receipt(row, quota)
    # The job restarts with its pod: the work of both pods is lost, as in the own way.
    assert len(fallen.restarted) == 1
    # The own decision was taken earlier.
    assert 0 < instead["work_lost_card_seconds"] <= row.work_lost_card_seconds
    entry = AuditEntry.objects.get(action="reclaim.observe")
    assert entry.pk == row.audit_entry_id
    assert (entry.actor, entry.after["made_by"], entry.after["evidence"]) == ("observer", "volcano", ["nominated"])


def assert_receipt(row, quota):
    """Two pods of 8 ran in queue train, one of them was evicted; serve used nothing yet and waits for 8."""
    unknown = ["votes", "candidates", "gain"]
    use = {"serve": (0, 0), "train": (16, 8)}
    admin = create_user(username="looks", password="a long password", platform_role="auditor", actor="tests")
    client = Client()
    client.force_login(admin)
    document = client.get(f"/api/v1/reclaims/{row.pk}/").json()
    entry = AuditEntry.objects.get(pk=row.audit_entry_id)
    hashed = json.loads(bytes(entry.payload))["after"]
    for said in (document, hashed):
        assert [one["queue"] for one in said["queues"]] == ["serve", "train"]
        for one in said["queues"]:
            before, after = use[one["queue"]]
            assert one["before"]["cards"] == {CARD: before}
            assert one["after"]["cards"] == {CARD: after}
            assert one["quota"] == {CARD: quota[one["queue"]][CARD] / 1000}
        assert (said["votes"], said["candidates"], said["more_candidates"]) == ([], [], None)
        assert said["unknown"] == unknown
        assert said["victims"][0]["queue_priority"] is not None
        assert said["needed"]["cards"] == {CARD: 8}
    page = client.get(f"/clusters/{row.cluster.slug}/reclaims/{row.pk}/").content.decode()
    for words in (
        "within its quota with the 8 that it waits for",
        "Another scheduler chose.",
        "its cards were taken back",
    ):
        assert words in page, words
    assert "within its quota with the 8" in client.get(f"/audit/{entry.pk}/").content.decode()


def test_nobody_is_named_where_the_cluster_does_not_say_and_a_restart_changes_nothing(watched):
    watched.stage.session()  # saw the pods running, and wants none of them
    victim = watched.pod("ring")
    watched.evict(victim, leave=False)
    row = watched.reclaim()
    assert (row.reclaimer, row.queue_name, row.state) == ("", "", "seen")
    assert (row.instead["found"], row.instead["gangs"]) == ("stands", 0)
    watched.restart()
    for _ in range(3):
        watched.stage.session()
    assert Reclaim.objects.filter(source="observed").count() == 1
    assert ObservedEviction.objects.count() == 1
    assert AuditEntry.objects.filter(action__startswith="reclaim.").count() == 1


def started(pod):
    return dt.datetime.fromisoformat(pod["status"]["startTime"])


def test_a_gang_that_restarts_as_a_whole_loses_the_work_of_all_its_pods_once(watched):
    first, second = watched.stage.pods("ring")
    watched.stage.session()
    watched.evict(first, leave=False)
    row = watched.reclaim()
    lost = ReclaimVictim.objects.get(reclaim=row)
    both = sum(8 * (row.at - started(one)).total_seconds() for one in (first, second))
    assert lost.restarted == [second["metadata"]["uid"]]
    assert row.work_lost_card_seconds == lost.work_lost_card_seconds == pytest.approx(both, abs=32)
    assert row.freed["cards"] == {CARD: 8}
    entry = AuditEntry.objects.get(action="reclaim.observe")
    assert (entry.after["restarting_pods"], entry.after["work_lost_card_seconds"]) == (
        1,
        round(row.work_lost_card_seconds, 3),
    )
    watched.evict(second, leave=False)
    whole = watched.reclaim(lambda row: row.freed["cards"] == {CARD: 16})
    again = ReclaimVictim.objects.get(reclaim=whole)
    assert (whole.pk, len(again.pods), again.restarted) == (row.pk, 2, [])
    assert whole.work_lost_card_seconds == again.work_lost_card_seconds == row.work_lost_card_seconds


def test_the_page_names_the_pods_that_restart_with_the_evicted_one(watched, client):
    watched.stage.session()
    watched.evict(watched.pod("ring"), leave=False)
    row = watched.reclaim()
    client.force_login(create_user(username="root", password=None, platform_role="admin", actor="tests"))
    page = client.get(f"/clusters/{watched.stage.cluster.slug}/reclaims/{row.pk}/").content.decode()
    assert "1 more pod restarts with it." in page
    listed = client.get(f"/api/v1/reclaims/{row.pk}/").json()
    assert [victim["restarting_pods"] for victim in listed["victims"]] == [1]


def spare_gang(members, least, policy=""):
    group = PodGroup(namespace=WORK, name="g", min_member=least, evicted_policy=EvictedPolicy(policy))
    made = Pod(namespace=WORK, name="", scheduler="volcano", node="n0", phase=PodPhase.RUNNING, started=100.0)
    pods = [
        msgspec.structs.replace(
            made, name=f"p{i}", uid=f"u{i}", card=CardRequest((CARD,), "gpu", 2000), annotations={GROUP_NAME: "g"}
        )
        for i in range(members)
    ]
    return Snapshot(pods=tuple(pods), pod_groups=(group,))


@pytest.mark.parametrize(
    ("least", "policy", "evicted", "before", "restarting"),
    [
        (2, "", {"u0"}, set(), []),
        (3, "", {"u0"}, set(), []),
        (3, "", {"u0"}, {"u3"}, ["u1", "u2"]),
        (4, "", {"u0"}, set(), ["u1", "u2", "u3"]),
        (4, "", {"u0"}, {"u3"}, []),
        (1, "RestartJob", {"u0", "u2"}, set(), ["u1", "u3"]),
        (1, "AbortJob", {"u0"}, set(), ["u1", "u2", "u3"]),
        (1, "RestartTask", {"u0"}, set(), []),
    ],
)
def test_which_pods_restart_with_those_that_others_evicted(least, policy, evicted, before, restarting):
    gangs = Gangs({f"{WORK}/g"}, spare_gang(4, least, policy), now=130.0)
    siblings = gangs.siblings(f"{WORK}/g", evicted, before, counted=())
    assert siblings.uids == restarting
    assert siblings.card_seconds == 2 * 30.0 * len(restarting)
    assert gangs.siblings(f"{WORK}/g", evicted, before, counted=restarting).uids == []


def test_the_reclaimer_is_the_gang_of_a_pod_that_another_scheduler_places(watched):
    stage = watched.stage
    stage.send(
        POD_GROUP.path(WORK),
        {
            "apiVersion": POD_GROUP.group_version,
            "kind": POD_GROUP.name,
            "metadata": {"name": "claimants"},
            "spec": {"minMember": 2, "queue": "serve"},
        },
    )
    for name in ("one", "two"):
        body = {**template(8), "metadata": {"name": name, "annotations": {GROUP_NAME: "claimants"}}}
        body["spec"] = {**body["spec"], "schedulerName": "volcano"}
        stage.send(POD.path(WORK), body)
    until(lambda: stage.known("two"))
    stage.session()
    victim = watched.pod("ring")
    for name in ("one", "two"):
        watched.status(watched.pod(name), {"nominatedNodeName": victim["spec"]["nodeName"]})
    watched.evict(victim, leave=False)
    row = watched.reclaim()
    assert (row.reclaimer, row.queue_name) == (f"{WORK}/claimants", "serve")
    assert row.promised_pods == [f"{WORK}/one", f"{WORK}/two"]


def test_what_the_session_had_not_seen_is_not_compared(watched):
    stage = watched.stage
    stage.session()
    watched.evict(watched.pod("ring"), leave=False)
    row = watched.reclaim()
    Reclaim.objects.filter(pk=row.pk).update(at=Cluster.objects.get(pk=stage.cluster.pk).clock())
    seen = others_and_own(stage.cluster)
    assert (seen.reclaims, seen.compared, seen.work) == (1, 1, row.work_lost_card_seconds)
    decided = watched.observer._own.before(ReclaimVictim.objects.get(reclaim=row).pods)
    assert decided is not None
    unseen = instead_of(decided, f"{WORK}/newcomer")
    assert sorted(unseen) == ["at", "found", "session", "session_id"]
    Reclaim.objects.filter(pk=row.pk).update(instead=unseen)
    left_out = others_and_own(stage.cluster)
    assert (left_out.reclaims, left_out.compared, left_out.gangs, left_out.work) == (1, 0, 0, 0.0)


def test_two_nominated_gangs_are_a_doubt_and_an_event_settles_it(watched, monkeypatch):
    stage = watched.stage
    monkeypatch.setattr(observed, "NAMED_EVERY_SECONDS", 0.0)
    for name in ("web", "api"):
        stage.serve(name, replicas=1, cards=8)
        stage.sessions_until(lambda name=name: stage.pods(name))
    victim = watched.pod("ring")
    for name in ("web", "api"):
        watched.status(watched.pod(name), {"nominatedNodeName": victim["spec"]["nodeName"]})
    watched.evict(victim, leave=False)
    row = watched.reclaim()
    assert row.reclaimer == ""
    watched.event(victim, watched.pod("api"))
    named = watched.reclaim(lambda row: row.reclaimer)
    assert (named.pk, named.queue_name) == (row.pk, "serve")
    assert "api" in named.reclaimer
    assert ObservedEviction.objects.get().evidence == "event"
    assert list(
        AuditEntry.objects.filter(action__startswith="reclaim.").order_by("seq").values_list("action", flat=True)
    ) == [
        "reclaim.observe",
        "reclaim.name",
    ]


def test_each_of_two_reclaims_in_one_write_has_its_own_moment(watched):
    stage = watched.stage
    for name in ("web", "api"):
        stage.serve(name, replicas=1, cards=8)
        stage.sessions_until(lambda name=name: stage.pods(name))
    first, second = stage.pods("ring")
    for victim, name in ((first, "web"), (second, "api")):
        watched.event(victim, watched.pod(name))
        watched.evict(victim, leave=False)
    until(lambda: len(watched.observer.sightings._new) == 2)
    stage.session()
    rows = Reclaim.objects.filter(source="observed").order_by("id")
    assert len({row.session_id for row in rows}) == 1, "one write"
    use = [
        (one["before"]["cards"][CARD], one["after"]["cards"][CARD])
        for row in rows
        for one in row.receipt["queues"]
        if one["queue"] == "train"
    ]
    assert use == [(16, 8), (8, 0)]


def test_pods_of_one_reclaim_are_one_row_and_own_evictions_are_not_seen_twice(watched):
    first, second = watched.stage.pods("ring")
    watched.evict(first, leave=False)
    row = watched.reclaim()
    watched.evict(second, leave=False)
    whole = watched.reclaim(lambda row: row.freed["cards"] == {CARD: 16})
    assert whole.pk == row.pk
    assert len(ReclaimVictim.objects.get(reclaim=row).pods) == 2
    assert ObservedEviction.objects.filter(reclaim=row).count() == 2
    (fall,) = GangEvent.objects.filter(gang__name="ring", kind="reclaimed")
    assert (fall.reclaim_id, fall.detail) == (row.pk, {"made_by": "volcano", "pods": 2})
    steps = with_steps(Gang.objects.filter(name="ring")).get().step_rows
    shown = timeline(None, [step for step in steps if step["kind"] == "reclaimed"])
    assert [step["sentence"] for step in shown] == ["2 pods of it were evicted. By: Volcano."]


def pod(conditions, **metadata):
    return {
        "metadata": {"namespace": "a", "name": "p", "uid": "1", **metadata},
        "spec": {"nodeName": "n0"},
        "status": {"conditions": conditions},
    }


def condition(type_, status, reason, message=""):
    return {"type": type_, "status": status, "reason": reason, "message": message}


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ([condition("Ready", "False", "Evict", "Pod is evicted, because of gangreclaim")], ("volcano", "gangreclaim")),
        (
            [condition("DisruptionTarget", "True", "PreemptionByScheduler", "default-scheduler: preempting to …")],
            ("scheduler", "preempt"),
        ),
        ([condition("DisruptionTarget", "True", "PreemptionByScheduler")], ("unknown", "preempt")),
        (
            [condition("DisruptionTarget", "True", "PreemptionByScheduler", "Pod is evicted, because of reclaim")],
            ("volcano", "reclaim"),
        ),
        (
            [condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")],
            ("unknown", "evict"),
        ),
        ([condition("DisruptionTarget", "True", "DeletionByTaintManager")], None),
        ([condition("DisruptionTarget", "False", "PreemptionByScheduler")], None),
        ([condition("Ready", "False", "ContainersNotReady")], None),
        ([], None),
    ],
)
def test_what_a_pods_conditions_say(conditions, found):
    seen = sightings.recognised(pod(conditions))
    assert (None if seen is None else (str(seen.made_by), seen.action)) == found


@pytest.mark.parametrize(
    ("event", "named"),
    [
        ({"reason": "Preempted", "related": {"kind": "Pod", "namespace": "b", "name": "q", "uid": "7"}}, ("b/q", "7")),
        ({"reason": "Preempted", "message": "Preempted by pod 0d3c-11aa on node n0"}, ("", "0d3c-11aa")),
        ({"reason": "Preempted", "message": "Preempted by b/q on node n0"}, ("b/q", "")),
        ({"reason": "Preempted", "message": "Preempted by a pod on node n0"}, ("", "")),
        ({"reason": "Evict", "message": "Pod is evicted, because of reclaim"}, ("", "")),
    ],
)
def test_an_event_names_a_pod_or_nobody(event, named):
    assert sightings.named_in_event(event) == named
