"""An alert for quota that is promised to gangs that do not run, while others of the queue wait for that quota."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone

from tidesched_web.clusters.models import Cluster
from tidesched_web.scheduling.gang_selectors import kept_from, unused_promises
from tidesched_web.scheduling.models import AlertSeverity
from tidesched_web.scheduling.pipeline.alerts import keep_open

# A promise that has not been used for so long (by the cluster's clock) is worth a look.
UNUSED_FOR = dt.timedelta(minutes=30)
# Reasons take turns and a gang is admitted for a moment. The alert rises once a gang has waited for the quota for so
# long without a break, and ends once that has not been seen for so long; both by the wall's clock, as it is looked.
RISES_AFTER = dt.timedelta(minutes=3)
ENDS_AFTER = dt.timedelta(minutes=5)


def watch_promises() -> int:
    """Open and close these alerts in all clusters; returns how many are open. Level-triggered, may run twice."""
    return sum(_watch(cluster) for cluster in Cluster.objects.filter(disconnected_at__isnull=True))


def _watch(cluster: Cluster) -> int:
    now = cluster.clock()
    old = [promise for promise in unused_promises(cluster.pk) if now - promise.since >= UNUSED_FOR]
    waiting = kept_from(cluster.pk, old, since=cluster.clock(timezone.now() - RISES_AFTER))
    wanted = {
        f"promise:{promise.queue_id}:{promise.card}": {
            "severity": AlertSeverity.WARNING,
            "code": "promise_unused",
            "message": f"{promise.promised:g} x {promise.card} of queue {promise.queue} are promised and not used.",
            "numbers": {
                "queue": promise.queue,
                "card": promise.card,
                "promised": promise.promised,
                "waiting": waiting[promise.queue_id, promise.card],
                "hours": round((now - promise.since).total_seconds() // 3600),
            },
        }
        for promise in old
        if waiting.get((promise.queue_id, promise.card))
    }
    keep_open(cluster_id=cluster.pk, prefix="promise:", wanted=wanted, outlasts=ENDS_AFTER)
    return len(wanted)
