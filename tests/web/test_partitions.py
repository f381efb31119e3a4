"""Partitions are made ahead; what came too early for one moves into it; the oldest go first."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection

from tidesched_web.audit.models import AuditEntry
from tidesched_web.common import partitions

TABLE = "audit_auditentry"
NOON = dt.datetime(2031, 5, 1, 12, 30, tzinfo=dt.UTC)

pytestmark = pytest.mark.django_db


def _entry(at: dt.datetime) -> AuditEntry:
    return AuditEntry.objects.create(
        chain="test",
        seq=1,
        at=at,
        actor="a",
        action="b",
        object_type="c",
        object_id="d",
        payload=b"",
        hash="",
        prev_hash="",
    )


def _where(entry: AuditEntry) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT tableoid::regclass::text FROM {TABLE} WHERE id = %s", [entry.pk])
        return str(cursor.fetchone()[0])


def test_they_are_made_ahead_and_only_once() -> None:
    made = partitions.ensure(TABLE, hours=1, ahead=2, now=NOON)
    assert made == [f"{TABLE}_p2031050112", f"{TABLE}_p2031050113", f"{TABLE}_p2031050114"]
    assert partitions.ensure(TABLE, hours=1, ahead=2, now=NOON) == []
    assert _where(_entry(NOON)) == f"{TABLE}_p2031050112"


def test_rows_that_came_before_their_partition_move_into_it() -> None:
    early, later = _entry(NOON), _entry(NOON + dt.timedelta(days=1))
    assert _where(early) == f"{TABLE}_rest"
    partitions.ensure(TABLE, hours=1, ahead=0, now=NOON)
    assert _where(early) == f"{TABLE}_p2031050112"
    assert _where(later) == f"{TABLE}_rest"
    assert AuditEntry.objects.filter(chain="test").count() == 2
    assert _where(_entry(NOON + dt.timedelta(days=2))) == f"{TABLE}_rest"


def test_the_oldest_are_dropped_until_the_rest_fits() -> None:
    partitions.ensure(TABLE, hours=1, ahead=4, now=NOON)
    mine = [name for name in partitions.names(TABLE) if "_p2031" in name]
    dropped = partitions.drop_oldest(TABLE, keep_bytes=0, keep_partitions=2)
    assert [name for name in mine if name in dropped] == mine[:-2]
    assert [name for name in partitions.names(TABLE) if "_p2031" in name] == mine[-2:]
