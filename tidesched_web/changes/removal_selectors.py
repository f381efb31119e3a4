from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidesched_web.accounts.models import Project, Tenant
from tidesched_web.changes.tree_document import key_of
from tidesched_web.clusters.models import Cluster
from tidesched_web.quota.dependent_selectors import clusters_with_quota_of, edits_without_quota
from tidesched_web.quota.models import Queue
from tidesched_web.workloads.selectors import live_gangs


@dataclass(frozen=True)
class QueueInUse:
    queue: Queue
    gangs: int


@dataclass(frozen=True)
class ClusterRemoval:
    """``whole``: it deletes the owner too; else the owner is deleted once nothing is left in any cluster."""

    cluster: Cluster
    queues: int
    edits: Mapping[str, Any]
    in_use: list[QueueInUse] = field(default_factory=list)
    whole: bool = True


def removals_of(owner: Tenant | Project) -> list[ClusterRemoval]:
    theirs = {"tenant": owner} if isinstance(owner, Tenant) else {"project": owner}
    queues = list(Queue.objects.filter(**theirs).select_related("cluster").order_by("cluster_id", "name"))
    if not queues:
        return []
    clusters = {queue.cluster_id: queue.cluster for queue in queues}
    clusters |= {cluster.pk: cluster for cluster in clusters_with_quota_of(owner)}
    # Members and tokens of a tenant would not come back with a roll back: it goes by itself, once it has no quota.
    whole = len(clusters) == 1 and isinstance(owner, Project)
    rest = dict.fromkeys(edits_without_quota(owner)) if whole else edits_without_quota(owner)
    found = []
    for pk, cluster in sorted(clusters.items()):
        here = [queue for queue in queues if queue.cluster_id == pk]
        gangs = live_gangs(cluster, [queue.name for queue in here]) if here else {}
        in_use = [QueueInUse(queue, gangs[queue.name]) for queue in here if gangs.get(queue.name)]
        edits = {key_of("queue", queue.name): None for queue in here} | rest
        found.append(ClusterRemoval(cluster, len(here), edits, in_use, whole))
    return found
