"""The first steps with a newly connected cluster: each with its state and its reason, until it is set up."""

from __future__ import annotations

import datetime as dt
import re
from html import unescape

import pytest
from django.utils import timezone

from tests import quota_writes
from tests.web.console.test_pages import client_of
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import Cluster, ConnectionTest
from tidesched_web.console.alert_words import place_of
from tidesched_web.engine.demo import FOUNDING_POLICY
from tidesched_web.quota.models import DriftLook, PriorityClass, PushedObject, Queue
from tidesched_web.quota.services import drift
from tidesched_web.scheduling.models import Alert, Session, SessionRequest

pytestmark = pytest.mark.django_db

HEADING = "First steps with this cluster"


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


def steps(text: str) -> list[tuple[str, str, str, str, str, bool]]:
    """Each step as it is shown: its name, state, reason, the address and word of its button, and whether it is due."""
    part = text.partition(HEADING)[2].partition("</section>")[0]
    found = []
    for number, item in enumerate(part.split("<li>")[1:], 1):
        shown = re.search(
            rf"<strong>{number}\. (?P<name>[^<]+)</strong>.*?</svg>(?P<state>[^<]+)</span>.*?"
            r'<a class="(?P<dress>[^"]+)"\s+href="(?P<url>[^"]+)"\s*>(?P<button>[^<]+)</a>.*?'
            r'<p class="text-secondary m-0">(?P<why>[^<]+)</p>',
            item,
            re.DOTALL,
        )
        assert shown is not None, item
        name, state, why, url, button = (shown[part].strip() for part in ("name", "state", "why", "url", "button"))
        found.append((name, state, why, url.removeprefix("/clusters/hall-3"), button, "btn-primary" in shown["dress"]))
    return found


REACHED, ADOPTED, POLICY, SESSION, PUSH = (
    "The cluster is reached",
    "Queues, priority classes and tenants are adopted",
    "A policy is chosen",
    "The first session has run",
    "The cluster has taken the first push",
)


def test_each_step_says_why_and_leads_to_where_it_is_taken(world, cluster) -> None:
    connect, unread = ("/connection/", "Open the connection"), "The queues of the cluster have not been read yet."
    drift = ("/drift/", "Open the drift")
    assert steps(overview(world)) == [
        (REACHED, "To do", "No connection test has been made yet.", *connect, True),
        (ADOPTED, "Waits", unread, "/adoption/", "Adopt queues", False),
        (POLICY, "To do", "The cluster has no policy yet: no session runs.", "/policy/", "Open the policy", True),
        (SESSION, "Waits", "A worker runs it within a minute.", "/sessions/", "Open the sessions", False),
        (
            PUSH,
            "Waits",
            "Nothing has been sent yet: it comes with the first queue that is adopted or made.",
            *drift,
            False,
        ),
    ]
    for place in {row[3] for row in steps(overview(world))} - {"/adoption/"}:  # that page asks the cluster itself
        assert client_of(world.admin).get(f"/clusters/hall-3{place}").status_code == 200, place


def test_how_a_cluster_is_reached_is_what_its_newest_test_and_its_alerts_say(world, cluster) -> None:
    now = timezone.now()

    def reached() -> tuple[str, str]:
        return steps(overview(world))[0][1:3]

    done = {"cluster": cluster, "mode": "quota", "actor": "test", "finished_at": now}
    ConnectionTest.objects.create(**done, findings=[{"level": "good", "code": "version"}])
    assert reached() == ("Done", "The newest connection test found nothing missing.")
    ConnectionTest.objects.create(**done, findings=[{"level": "failed", "code": "rights"}])
    assert reached() == ("Needs help", "The newest connection test found something missing.")
    alert = Alert.objects.create(
        cluster=cluster, key="reach:x", code="cluster_unreachable", severity="critical", message="No route to host",
        raised_at=now,
    )  # fmt: skip
    assert reached() == ("Needs help", "No route to host")
    Alert.objects.filter(pk=alert.pk).update(resolved_at=now)
    Session.objects.create(cluster=cluster, number=1, epoch=1, mode="quota", state="dry_run", now=now, started_at=now)
    assert reached() == ("Done", "Sessions read the cluster.")


def test_what_is_adopted_is_a_tenant_then_a_queue_then_a_sum(world, cluster) -> None:
    DriftLook.objects.create(cluster=cluster, looked_at=timezone.now())

    def adopted() -> tuple[str, str, str, str]:
        return steps(overview(world))[1][1:5]

    assert adopted() == ("To do", "There is no queue yet.", "/quota/edit/", "Open the editor")
    line = quota_writes.ensure_business_line(
        tenant=quota_writes.ensure_tenant(slug="acme", actor="test"), slug="research", actor="test"
    )
    quota_writes.create_queue(
        cluster=cluster, name="team-a", service_type="training", card_quota={}, actor="test", business_line=line
    )
    PriorityClass.objects.create(cluster=cluster, name="batch", value=10)
    assert adopted() == ("Done", "Queues: 1. Priority classes: 1.", "/quota/", "Open the quota tree")


