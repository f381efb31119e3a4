"""The demo's history before its first moment: drawn from its seed, never measured, with no entry in the audit log."""

import datetime as dt
import math
import random
from collections.abc import Sequence
from typing import Any

import msgspec
from django.conf import settings
from django.db import connection

from tidesched_web.clusters.models import Cluster
from tidesched_web.common import partitions
from tidesched_web.common.locking import require_transaction
from tidesched_web.engine import demo
from tidesched_web.quota.models import CardQuota
from tidesched_web.scheduling.models import Reclaim, ReclaimMaker, ReclaimState, ReclaimVictim, Session, SessionState

DAYS, SMALL_DAYS = 90, 2
# Hours are kept for as long as the demand of an hour of the week is read from, days for all of the time.
ROLLED_UP_HOURS_DAYS = 56
# The newest days have a point each hour, the ones before two a day; the tide of the very newest, which the overview
# shows, has one each ten minutes.
DETAILED_DAYS, TIDE_DAYS = 3, 2
SESSION_MINUTES = TIDE_MINUTES = 10
RECLAIMS_A_DAY = 40
DRAWN = "drawn"
_HOUR = dt.timedelta(hours=1)


class _Line(msgspec.Struct, frozen=True):
    queue: int
    name: str
    kind: str
    card: str
    quota: int
    base: float
    swing: float


def draw(*, cluster: Cluster, hardware: dict[str, int], seed: int, days: int = DAYS) -> None:
    draw_use(cluster=cluster, hardware=hardware, seed=seed, days=days)
    sessions = _sessions(cluster, _hours(cluster, days), seed)
    _reclaims(cluster, _lines(cluster, seed), sessions, days * RECLAIMS_A_DAY, seed)


