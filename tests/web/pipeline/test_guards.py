"""What keeps a session from sending: pause, unreleased policy, eviction budget, another installation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import timezone

from scheduler_core.framework.plugin import Plugin
from scheduler_core.model.errors import BadInput
from scheduler_core.plugins import PLUGINS
from scheduler_core.state.status import Bools
from scheduler_core.state.task_class import TaskClass
from tests.cluster.objects import deployment
from tests.waiting import until
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tidesched_web.audit.models import AuditEntry
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.connection_selectors import same_server
from tidesched_web.clusters.kubernetes.client import MERGE_PATCH, Unreachable
from tidesched_web.clusters.kubernetes.installation_lease import InstallationLease, LeaseAnswer
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, QUEUE
from tidesched_web.clusters.models import Cluster, PolicyRevision
from tidesched_web.clusters.selectors import ruling_policy
from tidesched_web.common.errors import DomainError
from tidesched_web.engine.policy_check import outline
from tidesched_web.scheduling import services
from tidesched_web.scheduling.holds import GUARD_KEY
from tidesched_web.scheduling.models import (
    Alert,
    Decision,
    DecisionState,
    QueueUsage,
    Reclaim,
    Session,
    SessionState,
    TidePoint,
)
from tidesched_web.scheduling.pipeline import guards, lease
from tidesched_web.scheduling.pipeline.context import ClusterContext
from tidesched_web.scheduling.pipeline.guards import Breach
from tidesched_web.scheduling.pipeline.shard import ClusterShard, WentBack
from tidesched_web.workloads.models import Gang


def writes_of_sessions(stage: Stage) -> list[dict]:
    return [row for row in stage.server.writes() if row["epoch"] not in (None, "")]


def fill_and_flood(stage: Stage) -> None:
    """Four gangs on all cards, and a service that needs three of them to fall."""
    for index in range(4):
        stage.train(f"job{index}", pods=4)
    stage.sessions_until(lambda: stage.running("job") == 16)
    stage.serve("web", replicas=12)
    # A session that sees some of them first would take no more than these need, which is below a limit.
    until(lambda: stage.known("web") == 12)


def test_a_paused_cluster_is_watched_but_nothing_is_sent(stage: Stage) -> None:
    stage.train("job", pods=4)
    clusters.pause(cluster=stage.cluster, actor="anna", reason="maintenance")
    done = stage.session()
    assert (done.state, done.counts["held"]) == (SessionState.DRY_RUN, "paused")
    assert writes_of_sessions(stage) == []
    clusters.resume(cluster=Cluster.objects.get(), actor="anna", reason="over")
    stage.sessions_until(lambda: stage.running("job") == 4)


def test_the_first_session_of_a_new_policy_is_shown_as_a_dry_run(stage: Stage) -> None:
    stage.train("job", pods=2)
    text = PolicyRevision.objects.get().text + "# edited\n"
    revision = clusters.set_policy(cluster=stage.cluster, text=text, actor="anna")
    first, second = stage.session(), stage.session()
    assert {first.state, second.state} == {SessionState.DRY_RUN}
    assert first.counts["held"] == "policy_unreleased"
    shown = Decision.objects.filter(session=first)
    assert shown.exists()
    assert set(shown.values_list("state", flat=True)) == {DecisionState.SUPERSEDED}
    assert not Decision.objects.filter(session=second).exists()
    clusters.release_policy(revision=revision, actor="anna")
    stage.sessions_until(lambda: stage.running("job") == 2)


def test_what_is_decided_and_not_sent_is_used_by_no_queue(stage: Stage) -> None:
    stage.train("job", pods=4)
    stage.serve("web", replicas=4)
    until(lambda: stage.known("web") == 4)
    clusters.pause(cluster=stage.cluster, actor="anna", reason="maintenance")
    done = stage.session()
    assert done.counts["binds"] == 4
    use = dict(QueueUsage.objects.values_list("queue__name", "allocated"))
    newest = TidePoint.objects.latest("id")
    assert (use["serve"], use["train"]) == (newest.inference, newest.training) == (0, 0)
    assert set(QueueUsage.objects.values_list("inqueue", flat=True)) == {0}
    clusters.resume(cluster=Cluster.objects.get(), actor="anna", reason="over")
    stage.sessions_until(lambda: stage.running("web") == 4)
    assert QueueUsage.objects.get(queue__name="serve").allocated == 4000


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("evict_gangs_per_minute", 2, "gangs_per_minute"),
        ("evict_cards_per_minute", 8, "cards_per_minute"),
        ("evict_share_of_training", 0.5, "share_of_training"),
    ],
)
def test_beyond_the_eviction_budget_nothing_is_sent_until_a_person_says_so(
    stage: Stage, field: str, value: float, rule: str
) -> None:
    Cluster.objects.update(**{"evict_share_of_training": 1.0, field: value})
    fill_and_flood(stage)
    stopped = stage.sessions_until(lambda: Session.objects.filter(state=SessionState.STOPPED).first())
    before = len(writes_of_sessions(stage))
    assert stopped.error
    assert Alert.objects.get(key=GUARD_KEY, resolved_at=None).numbers["rule"] == rule
    assert not Reclaim.objects.exists()
    held = stage.session()
    assert (held.state, held.counts["held"]) == (SessionState.DRY_RUN, "guard")
    assert len(writes_of_sessions(stage)) == before
    alert = Alert.objects.get(key=GUARD_KEY)
    assert services.resolve_alert(alert=alert, actor="anna", reason="The flood is real.")
    assert not services.resolve_alert(alert=alert, actor="bert")
    with pytest.raises(DomainError):
        services.release_guard(cluster=stage.cluster, actor="bert")
    assert AuditEntry.objects.get(action="guard.release").reason == "The flood is real."
    passed = stage.session()
    assert passed.state == SessionState.DONE
    assert Reclaim.objects.exists()
    assert Alert.objects.get(key=GUARD_KEY).numbers["used_by"] == passed.number
    stage.sessions_until(lambda: stage.running("web") == 12)


def test_a_release_covers_no_more_than_was_shown(stage: Stage) -> None:
    Alert.objects.create(
        cluster=stage.cluster, key=GUARD_KEY, severity="critical", code="eviction_budget", message="",
        numbers={"rule": "gangs_per_minute", "limit": 2, "asked": 3},
        raised_at=timezone.now(), resolved_at=timezone.now(),
    )  # fmt: skip
    cluster = stage.cluster.pk
    assert not guards.use_release(cluster, 7, Breach("gangs_per_minute", 2, 4, ""))
    assert not guards.use_release(cluster, 7, Breach("cards_per_minute", 2, 3, ""))
    assert guards.use_release(cluster, 7, Breach("gangs_per_minute", 2, 3, ""))
    assert not guards.use_release(cluster, 8, Breach("gangs_per_minute", 2, 3, ""))


def test_a_cluster_whose_sessions_keep_failing_raises_an_alert_until_one_succeeds(stage: Stage) -> None:
    context = stage.context
    assert context is not None
    shard = ClusterShard(context.lease)
    for _ in range(3):
        assert not Alert.objects.filter(code="session_failed").exists()
        shard._fail(BadInput("bad", "it cannot be read"), 0.001)
    assert "it cannot be read" in Alert.objects.get(code="session_failed", resolved_at=None).message


def test_a_single_gang_is_never_too_large_a_share(stage: Stage) -> None:
    stage.train("job", pods=4)
    stage.sessions_until(lambda: stage.running("job") == 4)
    stage.serve("web", replicas=14)
    stage.sessions_until(lambda: stage.running("web") == 14)
    assert not Alert.objects.filter(key=GUARD_KEY).exists()


def test_another_installation_keeps_this_one_from_sending(stage: Stage) -> None:
    context = stage.context
    assert context is not None
    assert InstallationLease("somebody-else", seconds=60).hold(stage.client).held
    ClusterShard(context.lease)._hold_lease_object(context)
    stage.train("job", pods=2)
    done = stage.session()
    assert (done.state, done.counts["held"]) == (SessionState.DRY_RUN, "foreign_scheduler")
    assert Alert.objects.get(key="foreign_scheduler").numbers == {"holder": "somebody-else"}
    assert writes_of_sessions(stage) == []


def test_a_lease_that_may_not_be_read_is_no_other_scheduler(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an API server answers that has just started and does not know its roles yet."""
    said = 'leases.coordination.k8s.io "tidesched-scheduler" is forbidden'
    refused = LeaseAnswer(False, "", Outcome(OutcomeKind.REFUSED, "Forbidden", said))
    context = stage.context
    assert context is not None
    monkeypatch.setattr(context.installation_lease, "hold", lambda *_args, **_names: refused)
    with pytest.raises(Unreachable, match="is forbidden"):
        ClusterShard(context.lease)._hold_lease_object(context)
    assert not Alert.objects.filter(key="foreign_scheduler").exists()
    clusters.set_settings(
        cluster=Cluster.objects.get(), values={"mode": "quota"}, actor="anna", reason="Volcano stays."
    )
    ClusterShard(context.lease)._hold_lease_object(context)
    assert (context.foreign_holder, Alert.objects.count()) == ("", 0)


