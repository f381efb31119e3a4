import datetime as dt
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection
from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    FloatField,
    Func,
    IntegerField,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, Concat, JSONObject

from tidesched_web.clusters.models import Cluster
from tidesched_web.clusters.selectors import visible_clusters
from tidesched_web.common.permissions import Access
from tidesched_web.engine.cards import first_of
from tidesched_web.quota.models import Queue
from tidesched_web.quota.selectors import visible_queues, visible_queues_of, with_card_quota
from tidesched_web.scheduling.gang_selectors import MARKED_FOR
from tidesched_web.scheduling.models import (
    Alert,
    Decision,
    QueueUsage,
    Reclaim,
    ReclaimSource,
    ReclaimVictim,
    Session,
    SessionState,
    TidePoint,
    UsageChange,
)
from tidesched_web.scheduling.sight import hide_other_side
from tidesched_web.workloads.models import Gang, GangState
from tidesched_web.workloads.selectors import visible_gangs


def visible_sessions(access: Access) -> QuerySet[Session]:
    return Session.objects.filter(cluster__in=visible_clusters(access)).select_related("cluster", "policy")


def first_unsent(cluster: Cluster, session_id: int | None) -> int | None:
    unsent = (SessionState.DRY_RUN, SessionState.STOPPED)
    ours = Session.objects.filter(cluster=cluster, pk__lte=session_id or 0).order_by("-pk")
    sent = Coalesce(Subquery(ours.exclude(state__in=unsent).values("pk")[:1]), Value(0))
    first = ours.filter(pk__gt=sent).annotate(sent=sent).order_by("pk").values_list("number", "sent").first()
    return first[0] if first and (first[1] or first[0] == 1) else None


def visible_alerts(access: Access) -> QuerySet[Alert]:
    wanted = Q(cluster__in=visible_clusters(access))
    if access.everything:
        wanted |= Q(cluster__isnull=True)
    return Alert.objects.filter(wanted).select_related("cluster")


def open_platform_alerts(access: Access) -> int:
    """How many alerts of the platform itself were not acknowledged; where there is a cluster, its query counts them."""
    if not access.everything:
        return 0
    rows = visible_alerts(access).filter(cluster__isnull=True, resolved_at__isnull=True, acknowledged_at__isnull=True)
    return rows.order_by().count()


def visible_decisions(access: Access, session: Session) -> QuerySet[Decision]:
    decisions = Decision.objects.filter(session_id=session.pk)
    if access.everything:
        return decisions
    own = visible_gangs(access).filter(cluster_id=session.cluster_id)
    return decisions.filter(gang__in=own.values(key=Concat(F("namespace"), Value("/"), F("name"))))


def visible_reclaims(access: Access) -> QuerySet[Reclaim]:
    """Of the other side only the gang's name may be shown: `own_queue_ids` says which queues are the caller's."""
    reclaims = Reclaim.objects.select_related("cluster", "session").prefetch_related(
        Prefetch("victims", queryset=ReclaimVictim.objects.order_by("gang"))
    )
    if access.everything:
        return reclaims
    # The caller's queues as a set of ids, read once: a join for each reclaim costs twice as much.
    own = Queue.objects.filter(tenant_id__in=access.tenant_ids).order_by().values("pk")
    fell = ReclaimVictim.objects.filter(reclaim=OuterRef("pk"), queue_id__in=own)
    return reclaims.filter(Q(queue_id__in=own) | Exists(fell))


def own_queue_ids(access: Access) -> frozenset[int]:
    return frozenset(visible_queues(access).values_list("pk", flat=True))


class TidePointRow(NamedTuple):
    at: dt.datetime
    wall_at: dt.datetime
    card: str
    total: int
    inference: int
    training: int
    borrowed: int
    foreign: int
    idle: int
    waiting: int
    quota: int | None


# The card types of a cluster's tide, one step in the index for each: `DISTINCT` reads every point of months.
CARDS_OF_TIDE = """cards AS (
         (SELECT card FROM scheduling_tidepoint WHERE cluster_id = %(cluster)s ORDER BY card LIMIT 1)
         UNION ALL
         SELECT following.card FROM cards CROSS JOIN LATERAL (
             SELECT card FROM scheduling_tidepoint WHERE cluster_id = %(cluster)s AND card > cards.card
             ORDER BY card LIMIT 1) AS following)"""
