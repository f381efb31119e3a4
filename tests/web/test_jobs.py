"""Jobs: claimed once, cancelled, resumed where the last attempt stopped, bounded in number."""

from __future__ import annotations

import datetime as dt
import threading
import time
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from tidesched_web.accounts.models import User
from tidesched_web.common.errors import DomainError
from tidesched_web.common.permissions import Access
from tidesched_web.jobs import running, services, waiting
from tidesched_web.jobs.models import Job, JobState
from tidesched_web.jobs.running import Running
from tidesched_web.jobs.selectors import asked_already, visible_job, visible_jobs

pytestmark = pytest.mark.django_db

seen: list[Any] = []


@pytest.fixture(autouse=True)
def handlers(settings):
    seen.clear()
    settings.JOB_HANDLERS = {
        "export": f"{__name__}.count",
        "adopt": f"{__name__}.fail",
        "impact": f"{__name__}.hand_over",
    }


def count(job: Running):
    """Counts to ten and notes each step; ends early where ``stop_at`` says."""
    start = (job.checkpoint or {}).get("next", 0)
    seen.append(("from", start))
    job.say("Counting from %(start)s.", start=start)
    for number in range(start, 10):
        if number == job.params.get("stop_at") and start == 0:
            raise SystemExit  # as a process that is killed: nothing is written
        if number == job.params.get("cancel_at"):
            services.cancel(job=Job.objects.get(pk=job.job.pk))
        job.report((number + 1) / 10, checkpoint={"next": number + 1}, now=True)
    return {"counted": 10}


def fail(job: Running):
    if job.params.get("refuse"):
        raise DomainError("conflict", "There is nothing to adopt.")
    raise ZeroDivisionError("a bug")


def hand_over(job: Running):
    seen.append((job.job.worker, job.checkpoint))
    if job.checkpoint is None:
        raise job.hand_over(worker="work", checkpoint={"half": 1}, result={"half": True})
    return {"half": False}


def made(kind: str = "export", owner=None, **params: Any) -> Job:
    return services.enqueue(kind=kind, owner=owner, actor="test", params=params)


def test_a_job_runs_to_its_result() -> None:
    job = made()
    assert running.run(job.pk) == JobState.DONE
    job.refresh_from_db()
    assert (job.state, job.progress, job.result, job.attempt) == (JobState.DONE, 1.0, {"counted": 10}, 1)
    assert [line["text"] % line["values"] for line in job.log] == ["Counting from 0."]
    assert running.run(job.pk) is None  # its message came twice


def test_what_a_killed_process_left_is_resumed_from_its_checkpoint() -> None:
    job = made(stop_at=6)
    with pytest.raises(SystemExit):
        running.run(job.pk)
    assert running.run(job.pk) is None  # it may still live
    Job.objects.filter(pk=job.pk).update(heard_at=timezone.now() - dt.timedelta(seconds=services.LOST_SECONDS + 1))
    assert services.sweep() == 1
    assert running.run(job.pk) == JobState.DONE
    assert seen == [("from", 0), ("from", 6)]
    job.refresh_from_db()
    assert (job.attempt, job.result, job.checkpoint) == (2, {"counted": 10}, None)


def test_an_attempt_that_lost_the_job_changes_nothing() -> None:
    first = services.claim(made().pk)
    assert first is not None
    Job.objects.filter(pk=first.pk).update(heard_at=timezone.now() - dt.timedelta(hours=1))
    second = services.claim(first.pk)
    assert second is not None
    assert not services.carry_on(first, progress=0.9)
    assert not services.finish(first, state=JobState.DONE, result={"wrong": True})
    assert services.finish(second, state=JobState.DONE, result={"right": True})
    assert Job.objects.get(pk=first.pk).result == {"right": True}


def test_a_job_that_kills_its_processes_is_given_up() -> None:
    job = made()
    for _ in range(services.MOST_ATTEMPTS):
        assert services.claim(job.pk) is not None
        Job.objects.filter(pk=job.pk).update(heard_at=timezone.now() - dt.timedelta(hours=1))
    assert services.claim(job.pk) is None
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "attempts" in job.error


