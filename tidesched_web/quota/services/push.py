"""Push intent to the cluster: Queue and PriorityClass objects, by server-side apply.

No transaction is open while the cluster is asked. The answer is written only where the row is still of the version
that was pushed; a newer one stays pending and goes with the next push.

What a queue is told is its **effective** quota: the base as people set it, with the layers of the tide plans that are
open now. It is worked out anew at each push from the clock alone, so a tick that was missed is made good by the next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from django.db.models import Q
from django.utils import timezone

from tidesched_web.clusters.connection_selectors import reached_clusters
from tidesched_web.clusters.kubernetes import manifests
from tidesched_web.clusters.kubernetes.client import KubernetesClient
from tidesched_web.clusters.kubernetes.outcomes import Outcome, OutcomeKind
from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.clusters.models import Cluster, ClusterMode
from tidesched_web.common import live
from tidesched_web.quota.models import PriorityClass, Queue, QueueState, SyncState
from tidesched_web.quota.selectors import card_quota_of, queue_grants, with_card_quota
from tidesched_web.quota.tide_selectors import beyond_base, clusters_with_tide, effective_now, tide_due

# Closed as far as people are concerned, and not yet empty: looked at again until it is.
DRAINS = Q(state=QueueState.CLOSED, live_state=QueueState.CLOSING)


@dataclass
class PushReport:
    """What came of a push. ``unreachable`` holds the failure that ended it early; the rest stays pending."""

    pushed: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    unreachable: str = ""


def push_cluster(
    *,
    cluster: Cluster,
    everything: bool = False,
    queues_named: Collection[str] | None = None,
    classes_named: Collection[str] | None = None,
) -> PushReport:
    """Push what is not in step, or all of it: applying an object that is as it should be changes nothing.

    With names, nothing but those is looked at.
    """
    report = PushReport()
    if cluster.mode == ClusterMode.OBSERVE or cluster.disconnected_at is not None:
        return report
    client = KubernetesClient.for_cluster(cluster)
    try:
        writes = ClusterWrites(client)
        classes = PriorityClass.objects.filter(cluster=cluster).order_by("name")
        queues = (
            with_card_quota(Queue.objects.filter(cluster=cluster))
            .select_related("tenant", "project", "business_line")
            .annotate(granted=queue_grants())
        )
        if not everything:
            classes = classes.exclude(sync_state=SyncState.IN_STEP)
            queues = queues.filter(~Q(sync_state=SyncState.IN_STEP) | Q(pk__in=tide_due(cluster)) | DRAINS)
        if queues_named is not None or classes_named is not None:
            classes = classes.filter(name__in=classes_named or ())
            queues = queues.filter(name__in=queues_named or ())
        for priority_class in classes:
            if not _push_class(writes, priority_class, report):
                return report
        waiting = list(queues.order_by("name"))
        effective = effective_now(cluster, waiting)
        for queue in waiting:
            if not _push_queue(writes, queue, effective[queue.pk], report):
                return report
    finally:
        client.close()
    return report


def push_pending() -> dict[str, PushReport]:
    """Push what waits in every cluster that takes pushes; the reports by the cluster's slug."""
    queues = Queue.objects.filter(Q(sync_state=SyncState.PENDING) | DRAINS).values("cluster_id")
    classes = PriorityClass.objects.filter(sync_state=SyncState.PENDING).values("cluster_id")
    clusters = reached_clusters().exclude(mode=ClusterMode.OBSERVE).order_by("slug")
    waiting = set(clusters.filter(Q(pk__in=queues) | Q(pk__in=classes)))
    turned = {cluster for cluster in clusters.filter(pk__in=clusters_with_tide()) if tide_due(cluster)}
    return {cluster.slug: push_cluster(cluster=cluster) for cluster in clusters if cluster in waiting | turned}