def test_another_server_at_the_address_is_no_ground_to_decide_on(stage: Stage) -> None:
    context = stage.context
    assert context is not None
    shard = ClusterShard(context.lease)
    for _ in range(2):  # the first one makes kube-system
        shard._lease_object_at = float("-inf")
        shard._hold_lease_object(context)
    uid = Cluster.objects.get().server_uid
    assert uid
    Cluster.objects.update(server_uid="another")
    shard._lease_object_at = float("-inf")
    with pytest.raises(WentBack, match=f"kube-system was another and is {uid}") as caught:
        shard._hold_lease_object(context)
    shard._context = context
    shard._begin_anew(str(caught.value), caught.value.server_uid)
    assert Cluster.objects.get().server_uid == uid
    assert Alert.objects.get(code="went_back", resolved_at=None).numbers == {"said": str(caught.value)}


def test_a_server_that_is_connected_already_is_only_shown(stage: Stage) -> None:
    context = stage.context
    assert context is not None
    for _ in range(2):  # the first one makes kube-system
        ClusterShard(context.lease)._hold_lease_object(context)
    first, server = Cluster.objects.get(), stage.server
    twin = clusters.create(name="twin", api_url=server.url, actor="test", mode="schedule", token=server.token)
    held = lease.take(twin.pk, "test")
    assert held is not None
    other = ClusterContext(twin, held, stage.client, context.cache)
    ClusterShard(held)._hold_lease_object(other)
    assert other.foreign_holder == f"cluster {first.name}"
    assert same_server(first.server_uid, but=twin.pk) == first


