"""Writing down what came of a push: one statement for a batch, and only for rows that stand otherwise than before."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db import connection
from django.utils import timezone
from psycopg.types.json import Jsonb

from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.models import Cluster
from tidesched_web.common import live
from tidesched_web.quota.models import PriorityClass, Queue, QueueState, SyncState
from tidesched_web.quota.selectors import card_quota_of
from tidesched_web.quota.services.push_object import Aim
from tidesched_web.quota.services.pushed import Written, note_pushed
from tidesched_web.quota.tide_selectors import beyond_base

# More than so many at once are not announced one by one: a page that shows them fetches its list again.
_ANNOUNCED = 100

_MARK_CLASSES = """
UPDATE quota_priorityclass p
SET sync_state = v.sync_state, sync_error = v.sync_error, pushed_version = coalesce(v.pushed_version, p.pushed_version)
FROM unnest(%s::bigint[], %s::bigint[], %s::varchar[], %s::text[], %s::bigint[])
     AS v(id, version, sync_state, sync_error, pushed_version)
WHERE p.id = v.id AND p.version = v.version RETURNING p.id
"""
_MARK_QUEUES = """
UPDATE quota_queue q
SET sync_state = v.sync_state, sync_error = v.sync_error, pushed_version = coalesce(v.pushed_version, q.pushed_version),
    pushed_at = coalesce(v.pushed_at, q.pushed_at), live_state = coalesce(v.live_state, q.live_state),
    tide = coalesce(v.tide, q.tide)
FROM unnest(%s::bigint[], %s::bigint[], %s::varchar[], %s::text[], %s::bigint[], %s::timestamptz[], %s::varchar[],
            %s::jsonb[]) AS v(id, version, sync_state, sync_error, pushed_version, pushed_at, live_state, tide)
WHERE q.id = v.id AND q.version = v.version RETURNING q.id
"""


@dataclass
class Pushed:
    """A row, what its object should be, and what came of it."""

    row: PriorityClass | Queue
    aim: Aim
    effective: Mapping[str, int] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=lambda: Outcome(OutcomeKind.UNREACHABLE))

    @property
    def kind(self) -> str:
        return "Queue" if isinstance(self.row, Queue) else "PriorityClass"

    @property
    def written(self) -> Written:
        """For the last push of the drift page."""
        state = str(self.row.state) if isinstance(self.row, Queue) else ""
        return Written(self.kind, self.row.name, self.aim.manifest, self.row.version, state)


def mark_pushed(cluster: Cluster, batch: Sequence[Pushed]) -> None:
    """Write the outcomes of a batch; a row that was edited meanwhile stays pending."""
    now = timezone.now()
    # What was written, and what is seen to stand as this version wants it for the first time.
    told = [one for one in batch if one.outcome.done]
    note_pushed(
        cluster_id=cluster.pk,
        written=[
            one.written
            for one in told
            if one.outcome.reason != "Unchanged"
            or one.row.pushed_version != one.row.version
            or one.row.sync_state != SyncState.IN_STEP
        ],
    )
    queues, classes = [], []
    for one in batch:
        state, error = _standing(one.outcome)
        if isinstance(one.row, Queue):
            line = _queue_line(one.row, one, state, error, now)
            if line is not None:
                queues.append(line)
        else:
            version = one.row.version if one.outcome.done else None
            if (state, error, version or one.row.pushed_version) != (
                one.row.sync_state, one.row.sync_error, one.row.pushed_version,
            ):  # fmt: skip
                classes.append((one.row.pk, one.row.version, str(state), error, version))
    _run(_MARK_CLASSES, classes)
    marked = _run(_MARK_QUEUES, queues)
    moved = [one.row for one in batch if one.row.pk in marked and isinstance(one.row, Queue)]
    for row in moved[:_ANNOUNCED]:
        live.publish("queues", row.pk, row.version, cluster_id=row.cluster_id)


def mark_away(rows: Sequence[Queue] | Sequence[PriorityClass] | Sequence[Queue | PriorityClass], error: str) -> None:
    """The cluster could not be asked about these: they wait, and say why."""
    pending, text = str(SyncState.PENDING), error[:2000]
    lines = [
        row
        for row in rows
        if (row.sync_state, row.sync_error) != (pending, text) and row.sync_state != SyncState.IN_STEP
    ]
    queues = [row for row in lines if isinstance(row, Queue)]
    classes = [row for row in lines if not isinstance(row, Queue)]
    _run(_MARK_QUEUES, [(row.pk, row.version, pending, text, None, None, None, None) for row in queues])
    _run(_MARK_CLASSES, [(row.pk, row.version, pending, text, None) for row in classes])


def _standing(outcome: Outcome) -> tuple[SyncState, str]:
    if outcome.done:
        return SyncState.IN_STEP, ""
    state = SyncState.PENDING if outcome.kind is OutcomeKind.UNREACHABLE else SyncState.FAILED
    return state, (outcome.message or outcome.reason)[:2000]


def _queue_line(row: Queue, one: Pushed, state: SyncState, error: str, now: dt.datetime) -> tuple[object, ...] | None:
    """The columns to write, None where the row says all that already."""
    if not one.outcome.done:
        same = (row.sync_state, row.sync_error) == (state, error)
        return None if same else (row.pk, row.version, str(state), error, None, None, None, None)
    status = (one.outcome.body or {}).get("status") or {}
    live_state = str(status.get("state") or QueueState.OPEN)
    tide = beyond_base(card_quota_of(row), one.effective)
    known = (row.sync_state, row.sync_error, row.pushed_version, row.live_state, row.tide)
    if one.outcome.reason == "Unchanged" and known == (state, error, row.version, live_state, tide):
        return None
    return row.pk, row.version, str(state), error, row.version, now, live_state, Jsonb(tide)


def _run(statement: str, lines: Sequence[tuple[object, ...]]) -> set[int]:
    if not lines:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(column) for column in zip(*lines, strict=True)])
        return {row[0] for row in cursor.fetchall()}
