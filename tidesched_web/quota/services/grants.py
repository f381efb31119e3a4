"""Which namespaces may use which queues."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from tidesched_web.common.locking import lock_row
from tidesched_web.common.validation import check_fields
from tidesched_web.quota.models import NamespaceGrant, Queue, QuotaTree, SyncState
from tidesched_web.quota.services.recording import record


@transaction.atomic
def ensure_grant(*, queue: Queue, namespace: str, actor: str, reason: str = "") -> NamespaceGrant:
    """Let the pods of ``namespace`` use ``queue``. With the first grant of a cluster the others have to be said too."""
    check_fields(NamespaceGrant(cluster=queue.cluster, namespace=namespace, queue=queue))
    QuotaTree.objects.get_or_create(cluster=queue.cluster)
    tree = lock_row(QuotaTree, queue.cluster_id)
    grant, created = NamespaceGrant.objects.get_or_create(
        namespace=namespace, queue=queue, defaults={"cluster": queue.cluster}
    )
    if created:
        # The first one of a cluster closes all its other queues too.
        first = not NamespaceGrant.objects.filter(cluster=queue.cluster).exclude(pk=grant.pk).exists()
        told = Queue.objects.filter(cluster=queue.cluster) if first else Queue.objects.filter(pk=queue.pk)
        told.update(version=F("version") + 1, sync_state=SyncState.PENDING)
        tree.version += 1
        tree.save(update_fields=["version"])
        record(
            grant,
            kind="grant",
            verb="create",
            actor=actor,
            label=f"{namespace} → {queue.name}",
            cluster=queue.cluster,
            tenant_ids=[queue.tenant_id],
            reason=reason,
            after={"namespace": namespace, "queue": queue.name},
        )
    return grant
