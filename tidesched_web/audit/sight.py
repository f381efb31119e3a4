from collections.abc import Collection, Iterable, Iterator
from typing import Any

from tidesched_web.audit.models import AuditEntry
from tidesched_web.common.permissions import Access

_OF_OTHERS = ("candidates", "more_candidates")

# Queues by their cluster's number and their name.
Queues = Collection[tuple[int, str]]


def tenants_shown(entry: AuditEntry, access: Access) -> list[int]:
    return [tenant for tenant in entry.tenant_ids if access.everything or tenant in access.tenant_ids]


def clusters_named(entries: Iterable[AuditEntry]) -> set[int]:
    return {entry.cluster_id for entry in entries if entry.cluster_id is not None and any(_queues_of(entry))}


def _queues_of(entry: AuditEntry) -> Iterator[str]:
    """The queues that a reclaim or a tide plan moves cards between; an entry of another kind names its own alone."""
    if entry.object_type == "reclaim":
        state = entry.after or {}
        yield from (part["queue"] for part in (state, *state.get("victims", ())) if part.get("queue"))
    elif entry.object_type == "tide_plan":
        for state in (entry.before or {}, entry.after or {}):
            for layer in state.get("layers", ()):
                yield from layer["quota"]


def content_hidden(entry: AuditEntry, access: Access, own_queues: Queues) -> bool:
    """It also touches another tenant, or names a queue of the platform's own, which has no tenant to touch."""
    if access.everything:
        return False
    return not access.sees_all_of(entry.tenant_ids) or any(
        (entry.cluster_id, queue) not in own_queues for queue in _queues_of(entry)
    )


def after_shown(entry: AuditEntry, access: Access, own_queues: Queues) -> dict[str, Any] | None:
    """Gangs that came into question in a reclaim may be of any tenant: the entry does not touch their tenants."""
    if content_hidden(entry, access, own_queues):
        return None
    if not entry.after or entry.object_type != "reclaim" or access.everything:
        return entry.after
    return {name: value for name, value in entry.after.items() if name not in _OF_OTHERS}


def hide(entry: AuditEntry, access: Access, own_queues: Queues) -> AuditEntry:
    """The entry as the reader may see it: changed in memory, never stored."""
    if not access.everything:
        entry.address = ""
    hidden, entry.after = content_hidden(entry, access, own_queues), after_shown(entry, access, own_queues)
    if hidden:
        entry.before = None
    entry.tenant_ids = tenants_shown(entry, access)
    return entry
