"""Healing a priority class whose live value is another: Kubernetes edits none, so it is made anew, where asked."""

from __future__ import annotations

from tidesched_web.clusters.kubernetes.writes import ClusterWrites
from tidesched_web.quota.models import Drift, DriftEnd, DriftState, PriorityClass


def replace_where_asked(writes: ClusterWrites, row: PriorityClass) -> None:
    """Delete the live class where a person asked to push it again and its value is not ours; pods keep what they have.

    What goes wrong here shows in the apply that follows.
    """
    asked = Drift.objects.filter(
        cluster_id=row.cluster_id, kind="PriorityClass", name=row.name, asked=DriftEnd.PUSHED
    ).exclude(state=DriftState.RESOLVED)
    if not asked.exists():
        return
    found = writes.get_priority_class(row.name)
    if found.body is not None and found.body.get("value") != row.value:
        writes.delete_priority_class(row.name, uid=found.body["metadata"]["uid"])