def queue_manifest(queue: Queue, card_quota: Mapping[str, int] | None = None) -> dict[str, object]:
    """What a queue becomes in its cluster; ``queue`` has ``with_card_quota`` and ``granted``.

    ``card_quota``: what the tide plans make of its own one.
    """
    return manifests.queue(
        queue.name,
        service_type=queue.service_type,
        weight=queue.weight,
        priority=queue.priority,
        reclaimable=queue.reclaimable,
        card_quota=card_quota_of(queue) if card_quota is None else card_quota,
        cpu_milli=queue.cpu_milli,
        memory_mib=queue.memory_mib,
        parent=queue.parent,
        deserved=queue.deserved,
        guarantee=queue.guarantee,
        namespaces=queue.granted,  # type: ignore[attr-defined]
        labels={
            manifests.TENANT: queue.tenant.slug if queue.tenant else "",
            manifests.PROJECT: queue.project.slug if queue.project else "",
            manifests.BUSINESS_LINE: queue.business_line.slug if queue.business_line else "",
        },
    )


def _push_class(writes: ClusterWrites, row: PriorityClass, report: PushReport) -> bool:
    manifest = manifests.priority_class(
        row.name,
        value=row.value,
        global_default=row.global_default,
        preemption_policy=row.preemption_policy,
        description=row.description,
    )
    outcome = writes.apply_priority_class(manifest)
    state = _note(report, f"PriorityClass {row.name}", outcome)
    changes: dict[str, object] = {"sync_state": state, "sync_error": "" if outcome.done else outcome.message}
    if outcome.done:
        changes["pushed_version"] = row.version
    PriorityClass.objects.filter(pk=row.pk, version=row.version).update(**changes)
    return outcome.kind is not OutcomeKind.UNREACHABLE


def _push_queue(writes: ClusterWrites, row: Queue, card_quota: Mapping[str, int], report: PushReport) -> bool:
    outcome = _with_state(writes, row, writes.apply_queue(queue_manifest(row, card_quota)))
    state = _note(report, f"Queue {row.name}", outcome)
    changes: dict[str, object] = {"sync_state": state, "sync_error": "" if outcome.done else outcome.message}
    if outcome.done:
        status = (outcome.body or {}).get("status") or {}
        changes |= {
            "pushed_version": row.version,
            "pushed_at": timezone.now(),
            "live_state": status.get("state") or QueueState.OPEN,
            "tide": beyond_base(card_quota_of(row), card_quota),
        }
    if Queue.objects.filter(pk=row.pk, version=row.version).update(**changes) and state != row.sync_state:
        live.publish("queues", row.pk, row.version, cluster_id=row.cluster_id)
    return outcome.kind is not OutcomeKind.UNREACHABLE


def _with_state(writes: ClusterWrites, row: Queue, applied: Outcome) -> Outcome:
    """Close or open the applied queue where it stands otherwise than it should; a closed one drains first."""
    if not applied.done:
        return applied
    body = applied.body or {}
    status = body.get("status") or {}
    live = status.get("state") or QueueState.OPEN
    drained = not any(status.get(count) for count in ("pending", "inqueue", "running", "unknown"))
    wanted = row.state == QueueState.OPEN
    if wanted and live in (QueueState.CLOSING, QueueState.CLOSED):
        outcome, state = writes.open_queue(row.name), QueueState.OPEN
    elif not wanted and (
        live not in (QueueState.CLOSING, QueueState.CLOSED) or (live == QueueState.CLOSING and drained)
    ):
        outcome = writes.close_queue(row.name, drained=drained)
        state = QueueState.CLOSED if drained else QueueState.CLOSING
    else:
        return applied
    if not outcome.done:
        return outcome
    return replace(applied, body={**body, "status": {**status, "state": state}})


def _note(report: PushReport, what: str, outcome: Outcome) -> SyncState:
    if outcome.done:
        report.pushed += 1
        return SyncState.IN_STEP
    if outcome.kind is OutcomeKind.UNREACHABLE:
        report.unreachable = outcome.message or outcome.reason
        return SyncState.PENDING
    report.refused[what] = f"{outcome.reason}: {outcome.message}"
    return SyncState.FAILED
