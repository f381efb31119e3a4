import datetime as dt
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from tidesched_web.changes.forecasts import KINDS, Row, within_sight
from tidesched_web.changes.models import ChangeForecast, ChangeState, ForecastState, QuotaChange
from tidesched_web.changes.reach import Written, reach_of
from tidesched_web.changes.selectors import visible_changes
from tidesched_web.changes.tree_document import key_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.common.permissions import Access
from tidesched_web.quota.models import Queue
from tidesched_web.quota.selectors import visible_queues
from tidesched_web.scheduling.models import Session, SessionState
from tidesched_web.workloads.models import Gang, GangEvent

# The record of a cluster is that of its last so many changes with an expectation that was decided.
RECORD_OF = 20
# A change that has been in the cluster for longer without being followed is not followed any more.
FOLLOWED_WITHIN = dt.timedelta(hours=1)
# So many changes after the oldest one that is followed are looked at, the first ones.
MOST_WRITTEN = 200


@dataclass(frozen=True, slots=True)
class Record:
    changes: int
    kinds: dict[str, tuple[int, int]]

    @property
    def expected(self) -> int:
        return sum(expected for expected, _held in self.kinds.values())

    @property
    def held(self) -> int:
        return sum(held for _expected, held in self.kinds.values())


def record_of(access: Access, cluster: Cluster) -> Record:
    rows = ChangeForecast.objects.filter(cluster=cluster, state=ForecastState.DONE, counted=True).exclude(counts={})
    if not access.everything:
        rows = rows.filter(change__in=visible_changes(access).filter(cluster=cluster))
    counts = list(rows.order_by("-change").values_list("counts", flat=True)[:RECORD_OF])
    kinds = {}
    for kind in KINDS:
        found = [count[kind] for count in counts if kind in count]
        if found:
            kinds[kind] = (sum(expected for expected, _ in found), sum(held for _, held in found))
    return Record(len(counts), kinds)


@dataclass(frozen=True, slots=True)
class ShownForecast:
    forecast: ChangeForecast
    rows: list[Row]
    hidden: int


def forecast_of(change: QuotaChange, access: Access) -> ShownForecast | None:
    found = ChangeForecast.objects.filter(change=change).exclude(state=ForecastState.VOID).first()
    if found is None:
        return None
    queues: set[str] | None = None
    if not access.everything:
        queues = set(visible_queues(access).filter(cluster_id=change.cluster_id).values_list("name", flat=True))
    return ShownForecast(found, *within_sight(found.rows, queues))


# -- following ---------------------------------------------------------------------------------------------------------


def changes_to_follow(now: dt.datetime) -> list[QuotaChange]:
    applied = QuotaChange.objects.filter(state=ChangeState.APPLIED, applied_at__gte=now - FOLLOWED_WITHIN)
    return list(applied.filter(forecast__isnull=True).order_by("pk")[:50])


def open_forecasts() -> list[ChangeForecast]:
    rows = ChangeForecast.objects.filter(state=ForecastState.FOLLOWING).select_related("change")
    return list(rows.order_by("change")[:100])


def newest_session(cluster_id: int) -> Session | None:
    return Session.objects.filter(cluster_id=cluster_id, state=SessionState.DONE).order_by("-number").first()


def newest_gangs(cluster_id: int, keys: Collection[str]) -> dict[str, Gang]:
    parts = [key.partition("/") for key in keys]
    rows = Gang.objects.filter(
        cluster_id=cluster_id,
        namespace__in={namespace for namespace, _, _ in parts},
        name__in={name for _, _, name in parts},
    ).defer("manifest")
    found: dict[str, Gang] = {}
    for gang in rows.order_by("submitted_at", "pk"):
        if gang.key in keys:
            found[gang.key] = gang
    return found


def points_since(cluster_id: int, keys: Collection[str], since: dt.datetime) -> dict[str, list[dict[str, Any]]]:
    parts = [key.partition("/") for key in keys]
    rows = GangEvent.objects.filter(
        gang__cluster_id=cluster_id,
        gang__namespace__in={namespace for namespace, _, _ in parts},
        gang__name__in={name for _, _, name in parts},
        wall_at__gte=since,
    )
    found: dict[str, list[dict[str, Any]]] = {}
    fields = ("gang__namespace", "gang__name", "kind", "session_id", "wall_at")
    for namespace, name, kind, session, at in rows.order_by("pk").values_list(*fields):
        found.setdefault(f"{namespace}/{name}", []).append({"kind": kind, "session": session, "at": at})
    return {key: found[key] for key in keys if key in found}


def session_numbers(ids: Iterable[int]) -> dict[int, int]:
    return dict(Session.objects.filter(pk__in=set(ids)).values_list("pk", "number"))


def sessions_after(cluster_id: int, since: dt.datetime, count: int) -> list[dt.datetime]:
    sent = Session.objects.filter(cluster_id=cluster_id, started_at__gte=since, state=SessionState.DONE)
    return list(sent.order_by("started_at").values_list("started_at", flat=True)[:count])


def written_after(cluster_id: int, since: dt.datetime) -> list[Written]:
    later = QuotaChange.objects.filter(cluster_id=cluster_id, committed_at__gt=since).order_by("committed_at", "pk")
    rows = later.values_list("pk", "committed_at", "edits", "base")[:MOST_WRITTEN]
    return [Written(pk, at, reach_of(edits, base)) for pk, at, edits, base in rows if at is not None]


def ceilings_of(cluster_id: int, names: Collection[str]) -> dict[str, set[str]]:
    rows = Queue.objects.filter(cluster_id=cluster_id, name__in=names).values_list(
        "name", "parent", "tenant__slug", "project__tenant__slug", "project__slug",
        "business_line__tenant__slug", "business_line__slug",
    )  # fmt: skip
    found: dict[str, set[str]] = {}
    for name, parent, tenant, of_project, project, of_line, line in rows:
        above = {key_of("tenant", slug) for slug in (tenant, of_project, of_line) if slug}
        if parent:
            above.add(key_of("queue", parent))
        if project:
            above.add(key_of("project", of_project, project))
        if line:
            above.add(key_of("business-line", of_line, line))
        found[name] = above
    return found
