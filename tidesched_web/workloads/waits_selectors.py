import datetime as dt
from collections.abc import Collection
from typing import Any

from django.db import connection
from django.db.models import OuterRef, Q, Subquery
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
    """The longest wait for one reason first; ``step``: its newest telling step up to the session."""
    steps = GangEvent.objects.filter(gang=OuterRef("pk"), session_id__lte=session_id, kind__in=_TELLING)
    step = JSONObject(kind="kind", at="at", detail="detail")
    there = Q(gone_at__isnull=True) | Q(gone_at__gt=started_at)
    gangs = visible_gangs(access).filter(there, cluster=cluster, submitted_at__lte=now).defer("manifest")
    newest: Any = gangs.annotate(step=Subquery(steps.order_by("-id").values(row=step)[:1]))
    waiting = newest.filter(step__kind=GangEventKind.REASON).order_by("step__at", "id")
    return list(with_own_queue(waiting, access)[:rows])


_BY_CARD = """
SELECT gang.queue_id, card.name, gang.reason_code, count(DISTINCT gang.id)
FROM workloads_gang gang
CROSS JOIN LATERAL jsonb_object_keys(gang.cards) AS asked(names)
CROSS JOIN LATERAL regexp_split_to_table(asked.names, '[|]') AS card(name)
WHERE gang.queue_id = ANY(%s) AND gang.needs AND gang.gone_at IS NULL
GROUP BY 1, 2, 3 ORDER BY 1, 2, 4 DESC, 3
"""


def reasons_by_card(queue_ids: Collection[int]) -> dict[tuple[int, str], dict[str, int]]:
    """A gang that takes one of several card types is counted for each of them."""
    found: dict[tuple[int, str], dict[str, int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_BY_CARD, [sorted(queue_ids)])
        for queue, card, reason, gangs in cursor.fetchall():
            found.setdefault((queue, card), {})[reason] = gangs
    return found
