"""Two installations at one cluster, one with a clock an hour ahead: by the API server's own log one of them writes.

Each has a database, a broker, a Celery worker and a process that pushes quota. Whoever holds the cluster's Lease is
killed, or stopped and continued while the other holds; once with each of the clocks.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connections

from tests.cluster.workers import Broker, Worker, database_address
from tests.kube.real_server import RealServer
from tests.kube.shared import find_or_skip, stand_aside, stand_by
from tests.waiting import until
from tests.web.pipeline.stage import Stage
from tests.web.pipeline.test_watching import replace_token
from tidesched_web.clusters.kubernetes import installation_lease
from tidesched_web.clusters.kubernetes.installation_lease import InstallationLease
from tidesched_web.clusters.kubernetes.outcomes import Outcome
from tidesched_web.clusters.kubernetes.paths import JOB
from tidesched_web.scheduling.holds import FOREIGN_CODE

pytestmark = pytest.mark.timeout(600)

TAKEOVER_SECONDS = 20.0
# The queue that each of them changes, and how far its clock is ahead.
TWO = {"right": ("serve", 0), "ahead": ("train", 3600)}
COPY = "two_installations"
_CLOCK = """
import os, time, django.utils.timezone as django_time
from datetime import timedelta
real_time, real_now = time.time, django_time.now
time.time, django_time.now = lambda: real_time() + {1}, lambda: real_now() + timedelta(seconds={1})
"""
_PUSHER = """
os.environ["DJANGO_SETTINGS_MODULE"] = "tidesched_web.settings"
import django; django.setup()
from tests import quota_writes
from tests.cluster.objects import CARD
from tidesched_web.quota.models import Queue
from tidesched_web.quota.services import push
for number in range(10000):
    queue = Queue.objects.get(name="{0}")
    quota_writes.set_card_quota(cluster=queue.cluster, owner=queue, cards=dict([(CARD, 15 + number % 2)]))
    push.push_pending()
    time.sleep(1)  # the pace of who edits, no wait of the test
"""
PROGRAMS = {"sessions": "from celery.__main__ import main; main()", "pusher": _PUSHER}


class Write(NamedTuple):
    """``begun`` and ``ended``: by the API server's clock."""

    begun: float
    ended: float
    who: str
    what: str
    name: str
    done: bool


def write_of(event: dict[str, Any]) -> Write:
    moments = (event["requestReceivedTimestamp"], event["stageTimestamp"])
    begun, ended = (datetime.fromisoformat(moment).timestamp() for moment in moments)
    about, done = event.get("objectRef") or {}, event["responseStatus"]["code"] < 300
    what = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    return Write(begun, ended, event["user"]["username"], what, about.get("name", ""), done)


class Installation:
    def __init__(self, name: str, database: str, folder: Path) -> None:
        self._folder, self._broker, self._database = folder, Broker(folder / "broker"), database
        self._environment = {"DATABASE_URL": database, "TIDESCHED_INSTALLATION_ID": name}
        self._programs = {role: ("-c", (_CLOCK + code).format(*TWO[name])) for role, code in PROGRAMS.items()}
        self.processes: dict[str, Worker] = {}

    def start(self) -> None:
        """What has ended begins again, as under a supervisor."""
        more: dict[str, Any] = {"lease_seconds": 15.0, "environment": self._environment}
        for role, program in self._programs.items():
            if role not in self.processes or self.processes[role].ended:
                self.processes[role] = Worker(role, self._folder, self._broker, program=program, **more)

    def held_back(self) -> int:
        """How many of its sessions found the Lease another's."""
        self.start()
        with psycopg.connect(self._database) as asked:
            query = "SELECT FROM scheduling_session WHERE counts->>'held' = %s"
            return asked.execute(query, [FOREIGN_CODE]).rowcount

    def end(self) -> None:
        for one in self.processes.values():
            one.kill()
        self._broker.stop()


