"""The first steps with a newly connected cluster: each with its state and its reason, until it is set up."""

from __future__ import annotations

from html import unescape

import pytest
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import Cluster
from tidesched_web.console.alert_words import place_of
from tidesched_web.engine.demo import FOUNDING_POLICY
from tidesched_web.quota import services as quota
from tidesched_web.quota.models import DriftLook, PushedObject, Queue
from tidesched_web.scheduling.models import Alert, Session, SessionRequest

pytestmark = pytest.mark.django_db

HEADING = "First steps with this cluster"


@pytest.fixture
def world():
    return story.full()


@pytest.fixture
def cluster(world) -> Cluster:
    return clusters.create(name="Hall 3", api_url="https://10.0.0.1:6443", actor="test", mode="quota", token="x")


def overview(world, who: str = "admin") -> str:
    answer = client_of(getattr(world, who)).get("/clusters/hall-3/")
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def states(text: str) -> list[str]:
    part = text.partition(HEADING)[2].partition("</section>")[0]
    words = ("Done", "To do", "Waits", "Needs help")
    return [next(word for word in words if f"{word}</span>" in item) for item in part.split("<li>")[1:]]


def test_a_new_cluster_says_what_it_needs_until_it_is_set_up(world, cluster) -> None:
    text = overview(world)
    assert states(text) == ["To do", "Waits", "To do", "Waits", "Waits"]
    assert "Every gang has what it needs" not in text
    assert "No session has run yet: what waits is not known." in text
    assert "The cluster has no policy yet: no session runs." in text

    now = timezone.now()
    DriftLook.objects.create(cluster=cluster, looked_at=now, unmanaged=["team-a", "team-b"])
    SessionRequest.objects.create(cluster=cluster, due_at=now, failures=3, last_error="Unreachable: no route")
    text = overview(world)
    assert states(text) == ["To do", "To do", "To do", "Needs help", "Waits"]
    assert "2 queues of the cluster are not decided on here." in text
    assert "Unreachable: no route" in text

    clusters.set_policy(cluster=cluster, text=FOUNDING_POLICY, actor="test")
    tenant = quota.ensure_tenant(slug="acme", actor="test")
    line = quota.ensure_business_line(tenant=tenant, slug="research", actor="test")
    quota.create_queue(
        cluster=cluster, name="team-a", service_type="training", card_quota={}, actor="test", business_line=line
    )
    DriftLook.objects.update(unmanaged=[])
    Session.objects.create(cluster=cluster, number=1, epoch=1, mode="quota", state="dry_run", now=now, started_at=now)
    Queue.objects.filter(name="team-a").update(refusals=1, sync_state="failed", sync_error="admission webhook denied")
    text = overview(world)
    assert states(text) == ["Done", "Done", "Done", "Done", "Needs help"]
    assert "Queue team-a: admission webhook denied" in text

    Queue.objects.filter(name="team-a").update(refusals=0, sync_state="in_step", sync_error="")
    PushedObject.objects.create(cluster=cluster, kind="Queue", name="team-a", pushed_at=now)
    assert HEADING not in overview(world)


def test_in_mode_schedule_an_unreleased_policy_is_a_step(world, cluster) -> None:
    clusters.set_mode(cluster=cluster, mode="schedule", actor="test", reason="Go.")
    clusters.set_policy(cluster=cluster, text=FOUNDING_POLICY, actor="test")
    text = overview(world)
    assert states(text)[2] == "To do"
    assert "Revision 1 is not released: sessions decide and send nothing." in text


def test_steps_are_for_those_who_may_take_them(world, cluster) -> None:
    assert HEADING in overview(world)
    assert HEADING not in overview(world, "auditor")


def test_the_alert_that_there_is_no_policy_leads_to_the_policy(world, cluster) -> None:
    alert = Alert.objects.create(
        cluster=cluster, key="session_failed", code="no_policy", severity="critical", message="No session.",
        raised_at=timezone.now(),
    )  # fmt: skip
    found = place_of(alert)
    assert found is not None
    assert found[0] == "/clusters/hall-3/policy/"
