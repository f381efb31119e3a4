"""Jobs: claimed once, cancelled, resumed where the last attempt stopped, bounded in number."""

from __future__ import annotations

import datetime as dt
import re
import threading
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection
from django.utils import timezone

from tests.waiting import until
from tidesched_web.accounts.models import User
from tidesched_web.common.errors import DomainError
from tidesched_web.common.failures import OUT_OF_TIME
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
        "impact_day": f"{__name__}.dawdle",
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


def dawdle(job: Running):
    """Is out of time in as many attempts as it is asked for; the compiler makes another error of it in between."""
    seen.append(job.job.attempt)
    if job.job.attempt <= job.params["attempts"]:
        try:
            raise SoftTimeLimitExceeded
        except SoftTimeLimitExceeded as error:
            raise RuntimeError("Failed in nopython mode pipeline") from error
    return {"done": True}


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
    assert re.fullmatch(r"An internal error \(reference [0-9a-f]{8}\)", Job.objects.get(pk=broken.pk).error)


def test_what_is_out_of_time_once_is_tried_once_more_and_says_so_the_second_time() -> None:
    """It was "an internal error", for a question that came while the first process compiled the engine."""
    once, twice = made("impact_day", attempts=1), made("impact_day", attempts=5)
    assert [running.run(job.pk) for job in (once, once, once)] == [JobState.QUEUED, JobState.DONE, None]
    assert [running.run(job.pk) for job in (twice, twice, twice)] == [JobState.QUEUED, JobState.FAILED, None]
    assert seen == [1, 2, 1, 2]
    twice.refresh_from_db()
    assert (twice.state, twice.error) == (JobState.FAILED, OUT_OF_TIME)
    given_up = made("impact_day", attempts=5)
    assert running.run(given_up.pk) == JobState.QUEUED
    assert services.cancel(job=given_up).state == JobState.CANCELLED


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
    """Reports nothing, long after it was heard of last as it seems; others try to get hold of it meanwhile."""
    row = Job.objects.filter(pk=job.job.pk)
    long_ago, often = timezone.now() - dt.timedelta(hours=1), services.LOST_SECONDS
    for _ in range(4):
        row.update(heard_at=long_ago)
        until(lambda: not row.filter(heard_at=long_ago).exists())
        services.LOST_SECONDS = 60.0
        seen.append(services.claim(job.job.pk))
        services.LOST_SECONDS = often
    return {}


# -- whose turn it is --------------------------------------------------------------------------------------------------


@pytest.fixture
def people() -> list[User]:
    return [User.objects.create(username=name) for name in ("ada", "bob", "cy")]


def turns(worker: str = "work") -> list[int]:
    """The jobs in the order in which one process after the other takes and finishes them."""
    taken = []
    while (job := services.claim_turn(worker)) is not None:
        taken.append(job.pk)
        services.finish(job, state=JobState.DONE)
    return taken


def test_everybodys_first_job_comes_before_anybodys_second(people) -> None:
    ada, bob, cy = people
    many = [made(owner=ada) for _ in range(4)]
    late, later = made(owner=bob), made(owner=cy)
    assert services.places_of([*many, late, later]) == {
        many[0].pk: 1, late.pk: 2, later.pk: 3, many[1].pk: 4, many[2].pk: 5, many[3].pk: 6,
    }  # fmt: skip
    assert turns() == [many[0].pk, late.pk, later.pk, many[1].pk, many[2].pk, many[3].pk]


def test_of_one_person_so_many_jobs_run_at_a_time(people, settings) -> None:
    ada, bob, _ = people
    first, second, third = (made(owner=ada) for _ in range(3))
    held = services.claim_turn("work")
    assert held is not None
    assert held.pk == first.pk
    assert services.claim_turn("work") is None, "a second job of the same person"
    own = made(owner=bob)
    assert services.places_of([second, third, own]) == {own.pk: 1, second.pk: 2, third.pk: 3}
    taken = services.claim_turn("work")
    assert taken is not None
    assert taken.pk == own.pk
    services.finish(held, state=JobState.DONE)
    assert turns() == [second.pk, third.pk]
    settings.JOBS_RUNNING_PER_PERSON = 2
    again = [made(owner=ada) for _ in range(3)]
    assert [job.pk for job in (services.claim_turn("work"), services.claim_turn("work")) if job] == [
        again[0].pk,
        again[1].pk,
    ]
    assert services.claim_turn("work") is None


def test_a_message_does_the_job_whose_turn_it_is_and_wakes_the_next(people, monkeypatch) -> None:
    ada, bob, _ = people
    woken: list[int] = []
    monkeypatch.setattr(services, "wake_job", lambda job_id, _worker, **_: woken.append(job_id) or True)
    first, second = made(owner=ada), made(owner=ada)
    other = made(owner=bob)
    assert running.take_turn(second.pk) == JobState.DONE
    assert [Job.objects.get(pk=job.pk).state for job in (first, second, other)] == ["done", "queued", "queued"]
    # It came later than Ada's second, but Ada had a turn just now.
    assert woken[-1] == other.pk
    assert running.take_turn(999_999) is None
    assert running.take_turn(first.pk) == JobState.DONE  # a message of a job that is over gives the turn to another
    assert running.take_turn(first.pk) == JobState.DONE
    assert running.take_turn(first.pk) is None


def test_what_a_process_left_comes_first_and_counts_for_nobody(people) -> None:
    ada, bob, _ = people
    left = made(owner=ada)
    assert services.claim_turn("work") is not None
    Job.objects.filter(pk=left.pk).update(heard_at=timezone.now() - dt.timedelta(seconds=services.LOST_SECONDS + 1))
    own = made(owner=bob)
    assert turns() == [left.pk, own.pk]


@pytest.mark.django_db(transaction=True)
def test_two_processes_that_look_at_once_do_not_give_one_person_two_places(people) -> None:
    for _ in range(4):
        made(owner=people[0])
    taken: list[int] = []
    start = threading.Barrier(4)

    def take() -> None:
        start.wait(60)
        if (job := services.claim_turn("work")) is not None:
            taken.append(job.pk)
        connection.close()

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(taken) == 1


def test_pushes_and_jobs_wait_in_queues_of_their_own() -> None:
    from tidesched_web.changes import tasks as change_tasks
    from tidesched_web.embedded.processes import workers
    from tidesched_web.quota import tasks as quota_tasks
    from tidesched_web.waking import PUSH_QUEUE

    assert {quota_tasks.push_pending.queue, change_tasks.sweep.queue} == {PUSH_QUEUE}
    taking = {one.name: one.argv[one.argv.index("--queues") + 1] for one in workers({}) if "--queues" in one.argv}
    assert [name for name, queues in taking.items() if PUSH_QUEUE in queues.split(",")] == ["push"]
    assert taking["push"] == PUSH_QUEUE


def test_a_tick_outlives_its_period_by_far() -> None:
    from tidesched_web import celery

    tick = celery.app.conf.beat_schedule["tick"]
    assert tick["options"]["expires"] >= 5 * tick["schedule"], "a busy machine must not drop all of them"
