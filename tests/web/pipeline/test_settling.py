"""What a session leaves half done is settled by the next one, gang by gang; refusals in the middle are recorded."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from scheduler_core.framework.disruption_budgets import DisruptionBudgets
from tests.waiting import until
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, DISRUPTION_BUDGET, JOB
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.permissions import Access
from tidesched_web.engine.model import Snapshot
from tidesched_web.scheduling.models import (
    Alert,
    ClusterLease,
    Decision,
    QueueUsage,
    Reclaim,
    ReclaimState,
    ReclaimVictim,
    Session,
)  # fmt: skip
from tidesched_web.scheduling.pipeline import failpoints, memory, reclaims
from tidesched_web.scheduling.pipeline.failpoints import FailpointRaised
from tidesched_web.scheduling.pipeline.lease import LeaseLost
from tidesched_web.scheduling.selectors import reclaims_with_victims
from tidesched_web.workloads.models import Gang


@pytest.fixture
def fail_at(monkeypatch: pytest.MonkeyPatch) -> Any:
    def arm(text: str) -> None:
        monkeypatch.setattr(failpoints, "_active", failpoints.parse(text))

    return arm


def interrupted(stage: Stage) -> None:
    """Run sessions until the failpoint is hit."""
    for _ in range(30):
        try:
            stage.session()
        except FailpointRaised:
            return
    pytest.fail("the failpoint was not reached")


def open_decisions() -> int:
    return Decision.objects.filter(state__in=["decided", "sending"]).count()


def refusing(monkeypatch: pytest.MonkeyPatch, method: str, when: Any) -> None:
    """Let the API server refuse some writes."""
    original = getattr(ClusterWrites, method)

    def patched(self: ClusterWrites, namespace: str, name: str, **arguments: Any) -> Outcome:
        if when(name, arguments):
            return Outcome(OutcomeKind.REFUSED, "Forbidden", "an admission webhook says no")
        return original(self, namespace, name, **arguments)

    monkeypatch.setattr(ClusterWrites, method, patched)


def test_a_half_bound_gang_is_finished(stage: Stage, fail_at: Any) -> None:
    stage.train("job", pods=12)
    fail_at("bind.between_members=raise:@2")
    interrupted(stage)
    assert Decision.objects.filter(kind="bind", state="sending").count() == 12
    done = stage.session()
    assert done.counts["settled"] >= 12
    assert open_decisions() == 0
    assert stage.bound("job") == 12
    stage.sessions_until(lambda: stage.running("job") == 12)
    binds = [row["key"] for row in stage.server.writes() if row["resource"] == "pods/binding" and row["code"] < 300]
    assert len(binds) == len(set(binds)) == 12


def test_a_gang_of_which_nothing_was_bound_is_decided_anew(stage: Stage, fail_at: Any) -> None:
    stage.train("job", pods=4)
    fail_at("session.committed=raise")
    interrupted(stage)
    assert Decision.objects.filter(kind="bind", state="decided").count() == 4
    stage.session()
    assert Decision.objects.filter(kind="bind", state="superseded").count() == 4
    stage.sessions_until(lambda: stage.running("job") == 4)


def test_a_gang_that_cannot_be_completed_is_taken_back_as_a_recorded_act(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "BACK_OFF_SECONDS", 10.0)  # longer than five sessions on a busy machine
    stage.train("job", pods=4)
    refused = True
    refusing(monkeypatch, "bind_pod", lambda name, _: refused and name.endswith("-3"))
    done = (
        stage.sessions_until(lambda: Decision.objects.filter(detail__action="take_back").exists()) and stage.session()
    )
    assert done
    acts = Decision.objects.filter(detail__action="take_back")
    assert set(acts.values_list("kind", "state")) == {("evict", "done")}
    assert acts.count() >= 3
    assert all(act.detail["takes_back"] for act in acts)
    # It is not tried again at once: else its pods would start and fall with every session.
    times = acts.values("session").distinct().count()
    for _ in range(5):
        stage.session()
    assert acts.values("session").distinct().count() == times
    # Its job may have been started anew by now, under another PodGroup.
    assert Gang.objects.exclude(state="finished").get(name__startswith="job").reason_code in (
        "BackingOff",
        "GangIncomplete",
    )
    refused = False
    stage.sessions_until(lambda: stage.running("job") == 4)


def test_evictions_that_were_not_begun_are_cancelled_and_their_promise_forgotten(stage: Stage, fail_at: Any) -> None:
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    stage.serve("web", replicas=2)
    fail_at("evict.dry_run_done=raise")
    interrupted(stage)
    first = Reclaim.objects.get()
    kept = memory.load(stage.cluster.pk)
    assert kept is not None
    assert any(one.victims for one in kept.reservations)
    stage.sessions_until(lambda: stage.running("web") == 2)
    first.refresh_from_db()
    assert first.state == ReclaimState.CANCELLED
    stage.sessions_until(lambda: Reclaim.objects.filter(state=ReclaimState.DONE).count() == 1)


def test_a_half_evicted_gang_is_finished(stage: Stage, fail_at: Any) -> None:
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    stage.serve("web", replicas=2)
    fail_at("evict.between_members=raise:@3")
    interrupted(stage)
    stage.sessions_until(lambda: stage.running("web") == 2)
    assert open_decisions() == 0
    assert Decision.objects.filter(kind="evict", state="done").count() == 16
    stage.sessions_until(lambda: Reclaim.objects.get().state == ReclaimState.DONE)


@pytest.fixture
def budgets_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions decide as if there were no disruption budget yet; what they decide meets it all the same."""
    monkeypatch.setattr(DisruptionBudgets, "violations", lambda *_: {})
    monkeypatch.setattr(DisruptionBudgets, "cover_any", lambda *_: False)