def draw_use(*, cluster: Cluster, hardware: dict[str, int], seed: int, days: int = SMALL_DAYS) -> None:
    require_transaction()
    assert cluster.clock_anchor is not None
    hours = _hours(cluster, days)
    levels = {hour: demo.tide_level(hour.timestamp(), seed=seed) for hour in hours}
    lines, end = _lines(cluster, seed), hours[-1] + _HOUR
    _make_partitions(cluster, hours[0])
    step = dt.timedelta(minutes=TIDE_MINUTES)
    newest = [cluster.clock_anchor - step * number for number in range(1, 1 + TIDE_DAYS * dt.timedelta(days=1) // step)]
    tide = levels | {at: demo.tide_level(at.timestamp(), seed=seed) for at in newest}
    _roll_up(lines, levels, hours[-24 * ROLLED_UP_HOURS_DAYS :], end)
    _usage(cluster, lines, levels, end)
    _tide(cluster, lines, tide, hardware)


def _hours(cluster: Cluster, days: int) -> list[dt.datetime]:
    assert cluster.clock_anchor is not None
    end = cluster.clock_anchor.replace(minute=0, second=0, microsecond=0)
    return [end - _HOUR * number for number in range(24 * days + end.hour, 0, -1)]


def _lines(cluster: Cluster, seed: int) -> list[_Line]:
    rng = random.Random(f"{seed}/history")
    rows = CardQuota.objects.filter(cluster=cluster, queue__isnull=False).order_by("queue__name", "card_type__name")
    found = []
    for queue, name, kind, card, cards in rows.values_list(
        "queue_id", "queue__name", "queue__service_type", "card_type__name", "cards"
    ):
        # Inference follows the tide; training fills what it leaves.
        serves = kind == "inference"
        base, swing = (rng.uniform(0.1, 0.2), rng.uniform(0.55, 0.65)) if serves else (rng.uniform(0.85, 0.9), -0.6)
        found.append(_Line(queue, name, kind, card, cards * 1000, base, swing))
    return found


def _wall(cluster: Cluster, at: dt.datetime) -> dt.datetime:
    assert cluster.clock_anchor is not None
    assert cluster.clock_wall_anchor is not None
    return cluster.clock_wall_anchor - (cluster.clock_anchor - at) / cluster.clock_rate


def _make_partitions(cluster: Cluster, first: dt.datetime) -> None:
    assert cluster.clock_wall_anchor is not None
    start, hours = _wall(cluster, first), settings.RETENTION_PARTITION_HOURS
    spans = math.ceil((cluster.clock_wall_anchor - start) / dt.timedelta(hours=hours))
    partitions.ensure("scheduling_usagechange", hours=hours, ahead=spans, now=start)


_HOURS = """
INSERT INTO scheduling_usagerollup (queue_id, card, step_seconds, at, quota, allocated_mean, allocated_max)
SELECT k.queue, k.card, 3600, h.at, k.quota,
       k.quota * least(1, greatest(0, k.base + k.swing * h.level)),
       k.quota * least(1, greatest(0, k.base + k.swing * h.level) * 1.1)
FROM unnest(%s::timestamptz[], %s::float[]) AS h(at, level)
CROSS JOIN unnest(%s::bigint[], %s::text[], %s::bigint[], %s::float[], %s::float[])
     AS k(queue, card, quota, base, swing)
ORDER BY h.at
"""
_DAYS = """
INSERT INTO scheduling_usagerollup (queue_id, card, step_seconds, at, quota, allocated_mean, allocated_max)
SELECT k.queue, k.card, 86400, d.at, k.quota,
       k.quota * least(1, greatest(0, k.base + k.swing * d.mean)),
       k.quota * least(1, greatest(0, k.base + k.swing * CASE WHEN k.swing > 0 THEN d.most ELSE d.least END) * 1.1)
FROM (SELECT date_trunc('day', at, 'UTC') AS at, avg(level) AS mean, max(level) AS most, min(level) AS least
      FROM unnest(%s::timestamptz[], %s::float[]) AS h(at, level) GROUP BY 1 HAVING count(*) = 24) AS d
CROSS JOIN unnest(%s::bigint[], %s::text[], %s::bigint[], %s::float[], %s::float[])
     AS k(queue, card, quota, base, swing)
ORDER BY d.at
"""


def _columns(lines: Sequence[_Line]) -> list[list[Any]]:
    return [[getattr(line, name) for line in lines] for name in ("queue", "card", "quota", "base", "swing")]


def _roll_up(
    lines: Sequence[_Line], levels: dict[dt.datetime, float], newest: Sequence[dt.datetime], end: dt.datetime
) -> None:
    whole = {at: level for at, level in levels.items() if at < end.replace(hour=0)}
    with connection.cursor() as cursor:
        for statement, hours in ((_DAYS, list(whole)), (_HOURS, list(newest))):
            cursor.execute(statement, [hours, [levels[at] for at in hours], *_columns(lines)])


_CHANGES = """
INSERT INTO scheduling_usagechange (wall_at, at, cluster_id, queue_id, card, quota, allocated, inqueue, elastic)
SELECT h.wall_at, h.at, %s, k.queue, k.card, k.quota,
       trunc(k.quota * least(1, greatest(0, k.base + k.swing * h.level))), 0, 0
FROM unnest(%s::timestamptz[], %s::timestamptz[], %s::float[]) AS h(wall_at, at, level)
CROSS JOIN unnest(%s::bigint[], %s::text[], %s::bigint[], %s::float[], %s::float[])
     AS k(queue, card, quota, base, swing)
ORDER BY h.at
"""


def _usage(cluster: Cluster, lines: Sequence[_Line], levels: dict[dt.datetime, float], end: dt.datetime) -> None:
    detailed = end - dt.timedelta(days=DETAILED_DAYS)
    moments = [at for at in levels if at >= detailed or at.hour % 12 == 0]
    walls = [_wall(cluster, at) for at in moments]
    with connection.cursor() as cursor:
        cursor.execute(_CHANGES, [cluster.pk, walls, moments, [levels[at] for at in moments], *_columns(lines)])


_TIDE = """
INSERT INTO scheduling_tidepoint
    (cluster_id, at, wall_at, card, total, inference, training, borrowed, "foreign", idle, waiting, quota)
SELECT %s, at, wall_at, card, total, inference, training,
       greatest(0, training - greatest(0, total - quota)), 0, total - inference - training,
       greatest(0, wanted - training), quota
FROM (
    SELECT *, least(total - inference, lent) AS training
    FROM (
        SELECT h.at, h.wall_at, c.card, c.total, sum(k.quota) FILTER (WHERE k.serves) AS quota,
               least(c.total, sum(u.used) FILTER (WHERE k.serves)) AS inference,
               sum(u.used) FILTER (WHERE NOT k.serves) AS lent,
               -- Training that does not fit beside inference waits.
               sum(trunc(k.quota * k.base)::bigint) FILTER (WHERE NOT k.serves) AS wanted
        FROM unnest(%s::timestamptz[], %s::timestamptz[], %s::float[]) AS h(wall_at, at, level)
        CROSS JOIN unnest(%s::text[], %s::bigint[]) AS c(card, total)
        -- A card that no queue may use has one line of nothing for either kind.
        JOIN (
            SELECT * FROM unnest(%s::text[], %s::bigint[], %s::float[], %s::float[], %s::boolean[])
            UNION ALL
            SELECT name, 0, 0, 0, serves FROM unnest(%s::text[]) AS n(name), (VALUES (true), (false)) AS v(serves)
        ) AS k(card, quota, base, swing, serves) USING (card)
        CROSS JOIN LATERAL (
            SELECT trunc(k.quota * least(1, greatest(0, k.base + k.swing * h.level)))::bigint
        ) AS u(used)
        GROUP BY h.at, h.wall_at, c.card, c.total
    ) AS sums
) AS points
ORDER BY at, card
"""


def _tide(cluster: Cluster, lines: Sequence[_Line], levels: dict[dt.datetime, float], hardware: dict[str, int]) -> None:
    moments, cards = list(levels), sorted(hardware)
    walls = [_wall(cluster, at) for at in moments]
    columns = [[getattr(line, name) for line in lines] for name in ("card", "quota", "base", "swing")]
    serves = [line.kind == "inference" for line in lines]
    totals = [hardware[card] * 1000 for card in cards]
    asked: list[Any] = [
        cluster.pk,
        walls,
        moments,
        [levels[at] for at in moments],
        cards,
        totals,
        *columns,
        serves,
        cards,
    ]
    with connection.cursor() as cursor:
        cursor.execute(_TIDE, asked)


def _sessions(cluster: Cluster, hours: Sequence[dt.datetime], seed: int) -> list[Session]:
    rng = random.Random(f"{seed}/sessions")
    made: list[Session] = []
    for hour in hours:
        for minute in range(0, 60, SESSION_MINUTES):
            at = hour + dt.timedelta(minutes=minute)
            wall = _wall(cluster, at)
            counts: dict[str, Any] = {"binds": rng.randrange(1, 40), "evictions": 0}
            made.append(
                Session(
                    cluster=cluster, number=len(made) + 1, epoch=0, state=SessionState.DONE, mode=cluster.mode,
                    trigger=DRAWN, now=at, started_at=wall, decided_at=wall, finished_at=wall, engine_version=DRAWN,
                    result_hash="", counts=counts,
                )
            )  # fmt: skip
    return Session.objects.bulk_create(made, batch_size=2000)


def _reclaims(cluster: Cluster, lines: Sequence[_Line], sessions: Sequence[Session], count: int, seed: int) -> None:
    rng = random.Random(f"{seed}/reclaims")
    serving: dict[str, list[_Line]] = {}
    lent: dict[str, list[_Line]] = {}
    for line in lines:
        (serving if line.kind == "inference" else lent).setdefault(line.card, []).append(line)
    cards = sorted(card for card in serving if card in lent)
    rows: list[Reclaim] = []
    victims: list[ReclaimVictim] = []
    evicted: dict[int, int] = {}
    for session in sorted(rng.choices(sessions, k=count), key=lambda row: row.number):
        card = rng.choice(cards)
        gainer, needed = rng.choice(serving[card]), rng.choice((1, 2, 4, 8))
        row = Reclaim(
            cluster=cluster, session=session, at=session.now, wall_at=session.started_at, made_by=ReclaimMaker.DRAWN,
            action="reclaim", state=ReclaimState.DONE, reclaimer=f"{gainer.name}/serve-{rng.randrange(1, 9):02d}",
            queue_id=gainer.queue, queue_name=gainer.name, needed=_amount(card, needed), freed=_amount(card, needed),
            work_lost_card_seconds=0.0, rule="Drawn history of the demo: no session decided it.",
            promised_at=session.started_at, running_at=session.started_at,
        )  # fmt: skip
        for part in (needed,) if needed == 1 or rng.random() < 0.5 else (needed // 2, needed // 2):
            loser, lost = rng.choice(lent[card]), round(part * rng.uniform(600, 20_000), 1)
            gang = f"{loser.name.removeprefix('train-')}/train-{len(victims):06d}"
            pods = [f"{gang}-worker-{number}" for number in range(part)]
            victims.append(
                ReclaimVictim(
                    reclaim=row, gang=gang, queue_id=loser.queue, queue_name=loser.name, pods=pods, cards={card: part},
                    work_lost_card_seconds=lost,
                )
            )  # fmt: skip
            row.work_lost_card_seconds += lost
        evicted[session.pk] = evicted.get(session.pk, 0) + needed
        rows.append(row)
    Reclaim.objects.bulk_create(rows, batch_size=1000)
    ReclaimVictim.objects.bulk_create(victims, batch_size=2000)
    touched = [session for session in sessions if session.pk in evicted]
    for session in touched:
        session.counts = session.counts | {"evictions": evicted[session.pk]}
    Session.objects.bulk_update(touched, ["counts"], batch_size=1000)


def _amount(card: str, cards: int) -> dict[str, Any]:
    return {"cpu_milli": 8000 * cards, "memory_bytes": 32 * 2**30 * cards, "cards": {card: cards}}
