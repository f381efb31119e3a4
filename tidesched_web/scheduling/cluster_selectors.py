# ruff: noqa: S608  # statements of constants alone
from copy import copy
from dataclasses import dataclass
from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    BooleanField,
    CharField,
    Count,
    DateTimeField,
    Field,
    IntegerField,
    JSONField,
    OuterRef,
    QuerySet,
    Subquery,
    TextField,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from tidesched_web.accounts.models import Tenant
from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.live_memory import memory
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import Drift, DriftState, PriorityClass, Queue
from tidesched_web.scheduling.holds import FOREIGN_CODE, GUARD_CODE
from tidesched_web.scheduling.models import Alert, Session, SessionRequest


def has_sessions(cluster: Cluster) -> bool:
    return Session.objects.filter(cluster=cluster).exists()


def newest_failure(cluster: Cluster) -> str:
    row = SessionRequest.objects.filter(cluster=cluster, failures__gt=0).values_list("last_error", flat=True).first()
    return row or ""


def open_trouble(cluster: Cluster) -> str:
    rows = Alert.objects.filter(cluster=cluster, resolved_at__isnull=True, code__startswith="cluster_")
    return rows.order_by("raised_at").values_list("message", flat=True).first() or ""


@dataclass(frozen=True, slots=True)
class DecidedHere:
    queues: int
    classes: int
    tenants: int


def decided_here(cluster: Cluster) -> DecidedHere:
    return DecidedHere(
        Queue.objects.filter(cluster=cluster).count(),
        PriorityClass.objects.filter(cluster=cluster).count(),
        Tenant.objects.count(),
    )


# So many alerts of a cluster are shown above its overview; the others are counted.
BANNERS: Final = 3
# Whose events say that the frame of a page may have changed.
FRAME_TOPICS: Final = ("alerts", "clusters", "drift", "sessions")
OWN_TOPICS: Final = ("clusters", "drift", "queues")
EVERYTHING: Final = Access(actor="", everything=True)

_OF = 'cluster_id = "clusters_cluster"."id"'
_SESSION = f"SELECT {{}} FROM scheduling_session WHERE {_OF} ORDER BY id DESC LIMIT 1"
_WAITING = "FROM scheduling_alert a WHERE resolved_at IS NULL AND acknowledged_at IS NULL"
# The pages say in words of their own how a cluster is reached and what stops the sending.
_STOPS = f"('{GUARD_CODE}', '{FOREIGN_CODE}')"
_BANNERS = rf"{_WAITING} AND {_OF} AND key NOT LIKE 'reach:%%' AND code NOT IN {_STOPS}"
_POLICY = f"FROM clusters_policyrevision WHERE {_OF} AND valid"

# SQL, since every page asks for all of them: Django takes longer to write them than the database to answer.
_COLUMNS: Final[dict[str, tuple[Field, str]]] = {
    "session_id": (IntegerField(), _SESSION.format("id")),
    "session_number": (IntegerField(), _SESSION.format("number")),
    "session_state": (CharField(), _SESSION.format("state")),
    "session_at": (DateTimeField(), _SESSION.format("started_at")),
    "session_now": (DateTimeField(), _SESSION.format("now")),
    "test_verdict": (
        CharField(),
        f"""SELECT CASE WHEN findings @> '[{{"level": "failed"}}]' THEN 'failed'
            WHEN findings @> '[{{"level": "warning"}}]' THEN 'warning' ELSE 'good' END
        FROM clusters_connectiontest t WHERE t.{_OF} AND finished_at IS NOT NULL AND t.mode = "clusters_cluster"."mode"
            AND NOT (offer AND taken_at IS NULL) ORDER BY id DESC LIMIT 1""",
    ),
    "open_alerts": (IntegerField(), f"SELECT count(*) {_WAITING} AND {_OF}"),
    "lease_until": (DateTimeField(), f"SELECT expires_at FROM scheduling_clusterlease WHERE {_OF} LIMIT 1"),
    "local_zone": (
        TextField(),
        f"""SELECT coalesce(nullif("clusters_cluster"."time_zone", ''), (SELECT time_zone FROM quota_tideplan
            WHERE {_OF} AND enabled ORDER BY position, name LIMIT 1), 'UTC')""",
    ),
    "alert_rows": (
        ArrayField(JSONField()),
        f"""SELECT array(SELECT jsonb_build_object('severity', severity, 'code', code, 'message', message,
            'numbers', numbers) {_BANNERS} ORDER BY raised_at DESC LIMIT {BANNERS})""",
    ),
    "alert_banners": (IntegerField(), f"SELECT count(*) {_BANNERS}"),
    "stop_rows": (
        ArrayField(JSONField()),
        f"""SELECT array(SELECT jsonb_build_object('pk', a.id, 'code', code, 'numbers', numbers, 'raised_at', raised_at,
            'session', (SELECT number FROM scheduling_session s WHERE s.id = a.session_id))
        FROM scheduling_alert a WHERE {_OF} AND code IN {_STOPS} AND resolved_at IS NULL ORDER BY a.id)""",
    ),
    "newest_policy": (
        JSONField(),
        f"""SELECT jsonb_build_object('released_at', released_at, 'created_at', created_at, 'created_by', created_by)
        {_POLICY} ORDER BY number DESC LIMIT 1""",
    ),
}

