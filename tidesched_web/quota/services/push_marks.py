import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.services import count
from tidesched_web.common import live
from tidesched_web.quota.drift_fields import compare, fields_of, live_part
from tidesched_web.quota.events import about_queue
from tidesched_web.quota.models import PriorityClass, PushedObject, Queue, QueueState, SyncState, TideAnswer
from tidesched_web.quota.push_selectors import FIRST_RETRY, LAST_RETRY
from tidesched_web.quota.selectors import card_quota_of
from tidesched_web.quota.services import drift
from tidesched_web.quota.services.push_object import OVERTAKEN, Aim
from tidesched_web.quota.services.tide_steps import Turned, note_steps
from tidesched_web.quota.tide_selectors import beyond_base


@dataclass(frozen=True)
class Written:
    """An object that the cluster has taken: what was sent, of which version of the row, in which state it is wanted."""

    kind: str
    name: str
    manifest: Mapping[str, Any]
    version: int
    state: str = ""


def note_pushed(*, cluster_id: int, written: Iterable[Written]) -> None:
    """Keep the fields of what was written, in one statement; called after the cluster's answer."""
    now = timezone.now()
    rows = [
        PushedObject(
            cluster_id=cluster_id,
            kind=one.kind,
            name=one.name,
            fields=fields_of(one.manifest, state=one.state),
            version=one.version,
            pushed_at=now,
        )
        for one in written
    ]
    if rows:
        PushedObject.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=("cluster", "kind", "name"),
            update_fields=("fields", "version", "pushed_at"),
        )


# More than so many at once are not announced one by one: a page that shows them fetches its list again.
_ANNOUNCED = 100

_ANSWERS = {SyncState.IN_STEP: TideAnswer.TAKEN, SyncState.PENDING: TideAnswer.PENDING}

_MARK_CLASSES = """
UPDATE quota_priorityclass p
SET sync_state = v.sync_state, sync_error = v.sync_error,
    refusals = coalesce(v.refusals, p.refusals), retry_at = v.retry_at,
    pushed_version = coalesce(v.pushed_version, p.pushed_version)
FROM unnest(%s::bigint[], %s::bigint[], %s::varchar[], %s::text[], %s::smallint[], %s::timestamptz[], %s::bigint[])
     AS v(id, version, sync_state, sync_error, refusals, retry_at, pushed_version)
WHERE p.id = v.id AND p.version = v.version RETURNING p.id
"""
_MARK_QUEUES = """
UPDATE quota_queue q
SET sync_state = v.sync_state, sync_error = v.sync_error,
    refusals = coalesce(v.refusals, q.refusals), retry_at = v.retry_at,
    pushed_version = coalesce(v.pushed_version, q.pushed_version),
    pushed_at = coalesce(v.pushed_at, q.pushed_at), live_state = coalesce(v.live_state, q.live_state),
    tide = coalesce(v.tide, q.tide)
FROM unnest(%s::bigint[], %s::bigint[], %s::varchar[], %s::text[], %s::smallint[], %s::timestamptz[], %s::bigint[],
            %s::timestamptz[], %s::varchar[], %s::jsonb[])
     AS v(id, version, sync_state, sync_error, refusals, retry_at, pushed_version, pushed_at, live_state, tide)
WHERE q.id = v.id AND q.version = v.version RETURNING q.id
"""


@dataclass
class Pushed:
    row: PriorityClass | Queue
    aim: Aim
    effective: Mapping[str, int] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=lambda: Outcome(OutcomeKind.UNREACHABLE))

    @property
    def kind(self) -> str:
        return "Queue" if isinstance(self.row, Queue) else "PriorityClass"

    @property
    def written(self) -> Written:
        state = str(self.row.state) if isinstance(self.row, Queue) else ""
        return Written(self.kind, self.row.name, self.aim.manifest, self.row.version, state)


def mark_pushed(cluster: Cluster, batch: Sequence[Pushed]) -> None:
    """Write the outcomes of a batch; a row that was edited meanwhile stays pending."""
    now = timezone.now()
    # What was written, and what is seen to stand as this version wants it for the first time.
    told = [
        one
        for one in batch
        if one.outcome.done
        and (
            one.outcome.reason != "Unchanged"
            or one.row.pushed_version != one.row.version
            or one.row.sync_state != SyncState.IN_STEP
        )
    ]
    queues, classes = [], []
    for one in batch:
        standing = _standing(one, now)
        if isinstance(one.row, Queue):
            line = _queue_line(one.row, one, standing, now)
            if line is not None:
                queues.append(line)
        else:
            version = one.row.version if one.outcome.done else None
            if one in told or not standing.same_as(one.row):
                classes.append((one.row.pk, one.row.version, *standing.columns, version))
    with transaction.atomic():
        marked_classes, marked = _run(_MARK_CLASSES, classes), _run(_MARK_QUEUES, queues)
        late = [one for one in told if one.row.pk not in (marked if isinstance(one.row, Queue) else marked_classes)]
        newer = _overtaken(late)
        kept = [one.written for one in told if (one.kind, one.row.pk) not in newer]
        note_pushed(cluster_id=cluster.pk, written=kept)
        note_steps(cluster, [_turned(one.row, one, now) for one in batch if isinstance(one.row, Queue)])
        count_pushes(cluster, Counter(_result(one.outcome) for one in batch if one.outcome.reason != OVERTAKEN))
    _compare_answers(cluster, [one for one in told if (one.kind, one.row.pk) not in newer])
    moved = [one.row for one in batch if one.row.pk in marked and isinstance(one.row, Queue)]
    for row in moved[:_ANNOUNCED]:
        live.publish("queues", row.pk, row.version, cluster_id=row.cluster_id, about=about_queue(row, "push"))


