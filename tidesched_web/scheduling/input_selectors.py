import datetime as dt
from typing import Any

import msgspec
from django.db.models import Q, QuerySet

from tidesched_web.clusters.models import Cluster, PolicyRevision
from tidesched_web.scheduling.models import SessionInput

_FIELDS = (
    "id", "base_id", "session_id", "session__number", "session__now", "session__started_at", "session__policy_id",
)  # fmt: skip
# Sessions that decided something: they took cards back, or else gave or promised a place.
TOOK = Q(session__counts__evictions__gt=0)
PLACED = ~TOOK & (Q(session__counts__binds__gt=0) | Q(session__counts__pipelined__gt=0))


class StoredInput(msgspec.Struct, frozen=True):
    """One stored input without its bytes. ``now`` is the cluster's clock, ``started_at`` wall time."""

    id: int
    base_id: int | None
    session_id: int
    number: int
    now: dt.datetime
    started_at: dt.datetime
    policy_id: int | None


def _usable(cluster_id: int) -> QuerySet[SessionInput, tuple[Any, ...]]:
    rows = SessionInput.objects.filter(cluster_id=cluster_id).exclude(session__result_hash="")
    return rows.values_list(*_FIELDS)


def newest_input(cluster_id: int) -> StoredInput | None:
    row = _usable(cluster_id).order_by("-id").first()
    return StoredInput(*row) if row is not None else None


def input_of_session(cluster_id: int, session_id: int) -> StoredInput | None:
    row = _usable(cluster_id).filter(session_id=session_id).first()
    return StoredInput(*row) if row is not None else None


def inputs_since(cluster_id: int, since: dt.datetime, which: Q | None = None) -> list[StoredInput]:
    rows = _usable(cluster_id).filter(which or Q(), session__now__gte=since)
    return [StoredInput(*row) for row in rows.order_by("id")]


def input_bytes(input_id: int) -> tuple[str, bytes, bytes] | None:
    row = SessionInput.objects.filter(pk=input_id).values_list("format", "payload", "memory").first()
    return (row[0], bytes(row[1]), bytes(row[2])) if row is not None else None


def policy_text(policy_id: int | None) -> str | None:
    if policy_id is None:
        return None
    return PolicyRevision.objects.filter(pk=policy_id).values_list("text", flat=True).first()


def cluster_ids() -> list[int]:
    return list(Cluster.objects.order_by("pk").values_list("pk", flat=True))
