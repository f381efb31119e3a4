"""Append to the audit log. The only writer of its tables; entries are never changed afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from tidesched_web.audit.canonical import canonical_bytes, digest, moment, plain
from tidesched_web.audit.models import AuditEntry, AuditHead
from tidesched_web.common import request_context

PLATFORM_CHAIN = "platform"
RECIPE = 1


def cluster_chain(cluster_id: int) -> str:
    """The chain of one cluster: clusters do not wait for each other."""
    return f"cluster:{cluster_id}"


@transaction.atomic
def append(
    *,
    chain: str,
    actor: str,
    action: str,
    object_type: str,
    object_id: object,
    object_label: str = "",
    cluster_id: int | None = None,
    tenant_ids: Iterable[int] = (),
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Add one entry at the end of ``chain``, in the transaction of the change that it tells of.

    Call it last: from here to the commit everybody else who appends to this chain waits (``common.locking``).
    """
    context = request_context.current()
    facts: dict[str, Any] = {
        "actor": actor[:200],
        "action": action,
        "object_type": object_type,
        "object_id": str(object_id),
        "object_label": object_label[:300],
        "cluster_id": cluster_id,
        "tenant_ids": sorted(set(tenant_ids)),
        "request_id": context.request_id,
        "address": context.address,
        "reason": reason,
        "before": before,
        "after": after,
    }
    facts = plain(facts)
    head = _locked_head(chain)
    # Taken under the lock: time never runs backwards along a chain, as long as the machine's clock does not.
    at = timezone.now()
    seq = head.seq + 1
    payload = canonical_bytes(
        {"recipe": RECIPE, "chain": chain, "seq": seq, "at": moment(at), "prev_hash": head.hash, **facts}
    )
    entry = AuditEntry.objects.create(
        chain=chain, seq=seq, at=at, payload=payload, prev_hash=head.hash, hash=digest(payload), **facts
    )
    head.seq, head.hash = seq, entry.hash
    head.save(update_fields=["seq", "hash"])
    return entry


def _locked_head(chain: str) -> AuditHead:
    heads = AuditHead.objects.select_for_update()
    head = heads.filter(chain=chain).first()
    if head is None:
        # Two first writers: one inserts, the other waits for it in the index and then finds the row.
        AuditHead.objects.bulk_create([AuditHead(chain=chain)], ignore_conflicts=True)
        head = heads.get(chain=chain)
    return head
