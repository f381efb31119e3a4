"""Who waited at a moment of the past, and why: read from the steps that sessions wrote down."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.permissions import Access
from tidesched_web.workloads.models import Gang, GangEvent, GangEventKind
from tidesched_web.workloads.selectors import visible_gangs, with_own_queue

# The reason of a wait, and what ends it.
_TELLING = (
    GangEventKind.REASON, GangEventKind.BOUND, GangEventKind.FINISHED, GangEventKind.FAILED, GangEventKind.GONE,
)  # fmt: skip


def waited_then(
    access: Access, cluster: Cluster, *, session_id: int, now: dt.datetime, started_at: dt.datetime, rows: int
) -> list[Gang]:
    """Gangs that the session left waiting, the longest wait for one reason first. One query.

    Each carries ``step`` ``{kind, at, detail}``, its newest telling step up to the session (``now`` on the cluster's
    clock, ``started_at`` wall time), and ``own_queue`` (`selectors.with_own_queue`).
    """
    steps = GangEvent.objects.filter(gang=OuterRef("pk"), session_id__lte=session_id, kind__in=_TELLING)
    step = JSONObject(kind="kind", at="at", detail="detail")
    there = Q(gone_at__isnull=True) | Q(gone_at__gt=started_at)
    gangs = visible_gangs(access).filter(there, cluster=cluster, submitted_at__lte=now).defer("manifest")
    newest = Subquery(steps.order_by("-id").values(row=step)[:1])
    return list(with_own_queue(_left_waiting(gangs.annotate(step=newest)), access)[:rows])


def _left_waiting(gangs: QuerySet[Any]) -> QuerySet[Gang]:
    return gangs.filter(step__kind=GangEventKind.REASON).order_by("step__at", "id")
