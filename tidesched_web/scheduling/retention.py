"""Safe to run at any time and twice at once: every step deletes what is beyond a limit and nothing else."""

import datetime as dt
import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection, transaction

from tidesched_web.clusters.models import Cluster
from tidesched_web.common import partitions
from tidesched_web.quota.services.tide_steps import delete_old_steps
from tidesched_web.scheduling.models import Alert, Reclaim, ReclaimVictim
from tidesched_web.scheduling.pipeline import audit_alerts, inputs
from tidesched_web.scheduling.rollups import roll_up
from tidesched_web.workloads import services as workloads

_log = logging.getLogger(__name__)

PARTITIONED = {
    "scheduling_decision": ("at", "RETENTION_DECISION_BYTES"),
    "scheduling_usagechange": ("wall_at", "RETENTION_USAGE_BYTES"),
}
# Audit entries go only after their segment was sealed and exported: their partitions are made here, not dropped.
MADE_ONLY = ("audit_auditentry",)
# The one of now, the one before, and those that were made ahead.
KEPT_PARTITIONS = 4
CHUNK = 2000


def ensure_partitions() -> list[str]:
    made = []
    for table in (*PARTITIONED, *MADE_ONLY):
        made += partitions.ensure(table, hours=settings.RETENTION_PARTITION_HOURS)
    return made


def run() -> dict[str, int]:
    """One round over everything; returns what was deleted, by step. A step that fails does not keep others from it."""
    done: dict[str, int] = {}
    _step(done, "partitions_made", lambda: len(ensure_partitions()))
    for cluster in Cluster.objects.order_by("pk"):
        _step(done, "rolled_up", lambda: roll_up(cluster.pk))  # noqa: B023 - called at once
        for name, function in _CLUSTER_STEPS.items():
            _step(done, name, lambda: transaction.atomic(function)(cluster))  # noqa: B023 - called at once
    _step(done, "chains_broken", audit_alerts.look)
    _step(done, "platform_alerts", lambda: _delete_alerts(None))
    for table, (column, setting) in PARTITIONED.items():
        _step(done, f"dropped_{table}", lambda: _drop(table, column, getattr(settings, setting)))  # noqa: B023
    return done


def _step(done: dict[str, int], name: str, function: Callable[[], int]) -> None:
    try:
        done[name] = done.get(name, 0) + function()
    except DatabaseError as error:
        _log.warning("retention: %s: %s", name, str(error).strip().split("\n")[0])
        connection.close()


def _drop(table: str, column: str, keep_bytes: int) -> int:
    dropped = partitions.drop_oldest(table, keep_bytes=keep_bytes, keep_partitions=KEPT_PARTITIONS)
    present = partitions.names(table)
    if dropped and present:
        oldest = dt.datetime.strptime(present[0][-10:], "%Y%m%d%H").replace(tzinfo=dt.UTC)
        with connection.cursor() as cursor:
            cursor.execute(f'DELETE FROM "{table}" WHERE "{column}" < %s', [oldest])  # noqa: S608 - own names
    return len(dropped)


_OLD_SESSIONS = """
WITH ranked AS (
    SELECT s.id, row_number() OVER (ORDER BY s.id DESC) AS place,
           row_number() OVER (PARTITION BY acted ORDER BY s.id DESC) AS place_in_kind, acted
    FROM (SELECT id, coalesce((counts->>'binds')::int, 0) + coalesce((counts->>'evictions')::int, 0) > 0 AS acted
          FROM scheduling_session WHERE cluster_id = %(cluster)s) s
)
SELECT id FROM ranked
WHERE place > %(newest)s AND (NOT acted OR place_in_kind > %(acted)s)
ORDER BY id LIMIT %(chunk)s
"""


def _delete_sessions(cluster: Cluster) -> int:
    """The newest sessions are kept, and of the older ones those that bound or evicted, up to their own number."""
    with connection.cursor() as cursor:
        cursor.execute(
            _OLD_SESSIONS,
            {
                "cluster": cluster.pk,
                "newest": settings.RETENTION_SESSIONS,
                "acted": settings.RETENTION_SESSIONS_WITH_DECISIONS,
                "chunk": CHUNK,
            },
        )
        ids = [row[0] for row in cursor.fetchall()]
        if not ids:
            return 0
        cursor.execute("DELETE FROM scheduling_sessioninput WHERE session_id = ANY(%s) AND base_id IS NOT NULL", [ids])
        # A full input that others still refer to keeps its session alive until they are gone.
        cursor.execute(
            "DELETE FROM scheduling_sessioninput i WHERE session_id = ANY(%s) "
            "AND NOT EXISTS (SELECT 1 FROM scheduling_sessioninput d WHERE d.base_id = i.id)",
            [ids],
        )
        cursor.execute("UPDATE scheduling_sessionmemory SET session_id = NULL WHERE session_id = ANY(%s)", [ids])
        cursor.execute(
            "DELETE FROM scheduling_session s WHERE id = ANY(%s) "
            "AND NOT EXISTS (SELECT 1 FROM scheduling_sessioninput i WHERE i.session_id = s.id)",
            [ids],
        )
        return int(cursor.rowcount)


