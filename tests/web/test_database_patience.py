"""How long a statement of the web process waits: for as long as the database answers others, and no longer."""

import os
import socketserver
import threading
from collections.abc import Iterator

import psycopg
import pytest
from django.db import OperationalError
from django.test import RequestFactory

from tests.waiting import until
from tests.web.left_connections import none_left_open
from tidesched_web.api import problem_json
from tidesched_web.common import database_patience
from tidesched_web.common.database_patience import DatabaseSilent, PatientConnection, Watch

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("none_left_open")]
__all__ = ["none_left_open"]


@pytest.fixture
def connection() -> Iterator[PatientConnection]:
    with PatientConnection.connect(os.environ["DATABASE_URL"]) as made:
        yield made


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    made = Watch()
    monkeypatch.setattr(database_patience, "watch", made)
    monkeypatch.setattr(database_patience, "ASK_AFTER_SECONDS", 0.05)
    yield made
    until(lambda: not made._asking)
    if made._connection is not None:
        made._connection.close()


def test_a_slow_statement_is_not_given_up_while_the_database_answers(
    connection: PatientConnection, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    ask = Watch._ask
    monkeypatch.setattr(Watch, "_ask", lambda self: asked.append(1) or ask(self))
    assert connection.execute("SELECT 'late' FROM pg_sleep(1)").fetchone() == ("late",)
    assert asked
    assert not watch.silent


def test_a_waiting_statement_is_given_up_once_the_database_is_silent(
    connection: PatientConnection, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer: list[psycopg.Error | None] = [psycopg.OperationalError("silent")]
    monkeypatch.setattr(Watch, "_ask", lambda _self: answer[0])
    with pytest.raises(DatabaseSilent):
        connection.execute("SELECT pg_sleep(60)")
    assert connection.closed
    answer[0] = None


def test_a_database_that_refuses_connections_is_silent_until_it_takes_one(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = database_patience._parameters
    monkeypatch.setattr(database_patience, "_parameters", lambda: right() | {"host": "/nowhere"})
    watch.look()
    until(lambda: watch.silent)
    monkeypatch.setattr(database_patience, "_parameters", right)
    until(lambda: not watch.silent)


@pytest.fixture
def no_place() -> Iterator[str]:
    """A role that may connect, and has no place left."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as admin:
        admin.execute("CREATE ROLE no_place LOGIN PASSWORD 'x' CONNECTION LIMIT 0")
        try:
            yield "no_place"
        finally:
            admin.execute("DROP ROLE no_place")


def test_a_server_that_refuses_one_more_connection_answers(
    watch: Watch, connection: PatientConnection, no_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All places are taken: what the pool has goes on, and a statement that waits for a lock keeps its connection."""
    right = database_patience._parameters
    monkeypatch.setattr(database_patience, "_parameters", lambda: right() | {"user": no_place, "password": "x"})
    asked: list[psycopg.Error | None] = []
    ask = Watch._ask

    def noted(self: Watch) -> psycopg.Error | None:
        asked.append(ask(self))
        return asked[-1]

    monkeypatch.setattr(Watch, "_ask", noted)
    assert connection.execute("SELECT 'late' FROM pg_sleep(1)").fetchone() == ("late",)
    assert asked
    assert not watch.silent
    assert not connection.closed


class Refusing(socketserver.StreamRequestHandler):
    """Refuses each connection as PostgreSQL does, in the language of its settings."""

    code = words = ""

    def handle(self) -> None:
        while (length := int.from_bytes(self.rfile.read(4))) == 8:  # does it speak TLS?
            self.rfile.read(4)
            self.wfile.write(b"N")
        self.rfile.read(length - 4)
        fields = ("S致命错误", "VFATAL", f"C{self.code}", f"M{self.words}")
        said = b"".join(field.encode() + b"\0" for field in fields) + b"\0"
        self.wfile.write(b"E" + (len(said) + 4).to_bytes(4) + said)


@pytest.mark.parametrize(
    ("code", "words", "silent"),
    [
        ("57P03", "the database system is starting up", True),
        ("57P03", "数据库系统正在启动", True),
        ("57P03", "数据库系统正在关闭", True),
        ("53300", "对不起, 已经有太多的客户", False),
        ("28000", "没有用于主机的 pg_hba.conf 记录", False),
    ],
)
def test_a_server_that_begins_or_ends_takes_nobody_in_whatever_language_it_says_so(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, code: str, words: str, silent: bool
) -> None:
    right = database_patience._parameters
    handler = type("Handler", (Refusing,), {"code": code, "words": words})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host, port = server.server_address[:2]
        monkeypatch.setattr(database_patience, "_parameters", lambda: right() | {"host": host, "port": port})
        error = watch._ask()
        server.shutdown()
    assert (error is not None) is silent, error


def test_what_was_put_off_is_done_when_the_database_answers_again(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, done = database_patience._parameters, threading.Event()
    monkeypatch.setattr(database_patience, "_parameters", lambda: right() | {"host": "/nowhere"})
    watch.look()
    until(lambda: watch.silent)
    watch.later(done.set)
    assert not done.is_set()
    monkeypatch.setattr(database_patience, "_parameters", right)
    assert done.wait(60)


def test_a_connection_that_was_cut_is_no_silence(watch: Watch) -> None:
    assert watch._ask() is None
    kept = watch._connection
    assert kept is not None
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [kept.info.backend_pid])
    assert watch._ask() is None
    assert watch._connection is not kept


@pytest.mark.parametrize(("method", "committed", "doubt"), [("post", 1, True), ("post", 0, False), ("get", 1, False)])
def test_only_a_write_whose_commit_was_sent_is_in_doubt(
    connection: PatientConnection, method: str, committed: int, doubt: bool
) -> None:
    database_patience.forget_commits()
    try:
        for _ in range(committed):
            connection.commit()
        request = getattr(RequestFactory(), method)("/api/v1/tenants/")
        error = problem_json.unforeseen(OperationalError("gone"), request)
        assert error.status == 503
        assert ("not known whether" in error.message) is doubt
    finally:
        database_patience.forget_commits()