def test_a_mode_below_schedule_only_looks(stage: Stage) -> None:
    stage.train("job", pods=2)
    for mode in ("observe", "quota"):
        clusters.set_settings(cluster=Cluster.objects.get(), values={"mode": mode}, actor="anna", reason="look first")
        done = stage.session()
        assert (done.state, done.counts["held"]) == (SessionState.DRY_RUN, mode)
    assert writes_of_sessions(stage) == []
    assert timezone.now() >= done.finished_at


@pytest.mark.parametrize("mode", ["observe", "quota"])
def test_where_volcano_schedules_the_pods_of_its_jobs_are_seen(stage: Stage, mode: str) -> None:
    clusters.set_settings(cluster=Cluster.objects.get(), values={"mode": mode}, actor="anna", reason="Volcano stays.")
    stage.leave()
    stage.open()
    web = deployment("web", replicas=2, queue="serve")
    web["spec"]["template"]["spec"]["schedulerName"] = "volcano"  # as Volcano's webhook writes it
    stage.send(DEPLOYMENT.path(NAMESPACE_NAME), web)
    until(lambda: stage.known("web") == 2)
    stage.session()
    gang = Gang.objects.get(owner_name="web")
    assert (gang.replicas, gang.reason_code) == (2, ""), gang.reason_message


