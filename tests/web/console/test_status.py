"""The status page: TideSched's own processes, and those that had to be replaced."""

from __future__ import annotations

import time
import types

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from redis import ConnectionError as RedisAway

from tests.web.console import world as story
from tests.web.console.test_pages import client_of
from tidesched_web.common import alive
from tidesched_web.common.incidents import Replaced
from tidesched_web.common.progress import Report
from tidesched_web.jobs import replaced_processes
from tidesched_web.jobs.models import ReplacedProcess

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> story.World:
    return story.full()


def _note(pid: int = 4711) -> Replaced:
    return Replaced(
        key=f"key-{pid}", role="sessions", host="machine-7", pid=pid, at=time.time(), activity="sessions of cluster 1",
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
            parent=1,
            born=time.monotonic() - 60,
            written=time.monotonic(),
            activities=3,
            private_bytes=250 * 2**20,
        )
    )
    replaced_processes.keep(_note())
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
    replaced_processes.keep(_note())
    page = client_of(world.admin).get("/status/", headers={"accept-language": "zh-hans"}).content.decode()
    assert "<span>集群 1 的调度会话：决策</span>" in page
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


def test_a_role_that_has_not_spoken_just_after_a_start_is_starting(
    world: story.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.clear()
    monkeypatch.setattr(alive, "processes", list)  # no process has reported yet
    monkeypatch.setattr(alive, "STARTED", time.monotonic())
    page = client_of(world.admin).get("/status/").content.decode()
    assert "The role push is starting: it has not spoken yet." in page
    assert "moves on now" not in page
    monkeypatch.setattr(alive, "STARTED", time.monotonic() - alive.STARTING_SECONDS - 1)
    page = client_of(world.admin).get("/status/").content.decode()
    assert "No process of the role push moves on now." in page
    assert "is starting" not in page


def test_a_role_that_has_spoken_once_is_not_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alive, "STARTED", time.monotonic())
    report = types.SimpleNamespace(role="push")
    heard = [types.SimpleNamespace(report=report)]
    assert alive.starting_roles(["push", "work"], heard) == ["work"]


def test_the_page_stands_while_redis_is_away(world: story.World, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise RedisAway("gone")

    monkeypatch.setattr(alive, "processes", away)
    answer = client_of(world.admin).get("/status/")
    assert answer.status_code == 200
    assert "Redis does not answer" in answer.content.decode()


def test_a_note_is_kept_once_and_the_oldest_go(world: story.World, settings) -> None:
    settings.RETENTION_REPLACED_PROCESSES = 3
    for pid in (1, 1, 2, 3, 4, 5):
        replaced_processes.keep(_note(pid))
    assert sorted(ReplacedProcess.objects.values_list("pid", flat=True)) == [3, 4, 5]