# Whether all first steps are done: sessions run under a policy that rules, every queue and priority class of the
# cluster is decided on here, and the cluster has taken what was sent and refuses none of it. After two weeks a cluster
# is no longer new: alerts and the page of drift say what it has without a decision here, or refuses.
_SET_UP: Final = f"""SELECT EXISTS (SELECT FROM scheduling_session WHERE {_OF})
    AND EXISTS (SELECT FROM quota_queue WHERE {_OF})
    AND EXISTS (SELECT {_POLICY} AND (released_at IS NOT NULL OR "clusters_cluster"."mode" <> 'schedule'))
    AND ("clusters_cluster"."mode" = 'observe' OR EXISTS (SELECT FROM quota_pushedobject WHERE {_OF}))
    AND ("clusters_cluster"."simulated" OR (
        "clusters_cluster"."created_at" < statement_timestamp() - interval '14 days'
    ) OR (
        EXISTS (SELECT FROM quota_driftlook WHERE {_OF} AND unmanaged = '[]' AND unmanaged_classes = '[]')
        AND NOT EXISTS (SELECT FROM quota_queue WHERE {_OF} AND refusals > 0)
        AND NOT EXISTS (SELECT FROM quota_priorityclass WHERE {_OF} AND refusals > 0)))"""


def clusters_with_sessions(access: Access) -> QuerySet[Cluster]:
    """With all that each page's frame shows, in one query; ``session_at`` is wall time, ``session_now`` not."""
    platform = f"SELECT count(*) {_WAITING} AND cluster_id IS NULL" if access.everything else "SELECT 0"
    columns = {name: _column(sql, field) for name, (field, sql) in _COLUMNS.items()}
    columns["platform_alerts"] = _column(platform, IntegerField())
    return visible_clusters(access).select_related("reach").annotate(**columns, open_drift=_open_drift(access))


def _column(sql: str, field: Field) -> RawSQL:
    return RawSQL(sql, [], output_field=field)  # noqa: S611 - constants of this module


def _open_drift(access: Access) -> Coalesce:
    drifts = Drift.objects.filter(cluster=OuterRef("pk"), state=DriftState.OPEN).order_by()
    if not access.everything:
        drifts = drifts.filter(queue__tenant_id__in=access.tenant_ids)
    return Coalesce(Subquery(drifts.values("cluster").annotate(n=Count("pk")).values("n")), 0)


def clusters_now(access: Access) -> list[Cluster]:
    rows = clusters_with_sessions(access).annotate(set_up=_column(_SET_UP, BooleanField()))
    return list(rows.order_by("name"))


def clusters_of_frame(access: Access) -> list[Cluster]:
    """The same for a page that is only read: readers with one sight share what was read a moment ago."""
    # Each request has objects of its own: a view may write to them.
    if access.everything or not memory.used():
        rights = ("clusters", access.everything, access.tenant_ids)
        return [copy(cluster) for cluster in memory.get(rights, FRAME_TOPICS, lambda: clusters_now(access))]
    own = memory.get(("own clusters", access.tenant_ids), OWN_TOPICS, lambda: _own_clusters(access))
    seen = []
    for cluster in clusters_of_frame(EVERYTHING) if own else []:
        if cluster.pk in own:
            cluster.open_drift, cluster.platform_alerts = own[cluster.pk], 0  # type: ignore[attr-defined]
            seen.append(cluster)
    return seen


def _own_clusters(access: Access) -> dict[int, int]:
    rows = visible_clusters(access).annotate(open_drift=_open_drift(access))
    return dict(rows.order_by().values_list("pk", "open_drift"))
