import datetime as dt

from django.db import connection

HOUR, DAY = 3600, 86400
# At most so much is rolled up in one round; a long pause is caught up in several.
MOST_STEPS = 48

_NEXT = """
SELECT max(r.at) FROM scheduling_usagerollup r JOIN quota_queue q ON q.id = r.queue_id
WHERE q.cluster_id = %s AND r.step_seconds = %s
"""
_BOUNDS = "SELECT min(at), max(at) FROM scheduling_usagechange WHERE cluster_id = %s"

_HOURS = """
WITH points AS (
    SELECT queue_id, card, at, id, quota, allocated FROM scheduling_usagechange
    WHERE cluster_id = %(cluster)s AND at >= %(lower)s AND at < %(upper)s
    UNION ALL
    (SELECT DISTINCT ON (queue_id, card) queue_id, card, %(lower)s::timestamptz, 0, quota, allocated
     FROM scheduling_usagechange WHERE cluster_id = %(cluster)s AND at < %(lower)s
     ORDER BY queue_id, card, at DESC, id DESC)
), spans AS (
    SELECT *, lead(at, 1, %(upper)s::timestamptz) OVER (PARTITION BY queue_id, card ORDER BY at, id) AS until
    FROM points
), cut AS (
    SELECT s.queue_id, s.card, b.at AS bin, s.quota, s.allocated, s.at,
           extract(epoch FROM least(s.until, b.at + interval '1 hour') - greatest(s.at, b.at)) AS seconds
    FROM spans s
    JOIN generate_series(%(lower)s::timestamptz, %(upper)s::timestamptz - interval '1 hour', interval '1 hour') AS b(at)
      ON s.at < b.at + interval '1 hour' AND s.until > b.at
)
INSERT INTO scheduling_usagerollup (queue_id, card, step_seconds, at, quota, allocated_mean, allocated_max)
SELECT queue_id, card, 3600, bin, (array_agg(quota ORDER BY at DESC))[1],
       sum(allocated * seconds) / nullif(sum(seconds), 0), max(allocated)
FROM cut JOIN quota_queue q ON q.id = queue_id
GROUP BY queue_id, card, bin HAVING sum(seconds) > 0
ON CONFLICT (queue_id, card, step_seconds, at) DO NOTHING
"""
_DAYS = """
INSERT INTO scheduling_usagerollup (queue_id, card, step_seconds, at, quota, allocated_mean, allocated_max)
SELECT r.queue_id, r.card, 86400, date_trunc('day', r.at, 'UTC'), (array_agg(r.quota ORDER BY r.at DESC))[1],
       avg(r.allocated_mean), max(r.allocated_max)
FROM scheduling_usagerollup r JOIN quota_queue q ON q.id = r.queue_id
WHERE q.cluster_id = %(cluster)s AND r.step_seconds = 3600 AND r.at >= %(lower)s AND r.at < %(upper)s
GROUP BY r.queue_id, r.card, date_trunc('day', r.at, 'UTC')
ON CONFLICT (queue_id, card, step_seconds, at) DO NOTHING
"""


def roll_up(cluster_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_BOUNDS, [cluster_id])
        first, last = cursor.fetchone()
        if first is None:
            return 0
        made = 0
        for step, statement in ((HOUR, _HOURS), (DAY, _DAYS)):
            cursor.execute(_NEXT, [cluster_id, step])
            newest = cursor.fetchone()[0]
            lower = newest + dt.timedelta(seconds=step) if newest else _floor(first, step)
            upper = min(_floor(last, step), lower + dt.timedelta(seconds=step * MOST_STEPS))
            if lower < upper:
                cursor.execute(statement, {"cluster": cluster_id, "lower": lower, "upper": upper})
                made += cursor.rowcount
        return made


def _floor(moment: dt.datetime, seconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(int(moment.timestamp()) // seconds * seconds, dt.UTC)
