from tidesched_web.accounts.models import BusinessLine, Project
from tidesched_web.changes.documents import CLOSED, MIB
from tidesched_web.changes.services.writing.rows import Rows, counted
from tidesched_web.changes.tree_document import PLATFORM, Document, parts_of
from tidesched_web.quota.models import Queue, QueueState, SyncState

_WRITTEN = (
    "tenant", "project", "business_line", "weight", "priority", "reclaimable", "cpu_milli", "memory_mib", "parent",
    "deserved", "guarantee", "state", "sync_state", "sync_error",
)  # fmt: skip


def write(rows: Rows) -> None:
    changed = dict(rows.changed("queue"))
    moved = {key for key, document in changed.items() if _places(document) != _places(rows.before[key])}
    owners = _Owners(rows, [*(document for _key, document in rows.made("queue")), *(changed[key] for key in moved)])
    made = []
    for key, document in rows.made("queue"):
        queue = Queue(cluster=rows.cluster, name=parts_of(key)[0], service_type=document["service_type"])
        owners.give(queue, document)
        _fill(queue, document)
        rows.row_of[key] = queue
        made.append(queue)
    for queue in Queue.objects.bulk_create(made, batch_size=500):
        rows.tell(f"queue/{queue.name}", queue)
    names = [parts_of(key)[0] for key in changed]
    found = rows.locked(Queue.objects.filter(cluster=rows.cluster, name__in=names)) if names else []
    for queue in found:
        key = f"queue/{queue.name}"
        if key in moved:
            owners.give(queue, changed[key])
        _fill(queue, changed[key])
        queue.sync_state, queue.sync_error = SyncState.PENDING, ""
        rows.row_of[key] = queue
        rows.tell(key, queue)
    counted(found, _WRITTEN)


class _Owners:
    def __init__(self, rows: Rows, documents: list[Document]) -> None:
        self._rows = rows
        places = [(document.get("tenant") or PLATFORM, document) for document in documents]
        self._projects = rows.below(Project, {(tenant, doc["project"]) for tenant, doc in places if "project" in doc})
        lines = {(tenant, doc["business_line"]) for tenant, doc in places if "business_line" in doc}
        self._lines = rows.below(BusinessLine, lines)

    def give(self, queue: Queue, document: Document) -> None:
        tenant, project, line = _places(document)
        queue.tenant = self._rows.tenant(tenant)
        queue.project = self._projects[tenant or PLATFORM, project] if project else None
        queue.business_line = self._lines[tenant or PLATFORM, line] if line else None


def _places(document: Document) -> tuple[str | None, str | None, str | None]:
    return document.get("tenant"), document.get("project"), document.get("business_line")


def _fill(queue: Queue, document: Document) -> None:
    for name in ("weight", "priority", "reclaimable"):
        setattr(queue, name, document[name])
    queue.cpu_milli = document.get("cpu_milli")
    memory = document.get("memory_bytes")
    queue.memory_mib = None if memory is None else memory // MIB
    queue.parent = document.get("parent", "")
    queue.deserved, queue.guarantee = document.get("deserved", {}), document.get("guarantee", {})
    queue.state = QueueState.CLOSED if document["state"] == CLOSED else QueueState.OPEN


def delete(rows: Rows) -> None:
    names = [parts_of(key)[0] for key in rows.gone("queue")]
    if not names:
        return
    found = rows.locked(Queue.objects.filter(cluster=rows.cluster, name__in=names))
    for queue in found:
        rows.tell(f"queue/{queue.name}", queue, queue.pk)
    Queue.objects.filter(pk__in=[queue.pk for queue in found]).delete()
