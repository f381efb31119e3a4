"""What a session records beside its decisions: timelines, hardware, alerts, and only what changed."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_core.model.reason import Reason, ReasonCode
from tests.cluster import objects
from tests.cluster.objects import CARD, node
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tidesched_web.accounts.models import PlatformRole, User
from tidesched_web.clusters.kubernetes.paths import DEPLOYMENT, JOB, NODE, POD
from tidesched_web.clusters.models import CardType, Node
from tidesched_web.quota.models import CardQuota
from tidesched_web.scheduling.models import Alert, QueueUsage, TidePoint, UsageChange
from tidesched_web.scheduling.pipeline import usage
from tidesched_web.workloads.models import Gang, GangEvent, GangPod, GangState
from tidesched_web.workloads.timeline import MOST_MESSAGE, reason_detail


def page_of(gang: Gang) -> str:
    admin, _ = User.objects.get_or_create(username="reader", platform_role=PlatformRole.ADMIN)
    client = Client()
    client.force_login(admin)
    return client.get(f"/clusters/{gang.cluster.slug}/gangs/{gang.pk}/").content.decode()


def test_a_session_in_which_nothing_moves_writes_next_to_nothing(stage: Stage) -> None:
    def recorded() -> tuple[int, int, int]:
        return UsageChange.objects.count(), TidePoint.objects.count(), GangEvent.objects.count()

    stage.train("job", pods=4)
    stage.sessions_until(lambda: stage.running("job") == 4 and Gang.objects.filter(ready=4).exists())
    before = stage.settle(recorded)
    with CaptureQueriesContext(connection) as queries:
        stage.session()
    assert recorded() == before
    written = [query["sql"] for query in queries if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]
    assert not [sql for sql in written if "workloads_" in sql]
    assert len(queries) < 45


def test_the_tide_is_written_now_and_then_although_nothing_moves(stage: Stage, monkeypatch) -> None:
    before = stage.settle(TidePoint.objects.count)
    assert before
    stage.session()
    assert TidePoint.objects.count() == before
    monkeypatch.setattr(usage, "TIDE_HEARTBEAT", dt.timedelta())
    stage.session()
    cards = TidePoint.objects.values("card").distinct().count()
    assert TidePoint.objects.count() == before + cards, "else a quiet hour would look like one without sessions"
    promised = CardQuota.objects.filter(queue__service_type="inference", card_type__name=CARD)
    assert TidePoint.objects.filter(card=CARD).last().quota == 1000 * sum(row.cards for row in promised)


def test_a_waiting_gang_has_a_reason_with_numbers_and_a_place(stage: Stage) -> None:
    stage.train("huge", pods=40)
    stage.sessions_until(Gang.objects.exists)
    gang = Gang.objects.get()
    assert (gang.state, gang.needs) == (GangState.WAITING, True)
    assert gang.reason_code
    assert gang.reason_message
    assert gang.reason_since is not None
    assert gang.waiting_since is not None
    assert gang.cards == {CARD: 40}, "although it has no pods yet"
    event = GangEvent.objects.get(gang=gang, kind="reason")
    assert event.detail["code"] == gang.reason_code
    assert event.detail["numbers"]["requested"] == gang.reason_numbers["requested"]
    assert "holders" not in event.detail["numbers"], "who sees the gang reads its timeline"
    stage.session()
    assert GangEvent.objects.filter(gang=gang, kind="reason").count() == 1


def test_names_that_no_column_holds_end_no_session(stage: Stage) -> None:
    for name, group, queue in (("a", "g" * 70, "train"), ("b", "g" * 400, "q" * 400), ("c", "x\0y", "q\0" * 40)):
        pod = objects.pod(name)
        said = {"scheduling.k8s.io/group-name": group, "scheduling.volcano.sh/queue-name": queue}
        pod["metadata"]["annotations"] = said | {
            "volcano.sh/card.name": "\0" + "c" * 400,
            "volcano.sh/task-spec": "r" * 99,
        }
        stage.send(POD.path(NAMESPACE_NAME), pod)
    stage.sessions_until(lambda: Gang.objects.count() == 3)
    assert stage.session().state != "failed"
    assert {len(gang.name) for gang in Gang.objects.all()} == {70, 253, 3}
    assert Gang.objects.filter(needs=True).count() == 3


def test_of_a_reason_that_quotes_a_long_text_the_beginning_is_kept() -> None:
    """An annotation may be a quarter of a mebibyte; its gang's timeline is read to be said in the reader's language."""
    message = f"Cannot be scheduled as written: annotation x: {'q' * 100_000!r} is not an RFC 3339 time."
    kept = reason_detail(Reason(podgroup="work/long", code=ReasonCode.MISCONFIGURED, message=message))["message"]
    assert kept.startswith("Cannot be scheduled as written: annotation x: 'qqq")
    assert len(kept) <= MOST_MESSAGE + 1


def test_a_gang_that_may_run_on_many_card_types_ends_no_session(stage: Stage) -> None:
    """What is promised to it is written at the first of its cards: all their names together fit no column."""
    cards = [CARD, *(f"NVIDIA-CARD-{number:02d}" for number in range(12))]
    for number, card in enumerate(cards[1:]):
        other = node(f"other-{number}")
        other["metadata"]["labels"]["nvidia.com/gpu.product"] = card
        stage.send(NODE.path(), other)
    wanted = objects.job("choice", pods=2, queue="train")
    wanted["spec"]["priorityClassName"] = "pc-low"
    of_pod = wanted["spec"]["tasks"][0]["template"]
    of_pod["metadata"]["annotations"]["volcano.sh/card.name"] = "|".join(cards)
    stage.send(JOB.path(NAMESPACE_NAME), wanted)
    states: list[str] = []
    stage.sessions_until(lambda: states.append(stage.session().state) or stage.running("choice") == 2)
    assert "failed" not in states
    points = UsageChange.objects.filter(queue__name="train", inqueue__gt=0)
    assert {point.card for point in points} == {CARD}


def test_a_gang_that_leaves_the_cluster_is_kept_as_history(stage: Stage) -> None:
    stage.train("job", pods=2)
    stage.sessions_until(lambda: stage.running("job") == 2 and Gang.objects.filter(ready=2).exists())
    assert stage.client.send("DELETE", JOB.path(NAMESPACE_NAME, "job")).done
    stage.sessions_until(lambda: Gang.objects.get().gone_at)
    gang = Gang.objects.get()
    assert (gang.state, gang.needs, gang.position) == (GangState.FINISHED, False, None)
    assert gang.ended_at is not None
    assert not GangPod.objects.exists()
    assert GangEvent.objects.filter(gang=gang, kind="gone").exists()
    assert QueueUsage.objects.get(queue__name="train", card=CARD).allocated == 0


def test_nodes_and_card_types_are_found_and_their_loss_is_said(stage: Stage) -> None:
    stage.session()
    card = CardType.objects.get(name=CARD)
    assert (card.hardware, card.kind, card.resource) == (16, "whole", "nvidia.com/gpu")
    assert Node.objects.get(name="n0").cards == {CARD: 8}
    assert stage.client.send("DELETE", NODE.path(name="n1")).done
    stage.sessions_until(lambda: Node.objects.filter(name="n1", gone_at__isnull=False).exists())
    card.refresh_from_db()
    assert card.hardware == 8
    lost = Alert.objects.get(code="node_lost", resolved_at=None)
    assert lost.numbers == {"node": "n1", "cards": {CARD: 8}}
    over = Alert.objects.filter(code="quota_over_hardware", resolved_at=None)
    assert {alert.numbers["service_type"] for alert in over} == {"inference", "training"}
    stage.send(NODE.path(), node("n1"))
    stage.sessions_until(lambda: not Alert.objects.filter(resolved_at=None).exists())


def test_a_reclaimed_gang_tells_its_story(stage: Stage) -> None:
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    stage.serve("web", replicas=2)
    stage.sessions_until(lambda: stage.running("web") == 2)

    def came_back() -> bool:
        states = [GangState.WAITING, GangState.ADMITTED]
        again = Gang.objects.filter(name="victim", gone_at=None, state__in=states).first()
        # The session that evicts is recorded before the next PodGroup comes.
        return again is not None and "Evicted by reclaim" in page_of(again)

    stage.sessions_until(came_back)
    kinds = list(GangEvent.objects.filter(gang__name="victim").order_by("id").values_list("kind", flat=True))
    assert kinds.index("running") < kinds.index("reclaimed")
    reclaimed = GangEvent.objects.filter(gang__name="victim", kind="reclaimed").earliest("id")
    assert reclaimed.reclaim_id is not None
    again = Gang.objects.filter(name="victim", gone_at=None).get()
    assert again.waiting_since is not None
    assert again.submitted_at < reclaimed.at <= again.waiting_since, "it had cards until it was evicted"
    page = " ".join(page_of(again).split())
    assert f"Evicted by reclaim {reclaimed.reclaim_id}." in page
    promised = GangEvent.objects.filter(gang__name="web", kind="promised")
    assert promised.exists()


@pytest.mark.parametrize("in_another_process", [False, True])
def test_a_new_job_of_the_name_of_one_that_was_evicted_has_a_wait_of_its_own(
    stage: Stage, in_another_process: bool
) -> None:
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: stage.running("victim") == 16)
    stage.serve("web", replicas=2)
    stage.sessions_until(lambda: Gang.objects.filter(name="victim", state=GangState.RECLAIMED).exists())
    assert stage.client.send("DELETE", JOB.path(NAMESPACE_NAME, "victim")).done
    stage.sessions_until(lambda: not Gang.objects.filter(name="victim", gone_at=None).exists())
    assert Gang.objects.get(name="victim").state == GangState.RECLAIMED
    stage.sessions_until(lambda: stage.running("web") == 2)
    if in_another_process:
        stage.leave()
        stage.open("other")
    stage.train("victim", pods=16)
    stage.sessions_until(lambda: Gang.objects.filter(name="victim", gone_at=None, needs=True).exists())
    new = Gang.objects.get(name="victim", gone_at=None)
    assert new.waiting_since == new.submitted_at
    kinds = set(GangEvent.objects.filter(gang=new).values_list("kind", flat=True))
    assert not kinds & {"running", "reclaimed", "restarted"}, "that is the story of another job"
    assert "Evicted by reclaim" not in page_of(new)


def test_a_service_that_grows_waits_since_it_wanted_more(stage: Stage) -> None:
    stage.serve("web", replicas=2)
    stage.sessions_until(lambda: stage.running("web") == 2 and not Gang.objects.get().needs)
    gang = Gang.objects.get()
    assert (gang.needs, gang.waiting_since) == (False, None)
    path, patch = DEPLOYMENT.path(NAMESPACE_NAME, "web"), {"spec": {"replicas": 20}}
    assert stage.client.send("PATCH", path, patch, content_type="application/merge-patch+json").done
    stage.sessions_until(lambda: Gang.objects.get().needs and stage.running("web") == 16)
    stage.session()
    gang = Gang.objects.get()
    assert gang.state == GangState.RUNNING
    assert gang.waiting_since is not None
    assert gang.waiting_since > gang.submitted_at
    assert stage.client.send(
        "PATCH", path, {"spec": {"replicas": 16}}, content_type="application/merge-patch+json"
    ).done
    stage.sessions_until(lambda: not Gang.objects.get().needs)
    assert "It has 16 pods and waits no more." in page_of(gang)


def test_a_node_that_kubernetes_marks_is_not_ready_with_an_alert_until_the_mark_goes(stage: Stage) -> None:
    def come(*keys: str) -> None:
        made = node("n9", 8)
        made["spec"] = {"taints": [{"key": key, "effect": "NoExecute"} for key in keys]}
        stage.send(NODE.path(), made)

    def open_alerts() -> list[str]:
        return list(Alert.objects.filter(code="node_not_ready", resolved_at=None).values_list("key", flat=True))

    come("node.kubernetes.io/unreachable")
    stage.sessions_until(lambda: open_alerts() == ["node_not_ready:n9"])
    assert [row.name for row in Node.objects.all() if row.not_ready] == ["n9"]
    stage.client.send("DELETE", NODE.path(name="n9"))
    come("example/of-our-own")
    stage.sessions_until(lambda: not open_alerts())
    assert not any(row.not_ready for row in Node.objects.all())
