"""Of each step the last point of a queue × card is read, so a picture costs the same however many sessions ran."""

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.models import ServiceType
from tidesched_web.common.permissions import Access
from tidesched_web.common.physical import share_of_board
from tidesched_web.quota.selectors import visible_queues_of

# Where each queue × card stood at the start (step -1), and the last point of each step.
_STEPS = """
SELECT -1, kept.queue_id, kept.card, point.quota, point.allocated
FROM scheduling_queueusage kept
CROSS JOIN LATERAL (
    SELECT quota, allocated FROM scheduling_usagechange
    WHERE queue_id = kept.queue_id AND card = kept.card AND at <= %(start)s ORDER BY at DESC, id DESC LIMIT 1
) point
WHERE kept.queue_id = ANY(%(queues)s) AND (%(card)s = '' OR kept.card = %(card)s)
UNION ALL
SELECT * FROM (
    SELECT DISTINCT ON (1, queue_id, card) ceil(extract(epoch FROM at - %(start)s) / %(step)s)::int - 1, queue_id, card,
           quota, allocated
    FROM scheduling_usagechange
    WHERE queue_id = ANY(%(queues)s) AND at > %(start)s AND at <= %(end)s AND (%(card)s = '' OR card = %(card)s)
    ORDER BY 1, queue_id, card, at DESC, id DESC
) steps
"""


@dataclass(frozen=True, slots=True)
class TenantUse:
    """All queues of a tenant at one moment, in cards. ``quota`` is the one that held then, tide plans included."""

    at: dt.datetime
    quota: float
    inference: float
    training: float

    @property
    def used(self) -> float:
        return self.inference + self.training


def services_of(access: Access, cluster: Cluster, tenant: str) -> dict[int, str]:
    queues = visible_queues_of(cluster, access).filter(tenant__slug=tenant)
    return dict(queues.order_by().values_list("pk", "service_type"))


def tenant_use(
    services: Mapping[int, str], card: str, start: dt.datetime, end: dt.datetime, step: dt.timedelta
) -> Iterator[TenantUse]:
    """Without ``card`` all types in physical cards: a slice counts as the part of a board that it is."""
    if not services:
        return
    standing: dict[tuple[int, str], tuple[int, int]] = {}
    asked: dict[str, Any] = {
        "queues": list(services),
        "card": card,
        "start": start,
        "end": end,
        "step": step.total_seconds(),
    }
    changes: dict[int, list[tuple[int, str, int, int]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_STEPS, asked)
        for place, queue, name, quota, allocated in cursor.fetchall():
            changes.setdefault(place, []).append((queue, name, quota, allocated))
    at, place = start, -1
    while at <= end:
        for queue, name, quota, allocated in changes.get(place, ()):
            standing[queue, name] = quota, allocated
        if standing:
            yield _summed(at, standing, services, physical=not card)
        at, place = at + step, place + 1


def _summed(
    at: dt.datetime, standing: dict[tuple[int, str], tuple[int, int]], services: Mapping[int, str], *, physical: bool
) -> TenantUse:
    held, used = 0.0, dict.fromkeys(ServiceType.values, 0.0)
    for (queue, card), (quota, allocated) in standing.items():
        share = float(share_of_board(card)) / 1000 if physical else 0.001
        held += quota * share
        used[services[queue]] += allocated * share
    inference, training = used[ServiceType.INFERENCE.value], used[ServiceType.TRAINING.value]
    return TenantUse(at, round(held, 6), round(inference, 6), round(training, 6))
