"""A session from snapshot to cluster, on real servers: what it binds, evicts, records, and that it can be replayed."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from tests.web.pipeline.receipt_check import check_receipt
from tests.web.pipeline.stage import Stage
from tidesched_web.audit.models import AuditEntry
from tidesched_web.common.errors import DomainError
from tidesched_web.scheduling.models import (
    Decision,
    QueueUsage,
    Reclaim,
    ReclaimState,
    Session,
    SessionState,
    TidePoint,
    UsageChange,
)
from tidesched_web.scheduling.pipeline import inputs
from tidesched_web.scheduling.services import withdraw_promise
from tidesched_web.workloads.models import Gang, GangEvent, GangPod, GangState


def test_a_gang_is_admitted_bound_and_recorded(stage: Stage) -> None:
    stage.train("job", pods=4)
    stage.sessions_until(lambda: stage.running("job") == 4)
    done = stage.session()
    assert done.state == SessionState.DONE
    assert not Decision.objects.filter(state__in=["decided", "sending"]).exists()
    assert Decision.objects.filter(kind="bind", state="done").count() == 4
    gang = Gang.objects.get(name="job")
    assert (gang.state, gang.ready, gang.queue.name, gang.cards) == (GangState.RUNNING, 4, "train", {"NVIDIA-H200": 4})
    assert GangPod.objects.filter(gang=gang, phase="Running").count() == 4
    kinds = list(GangEvent.objects.filter(gang=gang).values_list("kind", flat=True))
    assert {"submitted", "admitted", "bound", "running"} <= set(kinds)
    usage = QueueUsage.objects.get(queue__name="train")
    assert (usage.quota, usage.allocated) == (16000, 4000)
    assert UsageChange.objects.filter(queue__name="train", allocated=4000).exists()
    tide = TidePoint.objects.latest("id")
    assert (tide.total, tide.training, tide.inference, tide.idle) == (16000, 4000, 0, 12000)
    assert tide.borrowed == 4000  # all cards are promised to inference


def test_inference_takes_back_a_whole_gang_and_the_reclaim_is_followed(stage: Stage, tmp_path: Path) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(pg_get_serial_sequence('scheduling_session', 'id'), 1000000)")
    stage.train("one", pods=8)
    stage.train("two", pods=8)
    stage.sessions_until(lambda: stage.running("one") + stage.running("two") == 16)
    stage.serve("web", replicas=3)
    stage.sessions_until(lambda: stage.running("web") == 3)
    stage.session()
    reclaim = Reclaim.objects.get()
    # After a crash of PostgreSQL the ids of sessions leave some out, their numbers do not.
    assert reclaim.session.number != reclaim.session_id
    assert reclaim.state == ReclaimState.DONE
    assert reclaim.promised_at <= reclaim.running_at
    (victim,) = reclaim.victims.all()
    assert len(victim.pods) == 8
    assert victim.cards == {"NVIDIA-H200": 8}
    entry = AuditEntry.objects.get(pk=reclaim.audit_entry_id)
    assert entry.object_id == str(reclaim.pk)
    assert entry.after["reclaimer"] == reclaim.reclaimer
    said = check_receipt(reclaim, folder=tmp_path)
    (spared,) = said["candidates"]
    assert {victim.gang, spared["gang"]} == {"work/one", "work/two"}
    cost, paid = (
        (one["queue_priority"], one["priority"], one["work_lost_card_seconds"]) for one in (spared, said["victims"][0])
    )
    assert cost >= paid, "the cheaper one fell"
    assert (spared["frees"], said["more_candidates"]) == (8, 0)
    evictions = Decision.objects.filter(kind="evict")
    assert evictions.count() == 8
    assert set(evictions.values_list("state", "reclaim_id")) == {("done", reclaim.pk)}
    fallen = Gang.objects.filter(name=victim.gang.partition("/")[2], events__kind="reclaimed")
    assert fallen.exists()
    # the cluster's own log agrees: each pod was evicted once
    evicted = [row for row in stage.server.writes() if "eviction" in row["resource"] and not row["dry_run"]]
    assert sorted(row["key"] for row in evicted) == sorted(victim.pods)
    assert {row["session"] for row in evicted} == {str(reclaim.session.number)}


def test_every_session_can_be_run_again(stage: Stage) -> None:
    stage.train("job", pods=4)
    stage.sessions_until(lambda: stage.running("job") == 4)
    stage.serve("web", replicas=14)
    stage.sessions_until(lambda: stage.running("web") == 14)
    # Where nothing happens any more the difference is small.
    stage.sessions_until(lambda: Session.objects.filter(input__format="difference-1").exists())
    sessions = list(Session.objects.all())
    assert len(sessions) > 3
    assert {row.input.format for row in sessions} == {"full-1", "difference-1"}
    for row in sessions:
        call_command("session", "replay", str(row.pk))


def test_what_was_just_bound_is_not_decided_again(stage: Stage) -> None:
    stage.train("job", pods=4)
    stage.sessions_until(lambda: stage.bound("job") == 4)
    for _ in range(5):
        stage.session()
    assert Decision.objects.filter(kind="bind").count() == 4
    binds = [row for row in stage.server.writes() if row["resource"].endswith("pods/binding")]
    assert len(binds) == 4


def test_a_withdrawn_promise_frees_its_quota_until_its_time_is_over(stage: Stage) -> None:
    """Five of eight cards of each node are in use: a pod of six cards is admitted by its quota, and fits nowhere."""
    for name in ("left", "right"):
        stage.train(name, pods=1, cards=5)
        stage.sessions_until(lambda name=name: stage.bound(name) == 1)
    stage.train("wide", pods=1, cards=6)
    wide = Gang.objects.filter(name="wide")
    stage.sessions_until(lambda: wide.filter(state="admitted").exists() and stage.known("wide"))

    def phase() -> str:
        return str(stage.group("wide")["status"]["phase"])

    assert phase() == "Inqueue"
    withdraw_promise(gang=wide.get(), actor="admin", reason="Others wait for it.")
    stage.sessions_until(lambda: phase() == "Pending" and wide.filter(state="waiting").exists())
    assert wide.get().reason_code == "Fragmented"
    assert wide.get().admitted_at is None
    assert QueueUsage.objects.get(queue__name="train").inqueue == 0
    again = stage.session()
    assert inputs.replay(again).same
    assert phase() == "Pending"
    with pytest.raises(DomainError, match="holds no promise"):
        withdraw_promise(gang=wide.get(), actor="admin", reason="Twice.")
    assert AuditEntry.objects.filter(action="promise.withdraw", object_label="work/wide").count() == 1
    wide.update(withdrawn_until=stage.cluster.clock() - dt.timedelta(hours=1))
    stage.sessions_until(lambda: phase() == "Inqueue")
