"""What requests share: remembered while events are read, forgotten with each event, never between rights."""

from __future__ import annotations

import pytest
from django.core.cache import cache, caches
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.selectors import access_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import live, live_memory
from tidesched_web.common.live_memory import Memory, memory
from tidesched_web.quota.models import Drift
from tidesched_web.scheduling.cluster_selectors import clusters_now, clusters_of_frame
from tidesched_web.scheduling.models import Alert


@pytest.fixture
def following():
    memory.follow(events=True)
    yield
    memory.follow(events=False)


def counted(kept: Memory, topics: tuple[str, ...] = ("alerts",)) -> list[int]:
    """Each look reads a new number."""
    looks: list[int] = []
    kept.get("key", topics, lambda: looks.append(len(looks)))
    return looks


def test_nothing_is_remembered_where_no_events_are_read():
    kept = Memory()
    assert counted(kept) == [0]
    assert counted(kept) == [0]


def test_it_is_read_once_until_an_event_of_its_topics_comes():
    kept = Memory()
    kept.follow(events=True)
    assert (counted(kept), counted(kept)) == ([0], [])
    kept.forget(["gangs"])
    assert counted(kept) == []
    kept.forget(["gangs", "alerts"])
    assert counted(kept) == [0]


def test_what_changed_while_it_was_read_is_read_again():
    kept = Memory()
    kept.follow(events=True)
    assert kept.get("key", ("alerts",), lambda: kept.forget(["alerts"]) or "old") == "old"
    assert kept.get("key", ("alerts",), lambda: "new") == "new"


def test_it_is_read_again_after_a_while(monkeypatch):
    kept = Memory()
    kept.follow(events=True)
    assert counted(kept) == [0]
    monkeypatch.setattr(live_memory, "MOST_SECONDS", 0.0)
    assert counted(kept) == [0]


@pytest.mark.django_db
def test_readers_with_equal_rights_share_the_frame_and_others_do_not(following):
    world = story.full()
    admin, member = access_of(world.admin), access_of(world.member)
    first = clusters_of_frame(admin)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        again = clusters_of_frame(admin)
    assert len(asked) == 0
    assert [one.pk for one in again] == [one.pk for one in first]
    assert again[0] is not first[0]
    with CaptureQueriesContext(connection) as asked:
        clusters_of_frame(member)
    assert len(asked) == 1


@pytest.mark.django_db
def test_the_shared_frame_shows_each_reader_what_a_query_of_their_own_shows(following):
    world = story.full()
    Cluster.objects.create(slug="other", name="Other", mode=world.cluster.mode, simulated=True)
    now = timezone.now()
    for queue in world.queues.values():  # of several tenants
        Drift.objects.create(
            cluster=world.cluster, kind="Queue", name=queue.name, queue=queue, found_at=now, changed_at=now
        )
    Alert.objects.create(key="platform", severity="warning", code="x", message="x", raised_at=now)
    fields = ("pk", "open_drift", "platform_alerts", "open_alerts", "session_id", "local_zone")
    seen = {}
    for user in (world.admin, world.member, world.newcomer):
        access = access_of(user)
        shared = [[getattr(one, name) for name in fields] for one in clusters_of_frame(access)]
        assert shared == [[getattr(one, name) for name in fields] for one in clusters_now(access)]
        seen[user.username] = len(shared)
    assert sorted(seen.values()) == [0, 1, 2]


@pytest.mark.django_db
def test_a_page_shows_at_once_what_this_process_has_changed(following, django_capture_on_commit_callbacks):
    world = story.full()
    client = client_of(world.admin)
    before = client.get("/clusters/demo/").context["bell"]
    assert before > 0
    Alert.objects.all().delete()
    live.publish("alerts", "all", cluster_id=world.cluster.pk)
    assert client.get("/clusters/demo/").context["bell"] == 0


@pytest.mark.django_db
def test_the_page_after_a_write_shows_what_another_process_has_changed(following, monkeypatch):
    monkeypatch.setattr(live_memory, "MOST_SECONDS", 60.0)
    world = story.full()
    client = client_of(world.admin)
    shown = client.get("/clusters/demo/").context["bell"]
    Alert.objects.all().delete()  # by another process: its event has not come yet
    assert client.get("/clusters/demo/").context["bell"] == shown
    assert client.post("/profile/", {}).cookies["wrote"].value == "1"
    assert client.get("/clusters/demo/").context["bell"] == 0


def test_each_request_uses_the_connections_of_the_process():
    """Under ASGI a request has a cache object of its own."""
    one, another = caches.create_connection("default"), caches.create_connection("default")
    one.set("shared-pool", 1)
    assert another.get("shared-pool") == 1
    assert one is not another
    assert one._cache._get_connection_pool(write=False) is another._cache._get_connection_pool(write=True)
    cache.delete("shared-pool")


def test_heavy_jobs_give_way(monkeypatch):
    from tidesched_web import celery
    from tidesched_web.common import worker_progress
    from tidesched_web.embedded import account

    asked: list[int] = []
    monkeypatch.setattr("os.nice", asked.append)
    monkeypatch.setattr(account, "die_with_parent", lambda _signal: None)
    monkeypatch.setattr(worker_progress, "report_forked", lambda _role: None)
    for role in ("sessions", "what-if", "work"):
        monkeypatch.setenv("TIDESCHED_ROLE", role)
        celery._end_with_worker()
    assert asked == [5, 10]