def test_a_cluster_that_is_only_observed_has_no_step_of_a_push(world, cluster) -> None:
    clusters.set_settings(cluster=cluster, values={"mode": "observe"}, actor="test", reason="Look first.")
    assert [row[0] for row in steps(overview(world))] == [REACHED, ADOPTED, POLICY, SESSION]


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
    tenant = quota_writes.ensure_tenant(slug="acme", actor="test")
    line = quota_writes.ensure_business_line(tenant=tenant, slug="research", actor="test")
    quota_writes.create_queue(
        cluster=cluster, name="team-a", service_type="training", card_quota={}, actor="test", business_line=line
    )
    DriftLook.objects.update(unmanaged=[])
    Session.objects.create(cluster=cluster, number=1, epoch=1, mode="quota", state="dry_run", now=now, started_at=now)
    Queue.objects.filter(name="team-a").update(refusals=1, sync_state="failed", sync_error="admission webhook denied")
    text = overview(world)
    assert states(text) == ["Done", "Done", "Done", "Done", "Needs help"]
    assert "Queue team-a: admission webhook denied" in text

    PushedObject.objects.create(cluster=cluster, kind="Queue", name="team-b", pushed_at=now)
    assert states(overview(world))[-1] == "Needs help", "another object was taken, and this one is refused"

    Queue.objects.filter(name="team-a").update(refusals=0, sync_state="in_step", sync_error="")
    PushedObject.objects.create(cluster=cluster, kind="Queue", name="team-a", pushed_at=now)
    assert HEADING not in overview(world)


@pytest.fixture
def set_up(cluster) -> Cluster:
    """A cluster with a policy, a session, a queue that it took, and nothing left to decide."""
    now = timezone.now()
    clusters.set_policy(cluster=cluster, text=FOUNDING_POLICY, actor="test")
    tenant = quota_writes.ensure_tenant(slug="acme", actor="test")
    line = quota_writes.ensure_business_line(tenant=tenant, slug="research", actor="test")
    quota_writes.create_queue(
        cluster=cluster, name="team-a", service_type="training", card_quota={}, actor="test", business_line=line
    )
    Session.objects.create(cluster=cluster, number=1, epoch=1, mode="quota", state="dry_run", now=now, started_at=now)
    PushedObject.objects.create(cluster=cluster, kind="Queue", name="team-a", pushed_at=now)
    DriftLook.objects.create(cluster=cluster, looked_at=now)
    return cluster


def test_queues_and_classes_without_a_decision_keep_the_steps(world, set_up) -> None:
    assert HEADING not in overview(world)
    drift.note_look(
        cluster=set_up, live={("Queue", "team-a"), ("Queue", "team-b"), ("PriorityClass", "system-node-critical")}
    )
    text = overview(world)
    assert "1 queue of the cluster is not decided on here." in text
    assert states(text)[1] == "To do"
    live = {
        ("Queue", "team-a"),
        ("Queue", "default"),
        ("PriorityClass", "batch"),
        ("PriorityClass", "system-node-critical"),
    }
    drift.note_look(cluster=set_up, live=live)
    text = overview(world)
    assert "1 priority class of the cluster is not decided on here: batch." in text
    assert "/clusters/hall-3/priority-classes/" in text
    many = {("PriorityClass", name) for name in ("batch", "day", "night", "spare", "tide")}
    drift.note_look(cluster=set_up, live=live | many)
    assert "5 priority classes of the cluster are not decided on here: batch, day, night …." in overview(world)
    drift.note_look(cluster=set_up, live=live)
    PriorityClass.objects.create(cluster=set_up, name="batch", value=10, refusals=1, sync_error="denied by the webhook")
    drift.note_look(cluster=set_up, live=live)
    text = overview(world)
    assert states(text)[-1] == "Needs help"
    assert "PriorityClass batch: denied by the webhook" in text
    Cluster.objects.filter(pk=set_up.pk).update(created_at=timezone.now() - dt.timedelta(days=14))
    assert HEADING not in overview(world), "a cluster that is not new has alerts for it"


def test_in_mode_schedule_an_unreleased_policy_is_a_step(world, cluster) -> None:
    clusters.set_settings(cluster=cluster, values={"mode": "schedule"}, actor="test", reason="Go.")
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
    found = place_of(alert, everything=True)
    assert found is not None
    assert found[0] == "/clusters/hall-3/policy/"
