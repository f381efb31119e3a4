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
    _make(rows, made, queues)
    _end(rows, gone, queues)
    told = Queue.objects.filter(cluster=rows.cluster)
    if _any(rows.before) == _any(rows.after):
        told = told.filter(Q(name__in=names))
    told.update(version=F("version") + 1, sync_state=SyncState.PENDING)


def _make(rows: Rows, keys: list[str], queues: dict[str, Queue]) -> None:
    made = [
        NamespaceGrant(cluster=rows.cluster, namespace=namespace, queue=queues[queue])
        for namespace, queue in map(parts_of, keys)
    ]
    for key, grant in zip(keys, NamespaceGrant.objects.bulk_create(made, batch_size=500), strict=True):
        rows.tell(key, grant)


def _end(rows: Rows, keys: list[str], queues: dict[str, Queue]) -> None:
    if not keys:
        return
    of_queues = NamespaceGrant.objects.filter(cluster=rows.cluster, queue__in=queues.values())
    found = {(grant.namespace, grant.queue_id): grant for grant in of_queues}
    ended = {key: found[namespace, queues[queue].pk] for key in keys for namespace, queue in [parts_of(key)]}
    for key, grant in ended.items():
        rows.tell(key, grant, grant.pk)
    NamespaceGrant.objects.filter(pk__in=[grant.pk for grant in ended.values()]).delete()


def _any(documents: dict[str, dict[str, object]]) -> bool:
    return any(kind_of(key) == "grant" for key in documents)
