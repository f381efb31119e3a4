"""The list of gangs in its order: who waits first; the database reads it in an index, at any depth."""

import datetime as dt
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tidesched_web.console.paging import paged
from tidesched_web.workloads.models import TERMINAL_GANG_STATES, Gang, GangState
from tidesched_web.workloads.selectors import BY_NEED, by_need

pytestmark = pytest.mark.django_db


def plan(sql: str) -> str:
    with connection.cursor() as cursor:
        # A table of a few rows is read from end to end, and sorted: what a long one would do is asked for.
        for way in ("seqscan", "bitmapscan", "sort"):
            cursor.execute(f"SET LOCAL enable_{way} = off")
        cursor.execute(f"EXPLAIN {sql}")
        return "\n".join(row[0] for row in cursor.fetchall())


def test_each_page_of_the_default_order_is_read_in_its_index(world) -> None:
    gangs = by_need(Gang.objects.filter(cluster=world.cluster))

    def key(gang: Gang) -> tuple[int, dt.timedelta, dt.timedelta, int]:
        start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        over = gang.gone_at is not None or gang.state in TERMINAL_GANG_STATES
        waits = gang.gone_at is None and (gang.needs or gang.state in (GangState.WAITING, GangState.ADMITTED))
        rank = 0 if waits else 2 if over else 1
        since = ((gang.waiting_since or gang.submitted_at) if waits else start) - start
        return rank, since, start - gang.submitted_at, -gang.pk

    wanted = [gang.pk for gang in sorted(Gang.objects.filter(cluster=world.cluster), key=key)]
    seen, cursor = [], ""
    while True:
        with CaptureQueriesContext(connection) as queries:
            page = paged(gangs, BY_NEED, cursor, size=3)
        assert len(queries) == 1
        said = plan(queries[0]["sql"])
        assert "gang_by_need" in said
        assert not re.search(r"\bSort\b", said), said
        seen += [gang.pk for gang in page.rows]
        if not page.next:
            break
        assert not cursor or re.search(r"Index Cond: .*CASE", said), said
        cursor = page.next
    assert seen == wanted
    assert len(seen) > 6
