"""The status page: TideSched's own processes, and those that had to be replaced."""

from __future__ import annotations

import datetime as dt
import re
import time
import types
from pathlib import Path

import pytest
import redis
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from redis import ConnectionError as RedisAway

from tests.web.console import world as story
from tests.web.console.cast import empty_cluster
from tests.web.console.test_pages import client_of
from tidesched_web.accounts.selectors import access_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import alive, incidents
from tidesched_web.common.incidents import Ending, Replaced
from tidesched_web.common.progress import Report
from tidesched_web.quota.models import PriorityClass, PushedObject, Queue
from tidesched_web.quota.push_selectors import last_pushes

pytestmark = pytest.mark.django_db


def _note(pid: int = 4711) -> Replaced:
    return Replaced(
        role="sessions", host="machine-7", pid=pid, started="1", at=time.time(), activity="sessions of cluster 1",
        step="deciding", seconds=41.2, ended_by="supervisor",
    )  # fmt: skip


@pytest.mark.parametrize("who", ["admin", "auditor"])
def test_who_sees_everything_sees_processes_and_replacements(world: story.World, who: str) -> None:
    for role in alive.ROLES:
        alive.mark(role)
    alive.tell(
        Report(
            role="sessions",
            host="machine-7",
            pid=4712,
            started="1",
            born=time.monotonic() - 60,
            written=time.monotonic(),
            private_bytes=250 * 2**20,
        )
    )
    incidents.write(settings.REDIS_URL, _note())
    page = client_of(getattr(world, who)).get("/status/").content.decode()
    for text in ("machine-7", "4712", "250 MiB", "sessions of cluster 1: deciding", "41 s", "supervisor"):
        assert text in page, text
    assert "moves on now" not in page


def test_versions_of_the_parts_are_shown(world: story.World, monkeypatch: pytest.MonkeyPatch) -> None:
    page = client_of(world.auditor).get("/status/").content.decode()
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        (database,) = cursor.fetchone()
    name, store = alive.store()
    for text in ("<dt>TideSched</dt>", settings.VERSION, database.split()[0], name, store):
        assert text in page, text
    monkeypatch.setattr(alive, "store", lambda: ("Valkey", ""))
    assert "does not answer" in client_of(world.auditor).get("/status/").content.decode()


def test_what_a_process_hung_at_is_said_in_the_readers_language(world: story.World) -> None:
    incidents.write(settings.REDIS_URL, _note())
    page = client_of(world.admin).get("/status/", headers={"accept-language": "zh-hans"}).content.decode()
    assert "<span>集群 1 的调度会话: 决策</span>" in page
    assert "<span>守护进程</span>" in page


@pytest.mark.parametrize("who", ["member", "stranger", "newcomer"])
def test_to_others_the_page_is_not_there(world: story.World, who: str) -> None:
    client = client_of(getattr(world, who))
    assert client.get("/status/").status_code == 404
    assert "/status/" not in client.get("/help/").content.decode()


