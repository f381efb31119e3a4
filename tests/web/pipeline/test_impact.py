"""The impact of an edit on real servers: what it names is what the next session does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction

from tests.cluster.objects import CARD, QUEUES, job
from tests.cluster.servers import ROOT
from tests.cluster.workers import database_address as database_url
from tests.waiting import until
from tests.web.pipeline.stage import NAMESPACE_NAME, Stage
from tidesched_web.accounts.models import User
from tidesched_web.changes import impact, impact_day
from tidesched_web.changes import services as changes
from tidesched_web.changes.impact_sight import within_sight
from tidesched_web.changes.tide_steps import job_of, steps_ahead
from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.clusters.kubernetes.paths import JOB
from tidesched_web.common import alive
from tidesched_web.common.permissions import Access
from tidesched_web.jobs import running, services
from tidesched_web.jobs.models import Job, JobKind, JobState
from tidesched_web.quota import tide
from tidesched_web.quota.models import CardQuota
from tidesched_web.scheduling import pictures
from tidesched_web.scheduling.input_selectors import StoredInput
from tidesched_web.workloads.models import Gang

EVERYTHING = Access("admin", everything=True, administers=True)


@pytest.fixture(autouse=True)
def _nothing_loaded() -> Iterator[None]:
    cache.clear()
    yield
    pictures.forget()


def quota(stage: Stage, **cards: int) -> None:
    """Other card quotas in the cluster itself, as a push would write them."""
    for name, count in cards.items():
        annotations = {"volcano.sh/card.quota": json.dumps({CARD: count})}
        outcome = stage.client.send(
            "PATCH",
            f"{QUEUES}/{name}",
            {"metadata": {"annotations": annotations}},
            content_type="application/merge-patch+json",
        )
        assert outcome.done, outcome


def objects(**cards: tuple[int, int]) -> list[dict[str, Any]]:
    """Objects of a plan: card quotas of queues before and after."""
    found = []
    for name, (before, after) in cards.items():
        kind = "inference" if name == "serve" else "training"
        common: dict[str, Any] = {"service_type": kind, "weight": 1, "priority": 1, "reclaimable": kind == "training"}
        found.append(
            {
                "kind": "Queue",
                "name": name,
                "before": manifests.queue(name, card_quota={CARD: before}, **common),
                "after": manifests.queue(name, card_quota={CARD: after}, **common),
            }
        )
    return found


def train(stage: Stage, name: str, least: int = 8) -> None:
    """A gang of eight cards that outlives the test, however slow the machine is."""
    manifest = job(name, pods=8, queue="train", run_seconds=100_000_000)
    manifest["spec"]["minAvailable"] = least
    manifest["spec"]["priorityClassName"] = "pc-low"
    stage.send(JOB.path(NAMESPACE_NAME), manifest)


def one_waits_for_quota(stage: Stage) -> None:
    quota(stage, train=8)
    stage.sessions_until(lambda: stage.session() and pictures.renew(stage.cluster.pk))
    train(stage, "one")
    stage.sessions_until(lambda: stage.running("one") == 8)
    train(stage, "two")
    stage.sessions_until(lambda: Gang.objects.filter(name="two").exists())
    stage.session()


def asked(stage: Stage, edits: list[dict[str, Any]], kind: str = JobKind.IMPACT) -> dict[str, Any]:
    """The impact, found in this process."""
    job = services.enqueue(
        kind=kind, owner=None, actor="test", params={"objects": edits, "policy": ""}, cluster=stage.cluster
    )
    assert running.run(job.pk) == JobState.DONE
    found = Job.objects.get(pk=job.pk).result
    assert isinstance(found, dict)
    return found


def test_it_names_the_gang_that_the_next_session_starts(stage: Stage) -> None:
    one_waits_for_quota(stage)
    told = asked(stage, objects(train=(8, 16)))
    assert [(row["gang"], row["becomes"]) for row in told["gangs_run"]] == [("work/two", "running")]
    assert told["counts"]["gangs_lose"] == told["counts"]["reclaimed_next"] == 0
    assert told["session"] == Gang.objects.get(name="two").cluster.sessions.latest("id").number
    assert not told["stale"]
    quota(stage, train=16)
    stage.sessions_until(lambda: stage.running("two") == 8)
    assert stage.running("one") == 8


def test_each_step_of_a_tide_plan_is_tried_with_the_quotas_of_the_step(stage: Stage) -> None:
    one_waits_for_quota(stage)
    CardQuota.objects.filter(queue__name="train").update(cards=8)
    opens = stage.cluster.clock().astimezone(UTC) + timedelta(hours=2)
    layer = {
        "days": list(tide.WEEKDAYS), "start": f"{opens:%H:%M}", "end": f"{opens + timedelta(hours=3):%H:%M}",
        "quota": {"train": {CARD: {"add": 8}}},
    }  # fmt: skip
    plan = {"enabled": True, "time_zone": "UTC", "layers": [layer]}
    edits = {"tide-plan/nights": plan}
    change = changes.draft(cluster=stage.cluster, edits=edits, access=EVERYTHING, sound=True)
    (step,) = steps_ahead(change, EVERYTHING)
    job = job_of(change, step, EVERYTHING, since=datetime.now(UTC) - timedelta(hours=1), asks=True)
    assert job is not None
    assert running.run(job.pk) == JobState.DONE
    told = Job.objects.get(pk=job.pk).result
    assert [(row["gang"], row["becomes"]) for row in told["gangs_run"]] == [("work/two", "running")]


def test_the_quota_in_use_is_exceeded_and_the_flood_takes_more(stage: Stage) -> None:
    one_waits_for_quota(stage)
    told = asked(stage, objects(train=(8, 4), serve=(16, 2)))
    assert told["queues_over"] == [
        {
            "queue": "train", "service_type": "training", "resource": CARD,
            "quota_before": 8, "quota": 4, "in_use": 8, "over": 4,
        }
    ]  # fmt: skip
    assert told["flood"]["before"]["claims"] == {"serve": {CARD: 16}}
    assert told["flood"]["after"]["claims"] == {"serve": {CARD: 2}}
    assert told["flood"]["before"]["gangs"] == 1
    assert [row["gang"] for row in told["spared_at_flood"]] == ["work/one"]


def test_an_empty_edit_has_an_empty_impact(stage: Stage) -> None:
    one_waits_for_quota(stage)
    for edits in ([], objects(train=(8, 8))):
        told = asked(stage, edits)
        assert not any(told["counts"].values())
        day = asked(stage, edits, JobKind.IMPACT_DAY)
        assert not any(day["counts"].values())
        assert day["card_hours"] == {}
        assert day["sessions"]["tried"] > 2


def test_no_session_yet(stage: Stage) -> None:
    assert asked(stage, objects(train=(8, 16)))["unavailable"] == "no_snapshot"
    assert asked(stage, [], JobKind.IMPACT_DAY)["unavailable"] == "no_sessions"


def test_the_day_is_resumed_and_says_the_same(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    one_waits_for_quota(stage)
    for _ in range(4):
        stage.session()
    edits = objects(train=(8, 16))
    whole = asked(stage, edits, JobKind.IMPACT_DAY)
    assert [row["gang"] for row in whole["gangs_run"]] == ["work/two"]
    assert whole["gangs_run"][0]["sessions"] >= 4
    assert whole["sessions"]["recorded"] == whole["sessions"]["tried"] > 6
    job = services.enqueue(
        kind=JobKind.IMPACT_DAY,
        owner=None,
        actor="test",
        params={"objects": edits, "policy": ""},
        cluster=stage.cluster,
    )
    real, times = impact_day.Day._try, iter(range(100))

    def dies(self: impact_day.Day, *arguments: Any) -> bool:
        if next(times) == 4:
            raise SystemExit
        return real(self, *arguments)

    monkeypatch.setattr(impact_day.Day, "_try", dies)
    monkeypatch.setattr(running, "REPORT_SECONDS", 0)
    with pytest.raises(SystemExit):
        running.run(job.pk)
    Job.objects.filter(pk=job.pk).update(heard_at="2020-01-01T00:00:00Z")
    assert running.run(job.pk) == JobState.DONE
    job.refresh_from_db()
    assert (job.attempt, job.result) == (2, whole)


def test_many_sessions_are_sampled_evenly() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    stored = [StoredInput(n, None, n, n, start + timedelta(seconds=10 * n), start, 1) for n in range(8640)]
    taken = impact_day.chosen(stored)
    assert 200 <= len(taken) <= impact_day.MOST_SESSIONS
    steps = {(b.now - a.now).total_seconds() for a, b in pairwise(taken)}
    assert max(steps) - min(steps) <= 10


def test_a_stranger_gets_counts(stage: Stage) -> None:
    one_waits_for_quota(stage)
    told = asked(stage, objects(train=(8, 16), serve=(16, 0)))
    tenant = stage.cluster.queues.get(name="train").tenant_id
    owner = within_sight(told, Access("owner", tenant_ids=frozenset([tenant])), stage.cluster.pk)
    assert [row["gang"] for row in owner["gangs_run"]] == ["work/two"]
    assert owner["hidden"] == {}
    stranger = within_sight(told, Access("stranger"), stage.cluster.pk)
    assert stranger["gangs_run"] == []
    assert stranger["hidden"]["gangs_run"] == 1
    assert stranger["flood"]["after"]["claims"] == {}
    assert "two" not in json.dumps(stranger)
    assert "train" not in json.dumps(stranger)


def test_nobody_waits_inside_a_transaction_or_without_a_worker(stage: Stage) -> None:
    with transaction.atomic():
        found = impact.impact_now(stage.cluster, [], access=EVERYTHING, timeout=5)
    assert found["unavailable"] == "timeout"
    assert impact.impact_now(stage.cluster, [], access=EVERYTHING, timeout=5)["unavailable"] == "no_worker"


def test_a_worker_of_its_own_answers_while_the_caller_waits(stage: Stage, tmp_path: Path) -> None:
    """The real thing: a Celery process of the queue what-if, woken by a message."""
    one_waits_for_quota(stage)
    owner = User.objects.create_user("asks")
    command = [
        sys.executable,
        "-m",
        "celery",
        "--quiet",
        "--app",
        "tidesched_web.celery",
        "worker",
        "--pool",
        "prefork",
    ]
    command += ["--concurrency", "1", "--queues", "what-if", "--hostname", "what-if@%h", "--without-gossip"]
    log = tmp_path / "what-if.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [*command, "--without-mingle", "--loglevel", "INFO"],
            cwd=ROOT,
            env=os.environ | {"DATABASE_URL": database_url()},
            stdout=output,
            stderr=output,
        )
    try:
        until(lambda: "what-if" not in alive.silent_roles())
        impact.warm(stage.cluster.pk)
        access = Access("asks", everything=True, user_id=owner.pk)
        told = impact.impact_now(stage.cluster, objects(train=(8, 16)), access=access, timeout=60, subject="change:1")
        assert "unavailable" not in told, log.read_text()
        assert [row["gang"] for row in told["gangs_run"]] == ["work/two"]
        job = Job.objects.get(pk=told["job"])
        assert (job.owner, job.state) == (owner, JobState.DONE)
        policy = impact.impact_now(stage.cluster, [], access=access, policy_text="actions: nonsense", timeout=60)
        assert policy["unavailable"] == "bad_policy"
    finally:
        worker.terminate()
        worker.wait(60)