def _result(outcome: Outcome) -> str:
    if outcome.done:
        return "unchanged" if outcome.reason == "Unchanged" else "written"
    return "unreachable" if outcome.kind is OutcomeKind.UNREACHABLE else "refused"


def count_pushes(cluster: Cluster, numbers: Mapping[str, int]) -> None:
    count(cluster.pk, {("tidesched_push_total", result): number for result, number in numbers.items()})


def _compare_answers(cluster: Cluster, taken: Sequence[Pushed]) -> None:
    """In step is what the cluster says that it has, which a webhook may have made another than what was sent."""
    live = {}
    for one in taken:
        body = one.outcome.body
        if body is not None and compare(fields_of(one.aim.manifest), None, fields_of(live_part(body))):
            live[one.kind, one.row.name] = drift.Live(live_part(body), body["metadata"].get("managedFields") or [])
    if live:
        drift.record(cluster=cluster, seen=drift.compared(cluster, live, live.keys()), live=live)


def _turned(row: Queue, one: Pushed, now: dt.datetime) -> Turned:
    standing = _standing(one, now)
    return Turned(row, one.effective, _ANSWERS.get(standing.state, TideAnswer.REFUSED), standing.error)


def _overtaken(late: Sequence[Pushed]) -> set[tuple[str, int]]:
    """Rows of which a newer version was pushed already, by kind and key; what was written over it is pushed again."""
    found = set()
    for model in (Queue, PriorityClass):
        ours = [one for one in late if isinstance(one.row, model)]
        if not ours:
            continue
        pushed = dict(
            model._base_manager.filter(pk__in=[one.row.pk for one in ours]).values_list("pk", "pushed_version")
        )
        newer = [one for one in ours if pushed.get(one.row.pk, 0) > one.row.version]
        found |= {(one.kind, one.row.pk) for one in newer}
        written = [one.row.pk for one in newer if one.outcome.reason != "Unchanged"]
        if written:
            again = model._base_manager.filter(pk__in=written, sync_state=SyncState.IN_STEP)
            again.update(sync_state=SyncState.PENDING)
    return found


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
    _run(_MARK_QUEUES, [(row.pk, row.version, pending, text, *[None] * 6) for row in queues])
    _run(_MARK_CLASSES, [(row.pk, row.version, pending, text, *[None] * 3) for row in classes])


@dataclass(frozen=True)
class _Standing:
    state: SyncState
    error: str
    refusals: int | None
    retry_at: dt.datetime | None

    @property
    def columns(self) -> tuple[str, str, int | None, dt.datetime | None]:
        return str(self.state), self.error, self.refusals, self.retry_at

    def same_as(self, row: PriorityClass | Queue) -> bool:
        """Whether the row says that already; one that was refused once more does not."""
        known = (row.sync_state, row.sync_error, row.retry_at)
        return known == (self.state, self.error, self.retry_at) and self.refusals in (None, row.refusals)


def _standing(one: Pushed, now: dt.datetime) -> _Standing:
    outcome = one.outcome
    if outcome.done:
        return _Standing(SyncState.IN_STEP, "", 0, None)
    error = (outcome.message or outcome.reason)[:2000]
    if outcome.kind is OutcomeKind.UNREACHABLE or outcome.reason == OVERTAKEN:
        return _Standing(SyncState.PENDING, error, None, None)
    times = min(one.row.refusals + 1, 20)
    return _Standing(SyncState.FAILED, error, times, now + min(FIRST_RETRY * 2 ** (times - 1), LAST_RETRY))


def _queue_line(row: Queue, one: Pushed, standing: _Standing, now: dt.datetime) -> tuple[object, ...] | None:
    head = (row.pk, row.version, *standing.columns)
    if not one.outcome.done:
        return None if standing.same_as(row) else (*head, None, None, None, None)
    status = (one.outcome.body or {}).get("status") or {}
    live_state = str(status.get("state") or QueueState.OPEN)
    tide = beyond_base(card_quota_of(row), one.effective)
    known = (row.pushed_version, row.live_state, row.tide) == (row.version, live_state, tide)
    if one.outcome.reason == "Unchanged" and known and standing.same_as(row):
        return None
    return *head, row.version, now, live_state, Jsonb(tide)


def _run(statement: str, lines: Sequence[tuple[object, ...]]) -> set[int]:
    if not lines:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(column) for column in zip(*lines, strict=True)])
        return {row[0] for row in cursor.fetchall()}
