"""What an alert or a job says of an exception: words and a reference, never a statement, an address or a file."""

from __future__ import annotations

import logging
import re
from html import unescape

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

from tests.web.console.test_pages import client_of
from tidesched_web.common.errors import DomainError
from tidesched_web.common.failures import described
from tidesched_web.scheduling.models import Alert
from tidesched_web.scheduling.pipeline.lease import Lease
from tidesched_web.scheduling.pipeline.shard import ClusterShard

pytestmark = pytest.mark.django_db
REFERENCE = re.compile(r"reference ([0-9a-f]{8})")


def broken_statement() -> DatabaseError:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT secret_column FROM quota_queue")
    except DatabaseError as error:
        return error
    raise AssertionError


def test_a_statement_of_the_database_stays_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        said = described(broken_statement())
    found = REFERENCE.search(said)
    assert found is not None
    assert said == f"The database refused or lost a statement (reference {found[1]})"
    assert found[1] in caplog.text
    assert "secret_column" in caplog.text
    assert described(DomainError("conflict", "Its own words.")) == "Its own words."


def test_the_alert_of_sessions_that_fail_names_no_statement(world) -> None:
    shard = ClusterShard(Lease(world.cluster.pk, "test", 1, 0.0))
    for _time in range(3):
        shard._fail(ValueError('column "secret_column" does not exist LINE 1: SELECT secret_column'), 0.001)
    alert = Alert.objects.get(code="session_failed", resolved_at=None)
    assert "secret_column" not in f"{alert.message} {alert.numbers}"
    for language, words in (("en", "No session for 3 attempts in a row: An internal error"), ("zh-hans", "内部错误")):
        for address in ("/clusters/demo/", "/clusters/demo/alerts/"):
            answer = client_of(world.admin).get(address, headers={"Accept-Language": language})
            text = unescape(answer.content.decode())
            assert words in text, (language, address)
            assert REFERENCE.search(alert.message)[1] in text


def test_who_is_signed_in_keeps_the_navigation_where_nothing_is(world) -> None:
    for who, address, status in (
        (world.member, "/clusters/demo/gangs/99999999/", 404),
        (world.member, "/clusters/elsewhere/gangs/", 404),
        (world.member, "/clusters/demo/rules/", 403),
    ):
        answer = client_of(who).get(address)
        assert answer.status_code == status
        page = answer.content.decode()
        assert 'id="pages"' in page, address
        assert 'href="/clusters/demo/gangs/"' in page, "of the cluster in the address, else of the one before"
    stranger = Client().get("/nowhere/")
    assert stranger.status_code == 404
    assert 'id="pages"' not in stranger.content.decode()