def test_cancelling_before_and_during() -> None:
    waits = made()
    assert services.cancel(job=waits).state == JobState.CANCELLED
    assert running.run(waits.pk) is None
    with pytest.raises(DomainError, match="over already"):
        services.cancel(job=waits)
    runs = made(cancel_at=3)
    assert running.run(runs.pk) == JobState.CANCELLED
    runs.refresh_from_db()
    assert (runs.state, runs.progress, runs.result) == (JobState.CANCELLED, 0.3, None)


def test_a_refusal_and_a_bug_are_said() -> None:
    refused, broken = made("adopt", refuse=True), made("adopt")
    assert running.run(refused.pk) == running.run(broken.pk) == JobState.FAILED
    assert Job.objects.get(pk=refused.pk).error == "There is nothing to adopt."
    assert Job.objects.get(pk=broken.pk).error == "ZeroDivisionError: a bug"


def test_a_part_of_the_result_is_shown_before_others_go_on() -> None:
    job = made("impact")
    Job.objects.filter(pk=job.pk).update(worker="what-if")
    assert running.run(job.pk) == JobState.QUEUED
    shown = waiting.wait(job.pk, 5)
    assert shown is not None
    assert (shown.state, shown.result, shown.worker) == (JobState.QUEUED, {"half": True}, "work")
    assert running.run(job.pk) == JobState.DONE
    assert seen == [("what-if", None), ("work", {"half": 1})]
    assert Job.objects.get(pk=job.pk).result == {"half": False}


def test_a_new_question_makes_the_last_one_void() -> None:
    jobs = [
        services.enqueue(kind="impact", owner=None, actor="test", params={}, subject=subject)
        for subject in ("change:1", "change:2", "change:1")
    ]
    assert services.cancel_earlier(jobs[2]) == 1
    assert [Job.objects.get(pk=job.pk).state for job in jobs] == ["cancelled", "queued", "queued"]


def test_who_asks_the_same_again_waits_for_the_same_answer() -> None:
    owner = User.objects.create_user("owner")
    job = services.enqueue(kind="impact", owner=owner, actor="owner", params={"a": 1}, subject="change:1")
    assert asked_already("impact", "change:1", owner.pk, {"a": 1}) == job
    assert asked_already("impact", "change:1", owner.pk, {"a": 2}) is None
    assert asked_already("impact", "change:1", None, {"a": 1}) is None
    services.claim(job.pk)
    assert asked_already("impact", "change:1", owner.pk, {"a": 1}) == job
    Job.objects.filter(pk=job.pk).update(result={})
    assert asked_already("impact", "change:1", owner.pk, {"a": 1}) is None


def test_old_jobs_are_deleted_and_open_ones_stay(settings) -> None:
    settings.RETENTION_JOBS = 20
    owner = User.objects.create_user("owner")
    for _ in range(15):
        services.cancel(job=made(owner=owner))
    waits = made(owner=owner)
    assert services.delete_old() == 5  # ten of each person and kind
    assert Job.objects.filter(pk=waits.pk).exists()


def test_a_job_is_seen_by_its_owner_and_by_platform_admins() -> None:
    owner, other = User.objects.create_user("owner"), User.objects.create_user("other")
    job = made(owner=owner)
    mine, all_, auditor = (
        Access("owner"),
        Access("admin", everything=True, administers=True),
        Access("a", everything=True),
    )
    assert visible_job(mine, owner, job.pk) == job
    assert visible_job(mine, other, job.pk) is None
    assert visible_job(all_, other, job.pk) == job
    assert visible_job(auditor, other, job.pk) is None
    assert not visible_jobs(Access("token", limited_to=1), owner).exists()


@pytest.mark.django_db(transaction=True)
def test_many_workers_claim_a_job_once() -> None:
    job = made()
    claimed: list[Job | None] = []

    def claim() -> None:
        claimed.append(services.claim(job.pk))
        connection.close()

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(one is not None for one in claimed) == 1


@pytest.mark.django_db(transaction=True)
def test_an_attempt_that_computes_for_long_is_not_taken_for_lost(settings, monkeypatch) -> None:
    monkeypatch.setattr(services, "LOST_SECONDS", 0.4)
    settings.JOB_HANDLERS = {"export": f"{__name__}.think"}
    job = made()
    assert running.run(job.pk) == JobState.DONE
    assert seen == [None] * 4


def think(job: Running):
    """Reports nothing for several times as long as a job may be silent; others try to get hold of it meanwhile."""
    for _ in range(4):
        time.sleep(0.4)
        seen.append(services.claim(job.job.pk))
    return {}
