"""Read the audit log."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q, QuerySet

from tidesched_web.audit.models import AuditEntry, AuditHead
from tidesched_web.common.permissions import Access


def visible_entries(access: Access) -> QuerySet[AuditEntry]:
    """All for those who see everything; for a member the entries that touch a tenant of theirs."""
    entries = AuditEntry.objects.all()
    if access.everything:
        return entries
    touches = Q(pk__in=[])
    for tenant_id in sorted(access.tenant_ids):
        touches |= Q(tenant_ids__contains=[tenant_id])
    return entries.filter(touches)


def chain_heads() -> dict[str, AuditHead]:
    """The end of each chain, by name."""
    return {head.chain: head for head in AuditHead.objects.all()}


def chain_entries(chain: str) -> Iterator[AuditEntry]:
    """The entries of a chain in order, without holding them all in memory."""
    return AuditEntry.objects.filter(chain=chain).order_by("seq").iterator(chunk_size=500)
