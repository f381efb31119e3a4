"""How far a newly connected cluster has come: its first session, its first push, and what keeps it from them."""

from __future__ import annotations

from dataclasses import dataclass

from tidesched_web.accounts.models import Tenant
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.models import PriorityClass, Queue
from tidesched_web.scheduling.models import Alert, Session, SessionRequest


def has_sessions(cluster: Cluster) -> bool:
    return Session.objects.filter(cluster=cluster).exists()


def newest_failure(cluster: Cluster) -> str:
    """Why the newest attempt at a session failed; empty where it did not."""
    row = SessionRequest.objects.filter(cluster=cluster, failures__gt=0).values_list("last_error", flat=True).first()
    return row or ""


def open_trouble(cluster: Cluster) -> str:
    """What keeps the cluster from being read now, by its open alerts."""
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