_LAST_BEFORE = f"""
WITH RECURSIVE {CARDS_OF_TIDE}
SELECT point.* FROM cards CROSS JOIN LATERAL (
    SELECT {", ".join(f'"{name}"' for name in TidePointRow._fields)} FROM scheduling_tidepoint
    WHERE cluster_id = %(cluster)s AND card = cards.card AND at < %(start)s
    ORDER BY at DESC, id DESC LIMIT 1) AS point
"""  # noqa: S608 - names of columns


def tide_points(cluster: Cluster, start: dt.datetime, card: str = "") -> list[TidePointRow]:
    fields = TidePointRow._fields
    points = TidePoint.objects.filter(cluster=cluster)
    if card:
        points = points.filter(card=card)
        before = list(points.filter(at__lt=start).order_by("-at", "-id").values_list(*fields)[:1])
    else:
        with connection.cursor() as cursor:
            cursor.execute(_LAST_BEFORE, {"cluster": cluster.pk, "start": start})
            before = cursor.fetchall()
    since = points.filter(at__gte=start).order_by("at", "id").values_list(*fields)
    return [TidePointRow(*row) for rows in (before, since) for row in rows]


class TideMoment(NamedTuple):
    at: dt.datetime
    wall_at: dt.datetime


def tide_moments(cluster: Cluster, start: dt.datetime) -> list[TideMoment]:
    moments = TidePoint.objects.filter(cluster=cluster).order_by().values_list("at", "wall_at")
    before = moments.filter(at__lt=start).order_by("-at")[:1]
    return [TideMoment(*row) for row in moments.filter(at__gte=start).union(before)]


def newest_reclaims(access: Access, cluster: Cluster, rows: int) -> list[Reclaim]:
    newest = reclaims_with_victims(access).filter(cluster=cluster).order_by("-id")[:rows]
    return [hide_other_side(reclaim) for reclaim in newest]


def reclaims_with_victims(access: Access) -> QuerySet[Reclaim]:
    """``own``: on which side the caller stands; ``ended`` pods had left by themselves; ``work`` is in card-seconds."""
    own: Value | Case = Value(True)
    if not access.everything:
        mine = Queue.objects.filter(tenant_id__in=access.tenant_ids).order_by().values("pk")
        own = Case(When(queue_id__in=mine, then=True), default=False)
    again = (
        ReclaimVictim.objects.filter(
            gang=OuterRef("gang"),
            reclaim__cluster=OuterRef("reclaim__cluster"),
            reclaim__at__lte=OuterRef("reclaim__at"),
            reclaim__at__gte=OuterRef("reclaim__at") - Value(MARKED_FOR),
        )
        .exclude(reclaim__state="cancelled")
        .order_by()
        .values("gang")
        .annotate(n=Count("pk"))
    )
    victims = ReclaimVictim.objects.filter(reclaim=OuterRef("pk")).order_by("gang")
    row = JSONObject(
        gang="gang",
        queue="queue_name",
        cards="cards",
        work="work_lost_card_seconds",
        own=own,
        times=Coalesce(Subquery(again.values("n")), 0),
        restarting=Func("restarted", function="jsonb_array_length", output_field=IntegerField()),
        ended=Func("ended", function="jsonb_array_length", output_field=IntegerField()),
        pods=Func("pods", function="jsonb_array_length", output_field=IntegerField()),
    )
    return (
        visible_reclaims(access)
        .prefetch_related(None)
        .defer("receipt")
        .annotate(victim_rows=ArraySubquery(victims.values(row=row)), own=own)
    )


def queues_with_usage(access: Access, cluster: Cluster) -> QuerySet[Queue]:
    """``usage_rows`` in milli-cards; ``partly_running`` gangs are among the waiting and the running ones."""
    usage = QueueUsage.objects.filter(queue=OuterRef("pk")).order_by("card")
    gangs = Gang.objects.filter(queue=OuterRef("pk"), gone_at__isnull=True).order_by()
    waits = gangs.filter(needs=True)

    def number_of(rows: QuerySet[Gang]) -> Coalesce:
        return Coalesce(
            Subquery(rows.values("queue").annotate(n=Count("pk")).values("n"), output_field=IntegerField()), 0
        )

    row = JSONObject(card="card", quota="quota", allocated="allocated", inqueue="inqueue", elastic="elastic", at="at")
    numbers = {"resource": "reason_numbers__resource", "requested": "reason_numbers__requested"}
    ask = JSONObject(cards="cards", state="state", **numbers)
    return with_card_quota(visible_queues_of(cluster, access)).annotate(
        usage_rows=ArraySubquery(usage.values(row=row)),
        waiting_gangs=number_of(waits),
        running_gangs=number_of(gangs.filter(state=GangState.RUNNING)),
        partly_running=number_of(waits.filter(state=GangState.RUNNING)),
        waiting_rows=ArraySubquery(waits.values(row=ask)),
    )


