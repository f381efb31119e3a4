"""A job that dies ends what it was for: each kind, by an exception, by its limit of time, by the end of its process."""

from __future__ import annotations

import datetime as dt
import socket
from pathlib import Path
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings as configured
from django.utils import timezone

from tests.cluster.workers import Broker, Worker
from tests.waiting import until
from tests.web.changes import ground as ground_module
from tidesched_web.changes.impact import answer_of
from tidesched_web.clusters import connection_services
from tidesched_web.clusters.connection_input import by_token
from tidesched_web.clusters.finding_words import sentence
from tidesched_web.clusters.models import ConnectionTest
from tidesched_web.jobs import running, services
from tidesched_web.jobs.models import Job, JobState
from tidesched_web.scheduling.connection_test_jobs import start_test

WAYS = {"exception": TypeError("cadata"), "time limit": SoftTimeLimitExceeded(), "kill -9": SystemExit()}
_way: list[BaseException] = []


def dies(job: running.Running) -> None:
    raise _way[0]


def a_test(address: str = "https://10.0.0.9:6443") -> ConnectionTest:
    offered = by_token(api_url=address, token="a-token")
    test = connection_services.offer(offered=offered, mode="observe", actor="test", owner_id=None, cluster=None)
    start_test(test, owner=None, actor="test")
    return test


@pytest.mark.django_db
@pytest.mark.parametrize("kind", sorted(configured.JOB_HANDLERS))
@pytest.mark.parametrize("way", WAYS)
def test_what_a_job_was_for_ends_with_words(kind: str, way: str, settings: Any) -> None:
    settings.JOB_HANDLERS = {kind: f"{__name__}.dies"}
    _way[:] = [WAYS[way]]
    if kind == "connection_test":
        job = Job.objects.get(subject=f"connection:{a_test().pk}")
    else:
        cluster = ground_module.build().cluster
        job = services.enqueue(kind=kind, owner=None, actor="test", params={"objects": []}, cluster=cluster)
    for _attempt in range(services.MOST_ATTEMPTS + 1):
        Job.objects.filter(pk=job.pk).update(heard_at=timezone.now() - dt.timedelta(minutes=5))
        try:
            running.run(job.pk)
        except SystemExit:
            continue
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert job.error
    if kind == "connection_test":
        test = ConnectionTest.objects.get()
        assert test.verdict == "failed"
        assert "ended early" in sentence(test.findings[-1])
    else:
        assert answer_of(job)["unavailable"] == "failed"


@pytest.mark.django_db(transaction=True)
@pytest.mark.proof
def test_a_killed_worker_ends_its_test_within_the_attempts(tmp_path: Path) -> None:
    """A server that says nothing, so that each worker is killed in the middle of the test."""
    broker = Broker(tmp_path / "broker")
    workers: list[Worker] = []
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        test = a_test(f"https://127.0.0.1:{silent.getsockname()[1]}")
        try:
            for role in ("beat", "sessions", "work"):
                workers.append(Worker(f"{role}-{len(workers)}", tmp_path, broker, role=role))

            def killed() -> bool:
                job = Job.objects.get()
                if job.state == JobState.RUNNING and job.attempt > len([one for one in workers if one.ended]):
                    for worker in [one for one in workers[2:] if not one.ended]:
                        worker.kill()
                    workers.append(Worker(f"work-{len(workers)}", tmp_path, broker, role="work"))
                test.refresh_from_db()
                return test.verdict != "running"

            until(killed, 120, story=lambda: [worker.said() for worker in workers])
        finally:
            for worker in workers:
                worker.kill()
            broker.stop()
    assert sentence(test.findings[-1]).startswith("The test itself ended early: Given up after 2 attempts")
