"""Append to the audit log. The only writer of its tables; entries are never changed afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Fact:
    """One thing that happened, without its place in a chain."""

    action: str
    object_type: str
    object_id: object
    object_label: str = ""
    tenant_ids: Iterable[int] = ()
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


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
    fact = Fact(action, object_type, object_id, object_label, tenant_ids, before, after)
    return append_all([fact], chain=chain, actor=actor, cluster_id=cluster_id, reason=reason)[0]


@transaction.atomic(savepoint=False)
def append_all(
    facts: Iterable[Fact], *, chain: str, actor: str, cluster_id: int | None = None, reason: str = ""
) -> list[AuditEntry]:
    """Add entries at the end of ``chain`` in their order, all of one act. As `append`, call it last."""
    context = request_context.current()
    shared = {
        "actor": actor[:200],
        "cluster_id": cluster_id,
        "request_id": context.request_id,
        "address": context.address,
        "reason": reason,
    }
    rows = [
        plain(
            {
                **shared,
                "action": fact.action,
                "object_type": fact.object_type,
                "object_id": str(fact.object_id),
                "object_label": fact.object_label[:300],
                "tenant_ids": sorted(set(fact.tenant_ids)),
                "before": fact.before,
                "after": fact.after,
            }
        )
        for fact in facts
    ]
    if not rows:
        return []
    head = _locked_head(chain)
    # Taken under the lock: time never runs backwards along a chain, as long as the machine's clock does not.
    at = timezone.now()
    entries = []
    for row in rows:
        place = {"recipe": RECIPE, "chain": chain, "seq": head.seq + 1, "at": moment(at), "prev_hash": head.hash}
        payload = canonical_bytes({**place, **row})
        entry = AuditEntry(
            chain=chain, seq=head.seq + 1, at=at, payload=payload, prev_hash=head.hash, hash=digest(payload), **row
        )
        head.seq, head.hash = entry.seq, entry.hash
        entries.append(entry)
    AuditEntry.objects.bulk_create(entries, batch_size=1000)
    head.save(update_fields=["seq", "hash"])
    return entries


def _locked_head(chain: str) -> AuditHead:
    heads = AuditHead.objects.select_for_update()
    head = heads.filter(chain=chain).first()
    if head is None:
        # Two first writers: one inserts, the other waits for it in the index and then finds the row.
        AuditHead.objects.bulk_create([AuditHead(chain=chain)], ignore_conflicts=True)
        head = heads.get(chain=chain)
    return head
