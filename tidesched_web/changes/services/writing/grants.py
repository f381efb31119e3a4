"""Which namespaces may use which queues."""

from __future__ import annotations

from django.db.models import F, Q

from tidesched_web.changes.services.writing.rows import Rows
from tidesched_web.changes.tree_document import kind_of, parts_of
from tidesched_web.quota.models import NamespaceGrant, Queue, SyncState


def write(rows: Rows) -> None:
    """Make and end grants. With the first and the last one of a cluster every queue has to say it anew."""
    made, gone = [key for key, _document in rows.made("grant")], rows.gone("grant")
    if not made and not gone:
        return
    names = {parts_of(key)[1] for key in (*made, *gone)}
    queues = {queue.name: queue for queue in Queue.objects.filter(cluster=rows.cluster, name__in=names)}
    for key in made:
        namespace, queue = parts_of(key)
        grant = NamespaceGrant(cluster=rows.cluster, namespace=namespace, queue=queues[queue])
        grant.save(force_insert=True)
        rows.tell(key, grant)
    for key in gone:
        namespace, queue = parts_of(key)
        found = NamespaceGrant.objects.get(cluster=rows.cluster, namespace=namespace, queue=queues[queue])
        rows.tell(key, found, found.pk)
        found.delete()
    told = Queue.objects.filter(cluster=rows.cluster)
    if _any(rows.before) == _any(rows.after):
        told = told.filter(Q(name__in=names))
    told.update(version=F("version") + 1, sync_state=SyncState.PENDING)


def _any(documents: dict[str, dict[str, object]]) -> bool:
    return any(kind_of(key) == "grant" for key in documents)