def test_a_role_that_does_not_move_is_named(world: story.World, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()  # other tests may have spoken for it
    monkeypatch.setattr(alive, "STARTED", time.monotonic() - 3600)
    for role in alive.ROLES:
        if role != "work":
            alive.mark(role)
    page = client_of(world.admin).get("/status/").content.decode()
    assert "No process of the role work moves on now." in page


def test_a_role_that_ends_each_time_it_is_started_is_named_with_its_last_error(
    world: story.World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDESCHED_PROGRESS_DIR", str(tmp_path))
    monkeypatch.setattr(alive, "STARTED", time.monotonic() + 3600)
    for role in alive.ROLES:
        alive.mark(role)
    incidents.write_endings(tmp_path, {"work": Ending("work", 4, "PermissionError: <no /dev/shm>")})
    page = client_of(world.admin).get("/status/").content.decode()
    assert "No process of the role work moves on now." in page
    assert "It ends each time it is started; its last error: PermissionError: &lt;no /dev/shm&gt;" in page
    assert "Workers Does not work Not moving on: work" in text_of(page)


def test_a_role_that_has_not_spoken_just_after_a_start_is_starting(
    world: story.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.clear()
    monkeypatch.setattr(alive, "processes", list)  # no process has reported yet
    monkeypatch.setattr(alive, "STARTED", time.monotonic() + 3600)
    page = client_of(world.admin).get("/status/").content.decode()
    assert "The role push is starting: it has not spoken yet." in page
    assert "moves on now" not in page
    monkeypatch.setattr(alive, "STARTED", time.monotonic() - alive.STARTING_SECONDS - 1)
    page = client_of(world.admin).get("/status/").content.decode()
    assert "No process of the role push moves on now." in page
    assert "is starting" not in page


def test_a_role_that_has_spoken_once_is_not_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alive, "STARTED", time.monotonic() + 3600)
    report = types.SimpleNamespace(role="push")
    heard = [types.SimpleNamespace(report=report)]
    assert alive.starting_roles(["push", "work"], heard) == ["work"]


def unreachable() -> None:
    raise RedisAway("gone")


def test_the_page_stands_while_redis_is_away(world: story.World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alive, "processes", unreachable)
    answer = client_of(world.admin).get("/status/")
    assert answer.status_code == 200
    assert "Redis does not answer" in answer.content.decode()


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_the_verdict_stands_above_the_parts(world: story.World, monkeypatch: pytest.MonkeyPatch) -> None:
    for role in alive.ROLES:
        alive.mark(role)
    client, waiting = client_of(world.admin), alive.waiting_messages()

    def read() -> str:
        return text_of(client.get("/status/").content.decode())

    page = read()
    assert "All parts work." in page
    assert page.index("All parts work.") < page.index("Database Works")
    assert f"Queues of work Works {waiting} task" in page
    assert "Workers Works Moving on: sessions, push, work, what-if, beat" in page
    asked = redis.Redis.from_url(settings.REDIS_URL)
    asked.rpush("celery:push", "a", "b")
    try:
        assert alive.waiting_messages() == waiting + 2
    finally:
        asked.lpop("celery:push", 2)
    monkeypatch.setattr(alive, "silent_roles", lambda: ["push"])
    monkeypatch.setattr(alive, "STARTED", time.monotonic() - 3600)
    assert "Not all parts work: Workers." in (page := read())
    assert "Workers Does not work Not moving on: push" in page
    monkeypatch.setattr(alive, "STARTED", time.monotonic() + 3600)
    monkeypatch.setattr(alive, "processes", list)
    assert "Starting: Workers." in read()
    monkeypatch.setattr(alive, "silent_roles", unreachable)
    assert "Not all parts work: Queues of work, Workers." in read()
    said = client.get("/status/", headers={"accept-language": "zh-hans"}).content.decode()
    assert "并非所有部件都正常：任务队列、工作进程。" in said


def test_the_newest_push_of_each_cluster_is_listed(world: story.World) -> None:
    at = timezone.now() - dt.timedelta(minutes=3)
    PushedObject.objects.update(pushed_at=at - dt.timedelta(hours=1))
    PushedObject.objects.filter(kind="Queue", name="search-training").update(pushed_at=at)
    world.cluster.simulated = False
    world.cluster.save()
    empty_cluster("hall")
    Cluster.objects.filter(slug="hall").update(mode="observe")
    client = client_of(world.auditor)

    def read(path: str) -> str:
        return text_of(client.get(path).content.decode())

    stamp = f"{at:%Y-%m-%d %H:%M:%S} UTC ( 3 min ago )"
    for path in ("/status/", "/clusters/demo/connection/"):
        assert f"Taken Queue search-training {stamp}" in read(path), path
    assert "hall none: nothing is sent in mode observe" in read("/status/").lower()
    soon = timezone.now() + dt.timedelta(seconds=100)  # it rests for two minutes after the third refusal
    Queue.objects.filter(name="search-training").update(
        refusals=3, retry_at=soon, sync_state="failed", sync_error="weight: 70000 is too much"
    )
    PriorityClass.objects.filter(cluster=world.cluster, name="pc-normal").update(refusals=1, sync_error="no")
    page = read("/clusters/demo/connection/")
    assert "Refused Queue search-training" in page
    assert "weight: 70000 is too much" in page
    assert "2 objects are refused by the cluster: open the drift" in page
    assert last_pushes(access_of(world.admin), [world.cluster])[world.cluster.pk].at == soon - dt.timedelta(minutes=2)
    assert last_pushes(access_of(world.member), [world.cluster]) == {}
    access, clusters = access_of(world.admin), list(Cluster.objects.all())
    with CaptureQueriesContext(connection) as queries:
        assert set(last_pushes(access, clusters)) == {world.cluster.pk}
    assert len(queries) == 1, "for all clusters"


def test_a_note_is_kept_once_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    monkeypatch.setattr(incidents, "MOST", 3)
    for pid in (1, 1, 2, 3, 4, 5):
        assert incidents.write(settings.REDIS_URL, _note(pid))
    assert [note.pid for note in alive.replaced()] == [5, 4, 3]
    assert [note.pid for note in alive.replaced()] == [5, 4, 3]