def _delete_reclaims(cluster: Cluster) -> int:
    """The audit log keeps what was decided; these rows are for the pages."""
    edge = _edge(Reclaim.objects.filter(cluster=cluster), settings.RETENTION_RECLAIMS)
    if edge is None:
        return 0
    old = list(
        Reclaim.objects.filter(cluster=cluster, pk__lte=edge).order_by("id").values_list("pk", flat=True)[:CHUNK]
    )
    ReclaimVictim.objects.filter(reclaim_id__in=old).delete()
    return Reclaim.objects.filter(pk__in=old).delete()[0]


def _edge(rows: Any, keep: int) -> int | None:
    return rows.order_by("-id").values_list("pk", flat=True)[keep : keep + 1].first()


_THIN_TIDE = """
DELETE FROM scheduling_tidepoint t USING (
    SELECT id, row_number() OVER (
        PARTITION BY card, floor(extract(epoch FROM at) / %(bucket)s) ORDER BY at DESC, id DESC) AS place
    FROM scheduling_tidepoint WHERE cluster_id = %(cluster)s AND id < %(edge)s
) old WHERE t.id = old.id AND old.place > 1
"""


def _thin_tide(cluster: Cluster) -> int:
    """Beyond half of the rows one point for each card and ten minutes is enough; beyond all of them none."""
    keep = settings.RETENTION_TIDE_POINTS
    deleted = 0
    with connection.cursor() as cursor:
        for places, thin in ((keep // 2, True), (keep, False)):
            cursor.execute(
                "SELECT id FROM scheduling_tidepoint WHERE cluster_id = %s ORDER BY id DESC OFFSET %s LIMIT 1",
                [cluster.pk, places],
            )
            row = cursor.fetchone()
            if row is None:
                continue
            if thin:
                cursor.execute(_THIN_TIDE, {"cluster": cluster.pk, "edge": row[0], "bucket": 600})
            else:
                cursor.execute(
                    "DELETE FROM scheduling_tidepoint WHERE cluster_id = %s AND id <= %s", [cluster.pk, row[0]]
                )
            deleted += cursor.rowcount
    return deleted


def _delete_rollups(cluster: Cluster) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM scheduling_usagerollup WHERE id <= (SELECT r.id FROM scheduling_usagerollup r "
            "JOIN quota_queue q ON q.id = r.queue_id WHERE q.cluster_id = %s ORDER BY r.id DESC OFFSET %s LIMIT 1) "
            "AND queue_id IN (SELECT id FROM quota_queue WHERE cluster_id = %s)",
            [cluster.pk, settings.RETENTION_ROLLUPS, cluster.pk],
        )
        return int(cursor.rowcount)


def _delete_alerts(cluster: Cluster | None) -> int:
    resolved = Alert.objects.filter(cluster=cluster, resolved_at__isnull=False)
    edge = _edge(resolved, settings.RETENTION_ALERTS)
    return resolved.filter(pk__lte=edge).delete()[0] if edge is not None else 0


_CLUSTER_STEPS: dict[str, Callable[[Cluster], int]] = {
    "inputs": lambda one: inputs.shrink(one.pk, budget=one.input_bytes_budget),
    "sessions": _delete_sessions,
    "reclaims": _delete_reclaims,
    "gangs": lambda one: workloads.delete_gone(cluster_id=one.pk, keep=settings.RETENTION_GONE_GANGS, limit=CHUNK),
    "timelines": lambda one: workloads.trim_timelines(cluster_id=one.pk, keep=settings.RETENTION_TIMELINE_POINTS),
    "tide_points": _thin_tide,
    "tide_steps": lambda one: delete_old_steps(cluster_id=one.pk, keep=settings.RETENTION_TIDE_STEPS, limit=CHUNK),
    "rollups": _delete_rollups,
    "alerts": _delete_alerts,
}
