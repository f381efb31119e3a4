"""Celery tasks of the quota context. The work is what the rows say; a task only looks at them, and may run twice."""

from __future__ import annotations

import logging

from celery import shared_task

from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.quota.models import Queue, SyncState
from tidesched_web.quota.services.push import push_cluster

log = logging.getLogger(__name__)


@shared_task(name="quota.push_pending", queue="work", expires=30)
def push_pending() -> int:
    """Push what waits in every cluster that takes pushes; how many objects went."""
    waiting = Queue.objects.filter(sync_state=SyncState.PENDING).values("cluster_id")
    pushed = 0
    for cluster in Cluster.objects.exclude(mode=ClusterMode.OBSERVE).filter(pk__in=waiting):
        report = push_cluster(cluster=cluster)
        pushed += report.pushed
        if report.unreachable:
            log.warning("%s cannot be reached for the push of its queues: %s", cluster.slug, report.unreachable)
        for what, why in report.refused.items():
            log.warning("%s refused %s: %s", cluster.slug, what, why)
    return pushed
