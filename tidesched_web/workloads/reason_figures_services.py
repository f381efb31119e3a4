import datetime as dt
from collections.abc import Mapping
from typing import Any

import msgspec
from django.db import connection

from tidesched_web.common.locking import require_transaction
from tidesched_web.workloads.models import ReasonFigures

# One statement for all of them; the other columns of their rows are as they were.
_WRITE = """
UPDATE workloads_gang AS gang
SET reason_numbers = new.numbers, reason_message = new.message,
    figures_number = %s, figures_at = %s, session_id = %s, seen_at = %s
FROM unnest(%s::bigint[], %s::jsonb[], %s::text[]) AS new(id, numbers, message)
WHERE gang.id = new.id
"""


def write(
    figures: Mapping[int, tuple[dict[str, Any], str]], *, number: int, at: dt.datetime, session_id: int,
    wall_at: dt.datetime,
) -> None:  # fmt: skip
    require_transaction()
    if not figures:
        return
    numbers = [msgspec.json.encode(one).decode() for one, _message in figures.values()]
    messages = [message for _numbers, message in figures.values()]
    with connection.cursor() as cursor:
        cursor.execute(_WRITE, [number, at, session_id, wall_at, list(figures), numbers, messages])


def say(*, cluster_id: int, number: int, at: dt.datetime) -> None:
    require_transaction()
    ReasonFigures.objects.bulk_create(
        [ReasonFigures(cluster_id=cluster_id, number=number, at=at)],
        update_conflicts=True,
        unique_fields=("cluster",),
        update_fields=("number", "at"),
    )