def test_the_first_session_after_a_change_of_mode_is_shown_as_a_dry_run(stage: Stage) -> None:
    clusters.set_settings(cluster=stage.cluster, values={"mode": "observe"}, actor="anna", reason="look first")
    stage.train("job", pods=2)
    assert stage.session().counts["held"] == "observe"
    clusters.set_settings(
        cluster=Cluster.objects.get(), values={"mode": "schedule"}, actor="anna", reason="It looks right."
    )
    shown = stage.session()
    assert (shown.state, shown.counts["held"]) == (SessionState.DRY_RUN, "mode_changed")
    assert writes_of_sessions(stage) == []
    stage.sessions_until(lambda: stage.running("job") == 2)


def test_a_change_of_mode_takes_the_figures_of_the_scheduler_before_out_of_the_queues(stage: Stage) -> None:
    stage.session()
    counted = {"running": 5, "pending": 2, "allocated": {"nvidia.com/gpu": "8", "pods": "3"}}
    for mode in ("quota", "schedule"):
        path = QUEUE.path(name="train", subresource="status")
        assert stage.client.send("PATCH", path, {"status": counted}, content_type=MERGE_PATCH).done
        clusters.set_settings(
            cluster=Cluster.objects.get(), values={"mode": mode}, actor="anna", reason="The other one from now on."
        )
        stage.session()
        status = stage.client.get(QUEUE.path(name="train"))["status"]
        assert not any(status.get(count) for count in ("running", "pending", "allocated")), (mode, status)
    stage.client.send("PATCH", path, {"status": counted}, content_type=MERGE_PATCH)
    clusters.set_settings(cluster=Cluster.objects.get(), values={"mode": "observe"}, actor="anna", reason="Look only.")
    stage.session()
    assert stage.client.get(QUEUE.path(name="train"))["status"]["running"] == 5, "mode observe writes nothing"


class Own(Plugin):
    """Installed, gone, and installed again."""

    name = "own"

    def predicate(self, cls: TaskClass) -> Iterator[tuple[str, Bools]]:
        raise KeyError("quiet")
        yield


def test_a_plugin_that_is_gone_leaves_the_policy_before_in_force_until_it_is_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page named the newest revision as the one in force, and the alert stayed open for good."""
    newest = PolicyRevision.objects.get()
    before = newest.pk
    newest.pk, newest.number = None, newest.number + 1
    newest.text = newest.text.replace("plugins:\n", "plugins:\n  - name: own\n", 1)
    newest.save()
    assert stage.session().policy_id == before
    rules = ruling_policy(stage.cluster)
    assert rules is not None
    assert rules.pk == before
    alert = Alert.objects.get(code="policy_invalid", resolved_at=None)
    assert "unknown plugin 'own'" in alert.message
    monkeypatch.setitem(PLUGINS, "own", Own)
    monkeypatch.setattr("scheduler_core.scheduler._tables", None)
    outline.cache_clear()
    rules = ruling_policy(stage.cluster)
    assert rules is not None
    assert rules.pk == newest.pk
    stage.train("job", pods=1)
    with pytest.raises(BadInput):
        stage.sessions_until(lambda: False)
    assert not Alert.objects.filter(code="policy_invalid", resolved_at=None).exists()
    failed = Session.objects.latest("number")
    assert (failed.state, failed.policy_id) == (SessionState.FAILED, newest.pk)
    assert failed.error.startswith("your plugin 'own', method predicate: KeyError: 'quiet'")
