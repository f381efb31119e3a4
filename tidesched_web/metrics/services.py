"""What has ended is folded into counters and histograms, which so outlive the rows.

Each row is counted once: a cursor of its cluster has passed it, or it stands among those that had not ended by then. No
row comes late behind the cursor: one thread, that of the holder of the cluster's lease, writes sessions, reclaims and
timelines of a cluster one transaction after the other, and a new holder waits for the last one of the old.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from django.db import connection, transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from tidesched_web.clusters.models import Cluster, Counted
from tidesched_web.clusters.services import count
from tidesched_web.engine.cards import first_of
from tidesched_web.metrics.families import Key, observe
from tidesched_web.metrics.models import Cursor
from tidesched_web.scheduling.drawn_history_services import DRAWN
from tidesched_web.scheduling.models import Reclaim, ReclaimMaker, ReclaimSource, ReclaimState, Session, SessionState
from tidesched_web.scheduling.pipeline.observed_rows import TOGETHER
from tidesched_web.workloads.models import GangEvent

# Sets of labels of one metric. What comes beyond is counted under `other`, by card type alone.
MOST_SETS: Final = 2000
OTHER: Final = "other"
NO_CARD: Final = "none"
# Rows of one table and cluster in one round.
CHUNK: Final = 10_000
_UNDER_WAY = (ReclaimState.DECIDED, ReclaimState.EVICTING)
_ALONE = "SELECT pg_try_advisory_xact_lock(hashtext('tidesched.metrics'))"


def fold() -> None:
    """Count what has ended since the last time. Where another process is at it, it alone counts."""
    with transaction.atomic(), connection.cursor() as database:
        if not database.execute(_ALONE).fetchone()[0]:
            return
        # Before the sessions are read: see `_gangs`.
        newest = GangEvent.objects.aggregate(last=Max("pk"))["last"] or 0
        known = {cursor.cluster_id: cursor for cursor in Cursor.objects.all()}
        for cluster_id in Cluster.objects.order_by("pk").values_list("pk", flat=True):
            cursor, figures = known.get(cluster_id) or Cursor(cluster_id=cluster_id), dict[Key, float]()
            before = [*vars(cursor).values()]
            idle = _sessions(cursor, figures)
            _reclaims(cursor, figures)
            _gangs(cursor, figures, newest, idle=idle)
            if before != [*vars(cursor).values()]:
                cursor.save()
            count(cluster_id, figures)


def _sessions(cursor: Cursor, figures: dict[Key, float]) -> bool:
    """Whether none was under way."""
    rows = _new(Session.objects.exclude(engine_version=DRAWN), cursor, cursor.session, cursor.open_sessions)
    last = max([cursor.session, *(row.pk for row in rows)])
    still = []
    for row in rows:
        # One that sends nothing has its time before it is recorded; without figures it is still on its way, or broke.
        if row.finished_at and (row.counts or row.state == SessionState.FAILED or row.pk < last):
            observe(figures, ("tidesched_sessions_total", str(row.state)), 1)
            seconds = (row.finished_at - row.started_at).total_seconds()
            observe(figures, ("tidesched_session_seconds", str(row.state)), max(0.0, seconds))
        else:
            still.append(row.pk)
    cursor.session, cursor.open_sessions = last, still
    return len(rows) < CHUNK and last not in still


def _new(rows: QuerySet[Any], cursor: Cursor, after: int, still: list[int]) -> list[Any]:
    return list(rows.filter(Q(pk__gt=after) | Q(pk__in=still), cluster=cursor.cluster_id).order_by("pk")[:CHUNK])


def _reclaims(cursor: Cursor, figures: dict[Key, float]) -> None:
    """Others' evictions that follow soon after one are written into its row, so it is left open as long."""
    reclaims = Reclaim.objects.exclude(made_by=ReclaimMaker.DRAWN).prefetch_related("victims").defer("receipt", "votes")
    rows = _new(reclaims, cursor, cursor.reclaim, cursor.open_reclaims)
    edge, still, ended = timezone.now() - 2 * TOGETHER, [], []
    for row in rows:
        if row.state in _UNDER_WAY or (row.source == ReclaimSource.OBSERVED and row.wall_at > edge):
            still.append(row.pk)
        elif row.state != ReclaimState.CANCELLED:
            ended.append(row)
    cursor.reclaim, cursor.open_reclaims = max([cursor.reclaim, *(row.pk for row in rows)]), still
    known = Counted.objects.filter(key__0="tidesched_reclaims_total").values_list("cluster_id", "key")
    sets = {(cluster_id, *key[1:]) for cluster_id, key in known} if ended else set()
    for row in ended:
        _count_reclaim(row, sets, figures)


