"""`jobs` over REST: what their owner reads, and that others are not there for them."""

import pytest

from tests.api.cast import H200
from tidesched_web.jobs import services
from tidesched_web.jobs.models import Job, JobState

START = {"service_type": "inference", "priority": 1, "cards": {H200: 1}, "becomes": "running", "reason_before": None}
IMPACT = {
    "counts": {"gangs_run": 2},
    "gangs_run": [
        {"gang": "acme/mine", "queue": "acme-online", **START},
        {"gang": "rival/theirs", "queue": "rival-batch", **START},
    ],
    "flood": None,
    "card_hours": {H200: {"rival-batch": {"gained": 1.0, "lost": 0.0, "over": 0.0}}},
}


@pytest.fixture
def job(world):
    owner, east = world.users["owner"], world.clusters["east"]
    made = services.enqueue(kind="impact", owner=owner, actor="owner", params={}, cluster=east, subject="change:7")
    Job.objects.filter(pk=made.pk).update(
        result=IMPACT, progress=0.5, log=[{"at": "2026-03-01T12:00:00Z", "text": "%(n)s of 9", "values": {"n": 3}}]
    )
    return made


def test_the_owner_reads_progress_log_and_their_part_of_the_result(world, job):
    listed = world.client("owner").read("jobs/", subject="change:7")["results"]
    assert [(row["id"], row["state"], row["progress"]) for row in listed] == [(job.pk, "queued", 0.5)]
    assert "result" not in listed[0]
    read = world.client("owner").read(f"jobs/{job.pk}/")
    assert [line["message"] for line in read["log"]] == ["3 of 9"]
    assert [row["gang"] for row in read["result"]["gangs_run"]] == ["acme/mine"]
    assert read["result"]["hidden"] == {"gangs_run": 1}
    assert "rival" not in str(read["result"])
    assert len(world.client("admin").read(f"jobs/{job.pk}/")["result"]["gangs_run"]) == 2


def test_a_job_is_cancelled_once(world, job):
    client = world.client("owner")
    assert client.send(f"jobs/{job.pk}/cancel/").json()["state"] == JobState.CANCELLED
    assert client.send(f"jobs/{job.pk}/cancel/").status_code == 409
    assert world.client("stranger").send(f"jobs/{job.pk}/cancel/").status_code == 404


def test_filters_are_strict(world, job):
    client = world.client("owner")
    assert client.read("jobs/", state="done", kind="impact", cluster="east")["results"] == []
    assert client.get("/api/v1/jobs/?owner=owner").status_code == 400
    assert client.get("/api/v1/jobs/?kind=holiday").status_code == 400