def test_a_gang_whose_binds_are_all_refused_gives_its_cards_to_others(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing(monkeypatch, "bind_pod", lambda name, _: name.startswith("fenced"))
    stage.train("fenced", pods=12)
    stage.sessions_until(lambda: Decision.objects.filter(kind="bind", state="failed").count() >= 12)
    gang = Gang.objects.get(name__startswith="fenced")
    assert (gang.reason_code, gang.phase) == ("BackingOff", "Inqueue")
    assert "an admission webhook says no" in gang.reason_message
    assert stage.group("fenced")["status"]["phase"] != "Running"
    stage.train("other", pods=8)
    stage.sessions_until(lambda: stage.running("other") == 8)
    used = {row.queue.name: row.allocated for row in QueueUsage.objects.filter(queue__name="train")}
    assert used == {"train": 8000}
    monkeypatch.undo()
    stage.client.send("DELETE", JOB.path(NAMESPACE_NAME, "other"))
    stage.sessions_until(lambda: stage.running("fenced") == 12)


def test_who_is_under_a_disruption_budget_is_not_even_asked_to_leave(stage: Stage) -> None:
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    budget = {"metadata": {"name": "all"}, "spec": {"minAvailable": 16, "selector": {}}}
    stage.send(DISRUPTION_BUDGET.path(NAMESPACE_NAME), budget)
    stage.serve("web", replicas=2)
    stage.sessions_until(lambda: Gang.objects.filter(name="web", reason_code="WaitingForCards").exists())
    assert not Reclaim.objects.exists()
    assert not [row for row in stage.server.writes() if row["resource"] == "pods/eviction"]


@pytest.mark.usefixtures("budgets_come_late")
def test_a_disruption_budget_stops_the_reclaim_before_anybody_has_lost_anything(stage: Stage) -> None:
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    stage.send(
        DISRUPTION_BUDGET.path(NAMESPACE_NAME),
        {"metadata": {"name": "all"}, "spec": {"minAvailable": 16, "selector": {}}},
    )
    stage.serve("web", replicas=2)
    stage.sessions_until(Reclaim.objects.exists)
    reclaim = Reclaim.objects.first()
    assert reclaim is not None
    assert reclaim.state == ReclaimState.CANCELLED
    assert stage.running("victim") == 16
    decision = Decision.objects.filter(kind="evict", state="failed").first()
    assert decision is not None
    assert "Dry run" in decision.outcome
    kept = memory.load(stage.cluster.pk)
    assert kept is not None
    assert not any(one.victims for one in kept.reservations)
    evictions = [row for row in stage.server.writes() if row["resource"] == "pods/eviction"]
    assert evictions
    assert all(row["dry_run"] for row in evictions)


@pytest.mark.usefixtures("budgets_come_late")
def test_a_budget_that_would_let_some_of_a_gang_go_lets_none_go(stage: Stage) -> None:
    """Each pod passes a dry run by itself; but the gang falls with its first."""
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    budget = {"metadata": {"name": "most"}, "spec": {"minAvailable": 14, "selector": {}}}
    stage.send(DISRUPTION_BUDGET.path(NAMESPACE_NAME), budget)
    stage.serve("web", replicas=2)
    stage.sessions_until(Reclaim.objects.exists)
    assert Reclaim.objects.first().state == ReclaimState.CANCELLED
    assert "allows 2 disruptions" in Decision.objects.filter(kind="evict", state="failed").first().outcome
    assert all(row["dry_run"] for row in stage.server.writes() if row["resource"] == "pods/eviction")
    assert stage.running("victim") == 16


def test_a_refusal_in_the_middle_is_a_partial_reclaim_with_an_alert(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    refusing(
        monkeypatch, "evict_pod", lambda name, arguments: name.endswith("-7") and not arguments.get("dry_run", False)
    )
    stage.serve("web", replicas=2)
    stage.sessions_until(Reclaim.objects.exists)
    assert Reclaim.objects.get().state == ReclaimState.PARTIAL
    alert = Alert.objects.get(code="partial_reclaim")
    assert alert.numbers["stayed"] == ["work/victim-worker-7"]
    # Its controller ends the rest of the gang, so the reclaimer gets its cards all the same.
    stage.sessions_until(lambda: stage.running("web") == 2)
    stage.sessions_until(lambda: Reclaim.objects.get().state == ReclaimState.DONE)


def test_a_receipt_says_which_pods_had_ended_by_themselves(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gang that ends between the decision and its eviction loses nothing to anybody; its receipt says so."""
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    original, there = ClusterWrites.evict_pod, threading.Lock()

    def ends_first(self: ClusterWrites, namespace: str, name: str, **arguments: Any) -> Outcome:
        if not arguments.get("dry_run", False):
            with there:
                if stage.pods("victim"):
                    stage.client.send("DELETE", JOB.path(NAMESPACE_NAME, "victim"))
                    until(lambda: not stage.pods("victim"))
        return original(self, namespace, name, **arguments)

    monkeypatch.setattr(ClusterWrites, "evict_pod", ends_first)
    stage.serve("web", replicas=2)
    stage.sessions_until(Reclaim.objects.exists)
    victim = ReclaimVictim.objects.get()
    sent = [row for row in stage.server.writes() if row["resource"] == "pods/eviction" and row["code"] < 300]
    taken = {row["key"] for row in sent if not row["dry_run"]}
    assert set(victim.ended) == set(victim.pods) - taken
    assert len(victim.ended) == 16
    [row] = reclaims_with_victims(Access(actor="test", everything=True)).filter(pk=victim.reclaim_id)
    assert [(one["ended"], one["pods"]) for one in row.victim_rows] == [(16, 16)]
    stage.sessions_until(lambda: stage.running("web") == 2)


def test_what_was_evicted_for_a_reclaimer_that_left_counts_all_the_same(stage: Stage) -> None:
    """It was cancelled before: no count of evictions and no picture of reclaims showed what was lost."""
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    stage.serve("web", replicas=2)
    stage.sessions_until(lambda: Reclaim.objects.filter(state=ReclaimState.PROMISED).exists())
    assert stage.client.send("DELETE", DEPLOYMENT.path(NAMESPACE_NAME, "web")).done
    stage.sessions_until(lambda: Reclaim.objects.exclude(state=ReclaimState.PROMISED).exists())
    assert Reclaim.objects.get().state == ReclaimState.LEFT
    [row] = reclaims_with_victims(Access(actor="test", everything=True))
    assert [one["times"] for one in row.victim_rows] == [1]


def test_nothing_is_written_under_an_epoch_that_has_passed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that stopped while another one took the lease must not take back what that one completes."""
    stage.train("job", pods=4)
    original = ClusterWrites.bind_pod

    def slow(self: ClusterWrites, namespace: str, name: str, **arguments: Any) -> Outcome:
        if name.endswith("-3"):
            ClusterLease.objects.update(epoch=F("epoch") + 1, holder="another")
            return Outcome(OutcomeKind.REFUSED, "Forbidden", "an admission webhook says no")
        return original(self, namespace, name, **arguments)

    monkeypatch.setattr(ClusterWrites, "bind_pod", slow)
    with pytest.raises(LeaseLost):
        stage.sessions_until(lambda: False)
    assert not Decision.objects.filter(detail__action="take_back").exists()
    assert set(Decision.objects.filter(kind="bind").values_list("state", flat=True)) == {"sending"}


def test_a_pause_during_the_dry_run_evicts_nobody(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    original = ClusterWrites.evict_pod

    def paused(self: ClusterWrites, namespace: str, name: str, **arguments: Any) -> Outcome:
        Cluster.objects.update(paused_at=timezone.now())
        return original(self, namespace, name, **arguments)

    monkeypatch.setattr(ClusterWrites, "evict_pod", paused)
    stage.serve("web", replicas=2)
    stage.sessions_until(Reclaim.objects.exists)
    assert all(row["dry_run"] for row in stage.server.writes() if row["resource"] == "pods/eviction")
    assert stage.running("victim") == 16
    monkeypatch.undo()
    Cluster.objects.update(paused_at=None)
    stage.sessions_until(lambda: stage.running("web") == 2)
    assert open_decisions() == 0


@pytest.mark.usefixtures("budgets_come_late")
def test_a_reclaim_that_may_not_be_is_not_tried_again_at_once(stage: Stage) -> None:
    """Else each session would write one more cancelled reclaim into the history and the audit log."""
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    budget = {"metadata": {"name": "all"}, "spec": {"minAvailable": 16, "selector": {}}}
    stage.send(DISRUPTION_BUDGET.path(NAMESPACE_NAME), budget)
    stage.serve("web", replicas=2)
    stage.sessions_until(Reclaim.objects.exists)
    for _ in range(5):
        stage.session()
    assert Reclaim.objects.count() == 1
    assert AuditEntry.objects.filter(object_type="reclaim").count() == 1


def test_who_may_not_be_evicted_makes_room_for_another_victim(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.train("guarded", pods=8)
    stage.train("other", pods=8)
    stage.sessions_until(lambda: stage.running("guarded") + stage.running("other") == 16)
    refusing(monkeypatch, "evict_pod", lambda name, _: name.startswith("guarded"))
    stage.serve("web", replicas=8)
    stage.sessions_until(lambda: stage.running("web") == 8)
    assert stage.running("guarded") == 8


@pytest.mark.django_db
def test_a_partial_reclaim_whose_reclaimer_is_gone_is_followed_once() -> None:
    cluster = Cluster.objects.create(name="east", slug="east", api_url="https://10.0.0.1:6443")
    now = timezone.now()
    made = Session.objects.create(cluster=cluster, number=1, epoch=1, mode="schedule", now=now, started_at=now)
    row = Reclaim.objects.create(
        cluster=cluster, session=made, at=now, wall_at=now, action="reclaim", state="partial", reclaimer="a/gone",
        needed={}, freed={}, promised_pods=["a/gone-0"],
    )  # fmt: skip
    found = [reclaims.follow(Snapshot(), cluster_id=cluster.pk, at=now, before_session=made.pk + 1) for _ in range(2)]
    assert found == [[row.pk], []]
    assert Reclaim.objects.get().state == ReclaimState.PARTIAL
