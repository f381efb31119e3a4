"""How far a newly connected cluster has come: its first session, its first push, and what keeps it from them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from django.db.models import Case, Exists, OuterRef, Q, When
from django.db.models.functions import Now

from tidesched_web.accounts.models import Tenant
from tidesched_web.clusters.models import Cluster, ClusterMode, PolicyRevision
from tidesched_web.quota.models import DriftLook, PriorityClass, PushedObject, Queue
from tidesched_web.scheduling.models import Alert, Session, SessionRequest

# So long a cluster is new: what it has without a decision here, or refuses, keeps its first steps on the overview.
# Afterwards alerts and the page of drift say it.
NEW: Final = dt.timedelta(days=14)


def is_set_up() -> Case:
    """For a query of clusters: whether all first steps are done.

    Sessions run under a policy that rules, every queue and priority class of the cluster is decided on here, and the
    cluster has taken what was sent and refuses none of it.
    """
    sends = Q(mode=ClusterMode.SCHEDULE)
    policies = PolicyRevision.objects.filter(cluster=OuterRef("pk"), valid=True)
    pushed = PushedObject.objects.filter(cluster=OuterRef("pk"))
    done = (
        Q(Exists(Session.objects.filter(cluster=OuterRef("pk"))))
        & Q(Exists(Queue.objects.filter(cluster=OuterRef("pk"))))
        & Q(Exists(policies))
        & (~sends | Q(Exists(policies.filter(released_at__isnull=False))))
        & (Q(mode=ClusterMode.OBSERVE) | Q(Exists(pushed)))
        & (Q(simulated=True) | Q(created_at__lt=Now() - NEW) | _all_decided_and_taken())
    )
    return Case(When(done, then=True), default=False)


def _all_decided_and_taken() -> Q:
    own = {"cluster": OuterRef("pk")}
    refused = {**own, "refusals__gt": 0}
    return (
        Q(Exists(DriftLook.objects.filter(**own, unmanaged=[], unmanaged_classes=[])))
        & ~Q(Exists(Queue.objects.filter(**refused)))
        & ~Q(Exists(PriorityClass.objects.filter(**refused)))
    )


def has_sessions(cluster: Cluster) -> bool:
    """Whether a session has ever run for the cluster."""
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
    """How many objects of a cluster are decided on here, and the tenants of the installation."""

    queues: int
    classes: int
    tenants: int


def decided_here(cluster: Cluster) -> DecidedHere:
    return DecidedHere(
        Queue.objects.filter(cluster=cluster).count(),
        PriorityClass.objects.filter(cluster=cluster).count(),
        Tenant.objects.count(),
    )
