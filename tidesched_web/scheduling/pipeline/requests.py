import datetime as dt

from django.db import connection

_MOST_BACKOFF_SECONDS = 30.0

_ASK = """
INSERT INTO scheduling_sessionrequest (cluster_id, due_at, asked_by, failures, last_error)
VALUES (%(cluster)s, clock_timestamp(), %(by)s, 0, '')
ON CONFLICT (cluster_id) DO UPDATE
SET due_at = least(scheduling_sessionrequest.due_at, clock_timestamp()), asked_by = EXCLUDED.asked_by
"""
_DUE = """
SELECT extract(epoch FROM due_at - clock_timestamp()), asked_by FROM scheduling_sessionrequest WHERE cluster_id = %s
"""
_DONE = """
INSERT INTO scheduling_sessionrequest (cluster_id, due_at, asked_by, failures, last_error)
VALUES (%(cluster)s, %(from)s + make_interval(secs => %(seconds)s), '', %(failures)s, %(error)s)
ON CONFLICT (cluster_id) DO UPDATE
SET due_at = EXCLUDED.due_at, asked_by = '',
    failures = CASE WHEN EXCLUDED.failures = 0 THEN 0 ELSE scheduling_sessionrequest.failures + 1 END,
    last_error = EXCLUDED.last_error
RETURNING failures
"""
_DUE_CLUSTERS = """
SELECT c.id, coalesce(l.expires_at > clock_timestamp(), false)
FROM clusters_cluster c
LEFT JOIN scheduling_sessionrequest r ON r.cluster_id = c.id
LEFT JOIN scheduling_clusterlease l ON l.cluster_id = c.id
WHERE c.disconnected_at IS NULL
AND (r.due_at IS NULL OR r.due_at <= clock_timestamp() OR l.expires_at IS NULL OR l.expires_at <= clock_timestamp())
ORDER BY c.id
"""


def ask(cluster_id: int, *, by: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_ASK, {"cluster": cluster_id, "by": by[:120]})


def seconds_until_due(cluster_id: int) -> tuple[float, str]:
    with connection.cursor() as cursor:
        cursor.execute(_DUE, [cluster_id])
        row = cursor.fetchone()
    return (float(row[0]), row[1]) if row else (0.0, "")


def done(cluster_id: int, *, started_at: dt.datetime, period: float) -> None:
    _write(cluster_id, started_at, period, 0, "")


def failed(cluster_id: int, *, at: dt.datetime, period: float, error: str) -> tuple[float, int]:
    failures = _write(cluster_id, at, period, 1, error)
    seconds = float(min(_MOST_BACKOFF_SECONDS, max(period, 0.5) * 2.0 ** min(failures - 1, 10)))
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduling_sessionrequest SET due_at = %s + make_interval(secs => %s) WHERE cluster_id = %s",
            [at, seconds, cluster_id],
        )
    return seconds, failures


def due_clusters() -> list[tuple[int, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(_DUE_CLUSTERS)
        return [(int(id_), bool(held)) for id_, held in cursor.fetchall()]


def _write(cluster_id: int, start: dt.datetime, seconds: float, failures: int, error: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            _DONE,
            {"cluster": cluster_id, "from": start, "seconds": seconds, "failures": failures, "error": error[:2000]},
        )
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])