def waiting_cards_of(queue: Queue) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in queue.waiting_rows:  # type: ignore[attr-defined]
        cards = row["cards"]
        if row["state"] == GangState.RUNNING:  # it holds cards and wants more: its reason says how many
            asks_cards = row["resource"] not in (None, "cpu", "memory") and row["requested"]
            cards = {row["resource"]: row["requested"]} if asks_cards else {}
        for name, number in cards.items():
            first = first_of(name)
            found[first] = found.get(first, 0) + number
    return found


UsageRow = tuple[dt.datetime, int, int, int, int]


def usage_points(queue: Queue, card: str, start: dt.datetime) -> list[UsageRow]:
    points = UsageChange.objects.filter(queue=queue, card=card)
    fields = ("at", "quota", "allocated", "inqueue", "elastic")
    before = points.filter(at__lt=start).order_by("-at", "-id").values_list(*fields)[:1]
    since = points.filter(at__gte=start).order_by("at", "id").values_list(*fields)[:5000]
    return [*before, *since]


def newest_timings(cluster: Cluster, rows: int) -> list[tuple[int, dict[str, Any]]]:
    newest = Session.objects.filter(cluster=cluster).order_by("-id").values_list("number", "timings_ms")[:rows]
    return list(reversed(newest))


def session_by_number(access: Access, cluster: Cluster, number: int) -> Session | None:
    return visible_sessions(access).filter(cluster=cluster, number=number).first()


def reclaims_of_gang(access: Access, cluster: Cluster, key: str, *, limit: int = 10) -> list[Reclaim]:
    fell = ReclaimVictim.objects.filter(reclaim=OuterRef("pk"), gang=key)
    reclaims = reclaims_with_victims(access).filter(cluster=cluster).filter(Q(reclaimer=key) | Exists(fell))
    return [hide_other_side(reclaim) for reclaim in reclaims.order_by("-id")[:limit]]


def decisions_of_reclaim(reclaim: Reclaim, *, limit: int = 200) -> list[Decision]:
    """The evictions that a reclaim led to, with what came of each. Bounded by its session, so one partition is read."""
    decisions = Decision.objects.filter(session_id=reclaim.session_id, reclaim_id=reclaim.pk)
    return list(decisions.order_by("id")[:limit])


def session_to_replay(session_id: int) -> Session | None:
    return Session.objects.select_related("policy", "cluster").filter(pk=session_id).first()


def session_reclaims(access: Access, session: Session, *, limit: int = 50) -> list[Reclaim]:
    reclaims = reclaims_with_victims(access).filter(session_id=session.pk).order_by("id")[:limit]
    return [hide_other_side(reclaim) for reclaim in reclaims]


@dataclass(frozen=True)
class OthersAndOwn:
    reclaims: int
    compared: int
    gangs: int
    work: float
    own_gangs: int
    own_work: float


def others_and_own(cluster: Cluster, hours: float = 24.0) -> OthersAndOwn | None:
    """The sums of a day; both sides only over what can be compared. None where no other evicted. One query."""
    since = cluster.clock() - dt.timedelta(hours=hours)
    fell = ReclaimVictim.objects.filter(reclaim=OuterRef("pk")).order_by().values("reclaim").annotate(n=Count("pk"))
    rows = Reclaim.objects.filter(cluster=cluster, source=ReclaimSource.OBSERVED, at__gte=since).annotate(
        fell=Coalesce(Subquery(fell.values("n")), 0)
    )
    # A session that had not seen the reclaimer decided on other ground: that is no comparison.
    known = Q(instead__isnull=False) & ~Q(instead__found="unseen")
    own_gangs = Cast(KeyTextTransform("gangs", "instead"), IntegerField())
    own_work = Cast(KeyTextTransform("work_lost_card_seconds", "instead"), FloatField())
    found = rows.aggregate(
        reclaims=Count("pk"),
        compared=Count("pk", filter=known),
        gangs=Coalesce(Sum("fell", filter=known), 0),
        work=Coalesce(Sum("work_lost_card_seconds", filter=known), 0.0),
        own_gangs=Coalesce(Sum(own_gangs, filter=known), 0),
        own_work=Coalesce(Sum(own_work, filter=known), 0.0),
    )
    return OthersAndOwn(**found) if found["reclaims"] else None