def _count_reclaim(row: Reclaim, sets: set[tuple[Any, ...]], figures: dict[Key, float]) -> None:
    moved = set()
    for victim in row.victims.all():
        cards: Mapping[str, float] = victim.cards or {NO_CARD: 0.0}
        whole = sum(cards.values())
        for card, number in cards.items():
            labels = (victim.queue_name, row.queue_name, card)
            if len(sets) >= MOST_SETS and (row.cluster_id, *labels) not in sets:
                labels = (OTHER, OTHER, card)
            sets.add((row.cluster_id, *labels))
            moved.add(labels)
            work = victim.work_lost_card_seconds * (number / whole if whole else 1.0)
            observe(figures, ("tidesched_reclaimed_cards_total", *labels), number)
            observe(figures, ("tidesched_work_lost_card_seconds_total", *labels), work)
    for labels in moved:
        observe(figures, ("tidesched_reclaims_total", *labels), 1)


# Of each metric: the kinds of points that are looked at, those among them that its time begins with, and those that
# it ends with. It is counted where the last one before its end is such a beginning.
_WAIT = ["submitted", "reclaimed"]
_PROMISE = ["admitted", "promised", "bound", "running"]
_TIMES: Final = (
    ("tidesched_time_to_promise_seconds", [*_WAIT, *_PROMISE], _WAIT, _PROMISE),
    ("tidesched_time_to_running_seconds", [*_WAIT, "running"], _WAIT, ["running"]),
    ("tidesched_run_seconds", ["running", "reclaimed", "finished", "failed"], ["running"], ["finished"]),
)
_NEWS = """
SELECT max(id), count(*) FROM (
    SELECT e.id FROM workloads_gangevent e JOIN workloads_gang g ON g.id = e.gang_id
    WHERE e.id > %(after)s AND e.id <= %(newest)s AND g.cluster_id = %(cluster)s ORDER BY e.id LIMIT %(chunk)s
) news
"""
# A gang that was made anew begins with the points of its life before, up to that of its restart: they were counted.
_ENDED = """
SELECT g.service_type, g.cards, greatest(0, extract(epoch FROM e.at - before.at))::float8
FROM workloads_gangevent e JOIN workloads_gang g ON g.id = e.gang_id
CROSS JOIN LATERAL (
    SELECT b.kind, b.at FROM workloads_gangevent b
    WHERE b.gang_id = e.gang_id AND b.id < e.id AND b.kind = ANY(%(seen)s) ORDER BY b.id DESC LIMIT 1
) before
WHERE e.id > %(after)s AND e.id <= %(last)s AND g.cluster_id = %(cluster)s AND e.kind = ANY(%(ends)s)
  AND before.kind = ANY(%(begins)s)
  AND NOT EXISTS (SELECT FROM workloads_gangevent r WHERE r.gang_id = e.gang_id AND r.session_id = e.session_id
                  AND r.id > e.id AND r.kind = 'restarted')
"""


def _gangs(cursor: Cursor, figures: dict[Key, float], newest: int, *, idle: bool) -> None:
    """``newest``: the last point of all clusters before the sessions were read. Where none was under way then, all
    points of this cluster up to it are there, and the cursor may pass those of the others."""
    asked: dict[str, Any] = {"after": cursor.event, "newest": newest, "cluster": cursor.cluster_id, "chunk": CHUNK}
    with connection.cursor() as database:
        last, number = database.execute(_NEWS, asked).fetchone()
        for name, seen, begins, ends in _TIMES if number else ():
            asked |= {"last": last, "seen": seen, "begins": begins, "ends": ends}
            for service_type, cards, seconds in database.execute(_ENDED, asked).fetchall():
                observe(figures, (name, service_type, _most_asked(orjson.loads(cards))), seconds)
    cursor.event = max(cursor.event, newest if idle and number < CHUNK else last or 0)


def _most_asked(cards: Mapping[str, float]) -> str:
    return first_of(min(cards, key=lambda name: (-cards[name], name))) if cards else NO_CARD
