import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import BooleanField, Case, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Concat, JSONObject

from tidesched_web.common.permissions import Access
from tidesched_web.engine.cards import first_of
from tidesched_web.scheduling.models import Reclaim, ReclaimVictim
from tidesched_web.workloads.models import Gang, GangPod, GangState

# Evictions of so long ago still mark a gang.
MARKED_FOR = dt.timedelta(hours=1)
_MOST_PROMISES = 20


@dataclass(frozen=True, slots=True)
class EvictionMarks:
    times: int
    freed: float = 0
    needed: float = 0
    reclaim: int = 0


def with_evictions(gangs: QuerySet[Gang], access: Access, now: dt.datetime) -> QuerySet[Gang]:
    """How much was needed and freed is only for who sees the reclaimer's queue and those of all that were evicted."""
    own: Value | Case = Value(True)
    if not access.everything:
        mine = Q(reclaim__queue__tenant_id__in=access.tenant_ids)
        foreign = ReclaimVictim.objects.filter(reclaim=OuterRef("reclaim")).exclude(
            queue__tenant_id__in=access.tenant_ids
        )
        own = Case(When(mine & ~Exists(foreign), then=True), default=False, output_field=BooleanField())
    fell = (
        ReclaimVictim.objects.filter(
            gang=Concat(OuterRef("namespace"), Value("/"), OuterRef("name")),
            reclaim__cluster=OuterRef("cluster"),
            reclaim__at__gte=now - MARKED_FOR,
        )
        .exclude(reclaim__state="cancelled")
        .order_by("-pk")
    )
    row = JSONObject(reclaim="reclaim_id", needed="reclaim__needed", freed="reclaim__freed", own=own)
    return gangs.annotate(eviction_rows=ArraySubquery(fell.values(row=row)[:50]))


def marks_of(gang: Gang) -> EvictionMarks | None:
    rows: list[dict[str, Any]] = gang.eviction_rows  # type: ignore[attr-defined]  # annotated by the selector
    for row in rows:
        needed, freed = (_cards(row[name]) for name in ("needed", "freed")) if row["own"] else (0, 0)
        if freed > needed > 0:
            return EvictionMarks(len(rows), freed, needed, row["reclaim"])
    return EvictionMarks(len(rows)) if len(rows) > 1 else None


def marks_of_reclaim(reclaim: Reclaim) -> EvictionMarks | None:
    times = max((row["times"] for row in reclaim.victim_rows), default=0)  # type: ignore[attr-defined]
    needed, freed = _cards(reclaim.needed), _cards(reclaim.freed)
    if freed > needed > 0:
        return EvictionMarks(times, freed, needed, reclaim.pk)
    return EvictionMarks(times) if times > 1 else None


def _cards(amount: Mapping[str, Any] | None) -> float:
    return sum(((amount or {}).get("cards") or {}).values())


@dataclass(frozen=True, slots=True)
class UnusedPromise:
    """Quota of one queue and card that admitted gangs hold without running. Cards as counts, ages by the cluster."""

    queue_id: int
    queue: str
    card: str
    promised: float
    gangs: int
    since: dt.datetime
    oldest: str
    oldest_id: int


def _promised() -> QuerySet[Gang]:
    admitted = Gang.objects.filter(gone_at__isnull=True, state=GangState.ADMITTED, admitted_at__isnull=False)
    return admitted.exclude(reason_code="WaitingForReclaim")


def unused_promises(cluster_id: int, queue_id: int | None = None) -> list[UnusedPromise]:
    rows = _promised().filter(cluster_id=cluster_id, queue__isnull=False)
    if queue_id is not None:
        rows = rows.filter(queue_id=queue_id)
    found: dict[tuple[int, str], UnusedPromise] = {}
    fields = ("pk", "queue_id", "queue_name", "namespace", "name", "cards", "admitted_at")
    for gang, pk, queue, namespace, name, cards, since in rows.order_by("admitted_at", "pk").values_list(*fields):
        for names, count in cards.items():
            card = first_of(names)
            known = found.get((pk, card))
            if known is None:
                found[pk, card] = UnusedPromise(pk, queue, card, count, 1, since, f"{namespace}/{name}", gang)
            else:
                found[pk, card] = replace(known, promised=known.promised + count, gangs=known.gangs + 1)
    return list(found.values())


def kept_from(cluster_id: int, promises: Iterable[UnusedPromise], *, since: dt.datetime) -> dict[tuple[int, str], int]:
    queues = {promise.queue_id for promise in promises}
    if not queues:
        return {}
    waiting = Gang.objects.filter(
        cluster_id=cluster_id, queue_id__in=queues, needs=True, gone_at__isnull=True, reason_code="WaitingForQuota",
        reason_since__lte=since,
    )  # fmt: skip
    found: dict[tuple[int, str], int] = {}
    for queue, resource in waiting.values_list("queue_id", "reason_numbers__resource"):
        for card in (resource or "").split("|"):
            found[queue, card] = found.get((queue, card), 0) + 1
    return found


def with_promises(gangs: QuerySet[Gang]) -> QuerySet[Gang]:
    others = _promised().filter(queue=OuterRef("queue")).exclude(pk=OuterRef("pk")).order_by("admitted_at", "pk")
    row = JSONObject(
        id="pk", namespace="namespace", name="name", queue="queue_name", cards="cards", since="admitted_at"
    )
    return gangs.annotate(promise_rows=ArraySubquery(others.values(row=row)[:_MOST_PROMISES]))


def with_pods(gangs: QuerySet[Gang]) -> QuerySet[Gang]:
    pods = GangPod.objects.filter(gang=OuterRef("pk")).order_by("id")
    row = JSONObject(
        name="name",
        phase="phase",
        leaving="leaving",
        node="node",
        card="card",
        card_milli="card_milli",
        card_indices="card_indices",
        started_at=F("started_at"),
    )
    return gangs.annotate(pod_rows=ArraySubquery(pods.values(row=row)))
