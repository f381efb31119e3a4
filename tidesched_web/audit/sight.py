"""What a reader who does not see everything is not told of an entry."""

from __future__ import annotations

from typing import Any

from tidesched_web.audit.models import AuditEntry
from tidesched_web.common.permissions import Access

_OF_OTHERS = ("candidates", "more_candidates")


def tenants_shown(entry: AuditEntry, access: Access) -> list[int]:
    """Of the tenants that it touches those that the reader sees."""
    return [tenant for tenant in entry.tenant_ids if access.everything or tenant in access.tenant_ids]


def content_hidden(entry: AuditEntry, access: Access) -> bool:
    """Whether before and after stay hidden: the entry also touches somebody else's tenant."""
    return not access.sees_all_of(entry.tenant_ids)


def after_shown(entry: AuditEntry, access: Access) -> dict[str, Any] | None:
    """What the reader may see of the state after. Gangs that came into question in a reclaim may be anybody's: the
    entry does not touch their tenants.
    """
    if content_hidden(entry, access):
        return None
    if not entry.after or entry.object_type != "reclaim" or access.everything:
        return entry.after
    return {name: value for name, value in entry.after.items() if name not in _OF_OTHERS}


def hide(entry: AuditEntry, access: Access) -> AuditEntry:
    """The entry as the reader may see it: changed in memory, never stored."""
    if not access.everything:
        entry.address = ""
    entry.after = after_shown(entry, access)
    if content_hidden(entry, access):
        entry.before = None
    entry.tenant_ids = tenants_shown(entry, access)
    return entry
