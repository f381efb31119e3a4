"""Connections to the test's database that a test has opened and not closed: with one left it cannot be dropped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from tests.waiting import until


@pytest.fixture
def none_left_open(db: None) -> Iterator[None]:
    """Name it before the fixtures that open some."""
    before = others()
    yield
    # The server notices in a moment that a client has gone.
    until(lambda: others().keys() <= before.keys(), story=others)


def others() -> dict[int, str]:
    """Each other connection, with what it said last."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT pid, left(query, 80) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return dict(cursor.fetchall())
