"""The pages of jobs: whose they are, what they show, how one is stopped."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.web.console.test_pages import client_of
from tidesched_web.accounts.models import Tenant
from tidesched_web.changes.policy_trial import FATES
from tidesched_web.clusters.models import Cluster
from tidesched_web.jobs import services
from tidesched_web.jobs.models import Job, JobKind, JobState

pytestmark = pytest.mark.django_db

GANG = {"service_type": "training", "priority": 1, "cards": {"NVIDIA-H200": 8}, "becomes": "running"}
IMPACT = {
    "session": 7,
    "pods": 100,
    "counts": {"gangs_run": 2},
    "gangs_run": [
        {"gang": "search/rank-v7", "queue": "search-training", "reason_before": None, "pods_more": 8, **GANG},
        {"gang": "research/llm-pretrain", "queue": "research-training", "reason_before": None, "pods_more": 8, **GANG},
    ],
    "flood": None,
    "card_hours": None,
    "pending": [],
    "stale": False,
}


@pytest.fixture
def job(world) -> Job:
    cluster = Cluster.objects.get(slug="demo")
    made = services.enqueue(
        kind=JobKind.IMPACT, owner=world.member, actor="member", params={}, cluster=cluster, subject="change:3"
    )
    line = {"at": "2026-03-01T12:00:00Z", "text": "%(tried)s of %(recorded)s recorded sessions are tried."}
    Job.objects.filter(pk=made.pk).update(
        progress=0.4, result=IMPACT, log=[line | {"values": {"tried": 240, "recorded": 600}}]
    )
    return made


def test_the_owner_sees_how_far_it_is_and_what_is_theirs(world, job) -> None:
    client = client_of(world.member)
    listed = client.get("/jobs/").content.decode()
    assert f"/jobs/{job.pk}/" in listed
    assert "40 %" in listed
    assert "/clusters/demo/changes/3/" in listed
    shown = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "240 of 600 recorded sessions are tried." in shown
    assert "search/rank-v7" in shown
    assert "research/llm-pretrain" not in shown
    assert "research/llm-pretrain" in client_of(world.admin).get(f"/jobs/{job.pk}/").content.decode()


def test_the_trial_of_a_policy_is_cut_to_the_sight_of_its_owner(world, job) -> None:
    """Of one who was a platform admin when they asked."""
    names = {tenant.slug: tenant.pk for tenant in Tenant.objects.all()}
    figures = {fate: [1, 0] for fate in FATES}
    gangs = {"search": "search/rank-v7", "research": "research/llm-pretrain"}
    result = {
        "tenants": [{"tenant": names[slug], "name": f"Tenant {slug}", **figures} for slug in gangs],
        "differ": [
            {"gang": gang, "queue": f"{slug}-training", "was": "reclaimed", "becomes": "", "sessions": 1}
            for slug, gang in gangs.items()
        ],
        "counts": {"differ": 2},
        "sessions": dict.fromkeys(("recorded", "missing", "changed", "chosen", "tried"), 1),
    }  # fmt: skip
    Job.objects.filter(pk=job.pk).update(kind=JobKind.IMPACT_DAY, result=result)
    shown = client_of(world.member).get(f"/jobs/{job.pk}/").content.decode()
    assert ("Tenant search" in shown, gangs["search"] in shown) == (True, True)
    assert ("Tenant research" in shown, gangs["research"] in shown) == (False, False)
    assert "Tenant research" in client_of(world.admin).get(f"/jobs/{job.pk}/").content.decode()


def test_it_is_stopped_from_its_page(world, job) -> None:
    client = client_of(world.member)
    assert client.post(f"/jobs/{job.pk}/cancel/").status_code == 302
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    again = client.post(f"/jobs/{job.pk}/cancel/", follow=True).content.decode()
    assert "over already" in again


def test_others_do_not_find_it(world, job) -> None:
    for caller in (world.auditor, world.stranger, world.newcomer):
        client = client_of(caller)
        assert client.get("/jobs/").status_code == 200
        assert f"/jobs/{job.pk}/" not in client.get("/jobs/").content.decode()
        assert client.get(f"/jobs/{job.pk}/").status_code == 404
        assert client.post(f"/jobs/{job.pk}/cancel/").status_code == 404
    assert Client().get("/jobs/").status_code == 302
    assert Client().post(f"/jobs/{job.pk}/cancel/").status_code == 302
    job.refresh_from_db()
    assert job.state == JobState.QUEUED


def test_nothing_yet(world) -> None:
    assert "Nothing has taken long yet" in client_of(world.newcomer).get("/jobs/").content.decode()


def test_a_job_that_waits_shows_its_place(world):
    cluster = Cluster.objects.get(slug="demo")
    Job.objects.all().delete()
    for owner in (world.member, world.member, world.admin):
        made = services.enqueue(
            kind=JobKind.IMPACT_DAY, owner=owner, actor=owner.username, params={}, cluster=cluster, subject="change:1"
        )
    second = Job.objects.filter(owner=world.member).latest("pk")
    client = client_of(world.member)
    page = client.get("/jobs/").content.decode()
    assert "Place 1 in the queue" in page
    assert "Place 3 in the queue" in page, "after the first of another person"
    assert "Place 3 in the queue" in client.get(f"/jobs/{second.pk}/").content.decode()
    told = client.get("/api/v1/jobs/").json()["results"]
    assert [row["position"] for row in told] == [3, 1]
    services.finish(made, state=JobState.DONE)
    assert client.get(f"/api/v1/jobs/{second.pk}/").json()["position"] == 2
