"""What a reader who does not see everything is not told of an entry."""

from __future__ import annotations

from tidesched_web.audit.models import AuditEntry
from tidesched_web.common.permissions import Access


def tenants_shown(entry: AuditEntry, access: Access) -> list[int]:
    """Of the tenants that it touches those that the reader sees."""
    return [tenant for tenant in entry.tenant_ids if access.everything or tenant in access.tenant_ids]


def content_hidden(entry: AuditEntry, access: Access) -> bool:
    """Whether before and after stay hidden: the entry also touches somebody else's tenant."""
    return not access.sees_all_of(entry.tenant_ids)


def hide(entry: AuditEntry, access: Access) -> AuditEntry:
    """The entry as the reader may see it: changed in memory, never stored."""
    if not access.everything:
        entry.address = ""
    if content_hidden(entry, access):
        entry.before = entry.after = None
    entry.tenant_ids = tenants_shown(entry, access)
    return entry
