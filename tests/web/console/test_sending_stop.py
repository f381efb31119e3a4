"""Where nothing is sent to a cluster, every page that shows its work says so, since when, why and what ends it."""

from __future__ import annotations

import datetime as dt
from html import unescape

import pytest
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.selectors import access_of
from tidesched_web.clusters import services as clusters
from tidesched_web.clusters.models import Cluster, ClusterMode, PolicyRevision
from tidesched_web.scheduling.cluster_selectors import clusters_now
from tidesched_web.scheduling.holds import GUARD_CODE, GUARD_KEY, Hold, sending_stop
from tidesched_web.scheduling.models import Alert, AlertSeverity
from tidesched_web.workloads.models import Gang, GangState

pytestmark = pytest.mark.django_db

STOPPED = "Sending to demo is stopped."


def guard(world: story.World, **more: object) -> Alert:
    """The guard stops the newest session, as the session itself would say it."""
    return Alert.objects.create(
        cluster=world.cluster,
        key=GUARD_KEY,
        code=GUARD_CODE,
        severity=AlertSeverity.CRITICAL,
        numbers={"rule": "gangs_per_minute", "limit": 60, "asked": 71},
        message="71 gangs would have been evicted within a minute; the budget is 60.",
        session_id=world.sessions[-1].pk,
        raised_at=timezone.now() - dt.timedelta(minutes=25),
        **more,
    )


def page(user, address: str) -> str:
    answer = client_of(user).get(address)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def pages_of(world: story.World, user) -> dict[str, str]:
    gang = Gang.objects.filter(queue__tenant__slug="search", needs=True, gone_at__isnull=True).first()
    addresses = ("", "gangs/", f"gangs/{gang.pk}/", "queues/", f"queues/{gang.queue_name}/", "nodes/", "reclaims/")
    return {address: page(user, f"/clusters/demo/{address}") for address in addresses}


def test_a_guard_that_stopped_a_session_is_said_on_every_page_of_the_cluster(world) -> None:
    assert not [where for where, text in pages_of(world, world.admin).items() if "Sending stopped" in text]
    guard(world)
    for where, text in pages_of(world, world.admin).items():
        assert STOPPED in text, where
        assert "too many gangs would have been evicted within a minute. It asked for 71; the limit is 60." in text
        assert "25 min" in text, where
        assert "Review and release" in text, where
    for where, text in pages_of(world, world.member).items():
        assert STOPPED in text, where
        assert "A platform admin reviews what would be evicted and releases it." in text, where
        assert "the limit is 60" not in text, where


def test_an_alert_that_somebody_looks_after_goes_on_stopping(world) -> None:
    guard(world, acknowledged_at=timezone.now(), acknowledged_by="admin")
    assert STOPPED in page(world.admin, "/clusters/demo/")


def test_the_home_of_a_tenant_says_that_nothing_is_sent(world) -> None:
    assert STOPPED not in page(world.member, "/")
    guard(world)
    text = page(world.member, "/")
    assert text.count(STOPPED) == 1


def test_a_gang_that_only_the_stop_keeps_waiting_names_it(world) -> None:
    queue = world.queues["search-training"]
    incomplete = Gang.objects.filter(queue=queue, needs=True).first()
    Gang.objects.filter(pk=incomplete.pk).update(
        state=GangState.WAITING,
        owner_kind="Job",
        reason_code="GangIncomplete",
        reason_numbers={"allocated": 0, "requested": 4},
    )
    would_start = Gang.objects.filter(queue=queue).exclude(pk=incomplete.pk).first()
    Gang.objects.filter(pk=would_start.pk).update(state=GangState.ADMITTED, needs=False, reason_code="")
    assert "0 of 4 pods are there" in page(world.member, f"/clusters/demo/gangs/{incomplete.pk}/")
    guard(world)
    text = page(world.member, f"/clusters/demo/gangs/{incomplete.pk}/")
    assert "A session would admit it, but nothing is sent to the cluster" in text
    assert "0 of 4 pods are there" not in text.partition("Why does it wait?")[2].partition("What happened to it")[0]
    for address in (f"gangs/{would_start.pk}/", f"queues/{queue.name}/", f"gangs/?q={would_start.name}"):
        assert "A session would start it, but nothing is sent to the cluster." in page(
            world.member, f"/clusters/demo/{address}"
        ), address


def test_the_figure_of_idle_cards_says_why_none_is_assigned(world) -> None:
    assert "scattered, or out of quota" in page(world.admin, "/clusters/demo/")
    guard(world)
    text = page(world.admin, "/clusters/demo/")
    assert "sending is stopped, so none is assigned" in text
    assert "scattered, or out of quota" not in text