class Scene:
    def __init__(self, server: RealServer, folder: Path) -> None:
        stand_aside()
        server.clear()
        (server.folder / "audit.log").write_bytes(b"")
        stand_by(server, grace=0.3)
        self._server, self._stage = server, Stage(server, nodes=2, period=0.3)
        self._gangs, self._last = 0, 0.0
        replace_token(self._stage, "ahead's")
        connections.close_all()
        address = urlsplit(database_address())
        self._sql(f'CREATE DATABASE "{COPY}" TEMPLATE "{address.path[1:]}"')
        replace_token(self._stage, "right's")
        databases = {"right": address.geturl(), "ahead": address._replace(path=f"/{COPY}").geturl()}
        self.all = {name: Installation(name, database, folder / name) for name, database in databases.items()}

    def _sql(self, statement: str) -> None:
        server = urlsplit(database_address())._replace(path="/postgres").geturl()
        with psycopg.connect(server, autocommit=True) as asked:
            asked.execute(statement.encode())

    def writes(self) -> list[Write]:
        """Of the two, in order; what only tries changes nothing."""
        events = (one for one in self._server.audit_log() if "dryRun" not in one["requestURI"])
        return sorted(one for one in map(write_of, events) if one.who in TWO)

    def until(self, check: Callable[[], object]) -> None:
        """Meanwhile gangs come and go."""

        def look() -> object:
            if time.monotonic() > self._last + 0.3:
                self._gangs, self._last = self._gangs + 1, time.monotonic()
                self._stage.train(f"g{self._gangs}", pods=2)
                self._stage.client.send("DELETE", JOB.path("work", f"g{self._gangs - 6}"))
            return check()

        until(look, 90, story=lambda: [one.said() for two in self.all.values() for one in two.processes.values()])

    def works(self, name: str, since: float = 0.0) -> bool:
        """It binds and it writes quota."""
        done = {one.what for one in self.writes() if one.who == name and one.begun > since and one.done}
        return done >= {"pods/binding", "queues", "queues/status"}

    def strike(self, old: str, new: str, number: signal.Signals) -> None:
        """Until the other works and the first, back again, has seen that it may not."""
        struck, hit = time.time(), self.all[old]
        for one in hit.processes.values():
            one.process.send_signal(number)
        self.until(lambda: self.works(new, struck))
        taken = min(one.ended for one in self.writes() if one.who == new and one.begun > struck) - struck
        print(f"{number.name} of {old}: taken over after {taken:.1f} s")
        assert taken < TAKEOVER_SECONDS
        for one in hit.processes.values():
            one.go_on()
        seen = hit.held_back()
        self.until(lambda: hit.held_back() > seen + 5)

    def close(self) -> None:
        for one in self.all.values():
            one.end()
        self._stage.close()
        stand_aside()
        connections.close_all()
        self._sql(f'DROP DATABASE "{COPY}" WITH (FORCE)')


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    binaries = find_or_skip()
    users = {f"{name}'s": (name, ["system:masters"]) for name in TWO}
    made = RealServer(tmp_path_factory.mktemp("kube"), binaries, users=users, audited=True)
    made.start()
    yield made
    made.stop()


def holder(moment: float, writes: list[Write]) -> str:
    """Who had written the Lease last."""
    return next((one.who for one in reversed(writes) if one.begun <= moment and one.what == "leases" and one.done), "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_one_writer_at_every_moment(
    server: RealServer, tmp_path: Path, transactional_db: None, number: signal.Signals
) -> None:
    with closing(Scene(server, tmp_path)) as scene:
        scene.all["right"].start()
        scene.until(lambda: scene.works("right"))
        scene.until(lambda: scene.all["ahead"].held_back() > 5)
        scene.strike("right", "ahead", number)
        scene.strike("ahead", "right", number)
        writes = scene.writes()
    leases = [one.who for one in writes if one.what == "leases" and one.done]
    assert [who for who, _ in groupby(leases)] == ["right", "ahead", "right"]
    held = [(one, holder(one.begun, writes), holder(one.ended, writes)) for one in writes if one.what != "leases"]
    assert [row for row in held if row[1:] != (row[0].who, row[0].who)] == []
    bound = Counter(one.name for one in writes if one.what == "pods/binding" and one.done)
    assert set(bound.values()) == {1}


def test_who_was_stopped_while_it_asked_waits_for_the_other(
    server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is told then is new, however long ago it asked."""
    server.clear()
    now = [0.0]
    monkeypatch.setattr(installation_lease, "monotonic", lambda: now[0])
    old, new = InstallationLease("old", seconds=15), InstallationLease("new", seconds=15)
    with closing(server.client()) as client:
        assert (old.hold(client).held, new.hold(client).held) == (True, False)

        def stopped(*request: Any) -> Outcome:
            now[0] += 60
            assert new.hold(client).held
            return client.send(*request)

        assert not old.hold(Mock(send=stopped)).held
        now[0] += 2
        assert (old.hold(client).held, new.held(client)) == (False, True)