def test_the_guard_is_released_on_the_page_of_the_session_that_it_stopped(world) -> None:
    alert = guard(world)
    number = world.sessions[-1].number
    address = f"/clusters/demo/sessions/{number}/"
    release = f"/clusters/demo/alerts/{alert.pk}/resolve/"
    assert address in page(world.admin, "/clusters/demo/")
    assert release in page(world.admin, address)
    assert release not in page(world.auditor, address)
    assert release not in page(world.admin, f"/clusters/demo/sessions/{number - 1}/")
    assert client_of(world.admin).post(release).status_code == 302
    assert STOPPED not in page(world.admin, "/clusters/demo/")


def test_a_pause_and_an_unreleased_policy_stop_too(world) -> None:
    newest = PolicyRevision.objects.filter(cluster=world.cluster).latest("number")
    PolicyRevision.objects.filter(pk=newest.pk).update(released_at=None)
    assert "The policy is new" in page(world.member, "/clusters/demo/gangs/")
    clusters.pause(cluster=world.cluster, actor="admin", reason="a new switch")
    text = page(world.member, "/clusters/demo/gangs/")
    assert "Paused by admin: “a new switch”" in text
    assert "The policy is new" not in text


def test_where_volcano_schedules_only_a_pause_is_a_stop(world) -> None:
    guard(world)
    for mode in (ClusterMode.OBSERVE, ClusterMode.QUOTA):
        Cluster.objects.update(mode=mode)
        assert sending_stop(clusters_now(_access(world))[0]) is None
    clusters.pause(cluster=Cluster.objects.get(), actor="admin", reason="maintenance")
    assert sending_stop(clusters_now(_access(world))[0]).code is Hold.PAUSED


def test_rest_names_the_stop(world) -> None:
    address = f"/api/v1/clusters/{world.cluster.pk}/"
    assert client_of(world.member).get(address).json()["sending_stop"] is None
    alert = guard(world)
    found = client_of(world.member).get(address).json()["sending_stop"]
    assert (found["code"], found["rule"], found["session"]) == (
        "guard",
        "gangs_per_minute",
        world.sessions[-1].number,
    )
    assert dt.datetime.fromisoformat(found["since"]) == alert.raised_at


def test_alerts_beyond_the_first_three_are_counted(world) -> None:
    for number in range(4):
        Alert.objects.create(
            cluster=world.cluster, key=f"node:{number}", code="node_lost", numbers={"node": f"n{number}"},
            severity=AlertSeverity.WARNING, message="gone", raised_at=timezone.now(),
        )  # fmt: skip
    text = page(world.admin, "/clusters/demo/")
    assert text.count("has left the cluster.") == 3
    assert "and 2 more alerts" in text


def test_three_alerts_stand_above_the_overview_and_the_others_are_counted(world) -> None:
    Alert.objects.filter(cluster=world.cluster).delete()
    for number in range(5):
        Alert.objects.create(
            cluster=world.cluster, key=f"node_lost:n{number}", code="node_lost", severity=AlertSeverity.WARNING,
            numbers={"node": f"n{number}"}, raised_at=timezone.now(),
        )  # fmt: skip
    overview = page(world.admin, "/clusters/demo/")
    assert overview.count("has left the cluster.") == 3
    assert "and 2 more alerts" in overview
    Alert.objects.filter(key="node_lost:n0").delete()
    assert "and 1 more alert<" in page(world.admin, "/clusters/demo/")


def test_one_gang_waits_and_two_wait(world) -> None:
    alert = Alert.objects.create(
        cluster=world.cluster, key="promise", code="promise_unused", severity=AlertSeverity.WARNING,
        numbers={"promised": 64, "card": "NVIDIA-H200", "queue": "train", "waiting": 1}, raised_at=timezone.now(),
    )  # fmt: skip
    assert "and 1 gang waits for that quota" in page(world.admin, "/clusters/demo/alerts/")
    Alert.objects.filter(pk=alert.pk).update(numbers=alert.numbers | {"waiting": 2})
    assert "and 2 gangs wait for that quota" in page(world.admin, "/clusters/demo/alerts/")


def _access(world: story.World):
    return access_of(world.admin)


def test_an_alert_of_one_queue_leads_to_that_queue(world) -> None:
    Alert.objects.create(
        cluster=world.cluster, key="promise", code="promise_unused", severity=AlertSeverity.WARNING,
        numbers={"promised": 64, "card": "NVIDIA-H200", "queue": "search-training", "waiting": 1},
        raised_at=timezone.now(),
    )  # fmt: skip
    assert 'href="/clusters/demo/queues/search-training/"' in page(world.admin, "/clusters/demo/alerts/")
    assert "search-training" not in page(world.member, "/clusters/demo/alerts/"), "it may be another tenant's"
