import datetime as dt
from collections.abc import Iterator
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Exists, Max, Model, OuterRef, Q, QuerySet

from tidesched_web.audit.models import AuditEntry, AuditHead, ChainCheck, Segment, SignedHead, SigningKey
from tidesched_web.common.encryption import known_key_ids
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


def has_entry(access: Access, pk: int) -> bool:
    return visible_entries(access).filter(pk=pk).exists()


def touching(entries: QuerySet[AuditEntry], tenant_id: int) -> QuerySet[AuditEntry]:
    return entries.filter(tenant_ids__contains=[tenant_id])


def newest_about(object_type: str, object_id: object, limit: int) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(object_type=object_type, object_id=str(object_id)).order_by("-id")[:limit])


def neighbours(entries: QuerySet[AuditEntry], entry: AuditEntry) -> tuple[AuditEntry | None, AuditEntry | None]:
    earlier = entries.filter(pk__lt=entry.pk).order_by("-id").first()
    later = entries.filter(pk__gt=entry.pk).order_by("id").first()
    return earlier, later


def chain_heads() -> dict[str, AuditHead]:
    return {head.chain: head for head in AuditHead.objects.all()}


def chain_names() -> set[str]:
    """Every chain that a row of any table speaks of: what was taken out of one is missed through another."""
    models: tuple[type[Model], ...] = (AuditHead, AuditEntry, SignedHead, Segment)
    return {
        name
        for model in models
        for name in model._default_manager.order_by().values_list("chain", flat=True).distinct()
    }


def unsigned_since(chain: str, *, after: int, before: dt.timedelta) -> int | None:
    """The first entry behind ``after`` that was written ``before`` the newest signed head of any chain, or earlier."""
    newest = SignedHead.objects.aggregate(at=Max("at"))["at"]
    if newest is None:
        return None
    old = AuditEntry.objects.filter(chain=chain, seq__gt=after, at__lt=newest - before)
    return old.order_by("seq").values_list("seq", flat=True).first()


def chain_entries(chain: str, *, after: int = 0) -> Iterator[AuditEntry]:
    return AuditEntry.objects.filter(chain=chain, seq__gt=after).order_by("seq", "id").iterator(chunk_size=500)


def has_accounts() -> bool:
    """Whether the installation has an account: making one is an entry, so its log cannot be empty."""
    return get_user_model()._default_manager.exists()


def some_entries(chain: str, *, after: tuple[int, int], limit: int) -> list[AuditEntry]:
    seq, number = after
    rest = AuditEntry.objects.filter(chain=chain, seq__gte=seq).exclude(seq=seq, pk__lte=number)
    return list(rest.order_by("seq", "id")[:limit])


def head_rows() -> QuerySet[AuditHead]:
    return AuditHead.objects.order_by("chain")


def anchor_of(chain: str) -> Segment | None:
    return Segment.objects.filter(chain=chain, dropped_at__isnull=False).order_by("-last_seq").first()


def signing_keys() -> QuerySet[SigningKey]:
    return SigningKey.objects.all()


def public_keys() -> dict[str, str]:
    return dict(SigningKey.objects.values_list("key_id", "public_key"))


def signed_heads(chain: str | None = None) -> QuerySet[SignedHead]:
    heads = SignedHead.objects.order_by("-id")
    return heads if chain is None else heads.filter(chain=chain)


def segments() -> QuerySet[Segment]:
    return Segment.objects.order_by("-sealed_at", "chain")


def chain_checks() -> dict[str, ChainCheck]:
    return {check.chain: check for check in ChainCheck.objects.all()}


def waiting_checks() -> list[str]:
    return list(
        ChainCheck.objects.filter(requested_at__isnull=False).order_by("requested_at").values_list("chain", flat=True)
    )


def chains_now() -> list[dict[str, Any]]:
    """Each chain with its end, what is kept, its newest signature and its newest verification. Four queries."""
    checks, heads = chain_checks(), chain_heads()
    newest = SignedHead.objects.filter(chain=OuterRef("chain"), pk__gt=OuterRef("pk"))
    signed = {head.chain: head for head in SignedHead.objects.filter(~Exists(newest))}
    dropped: dict[str, int] = {}
    for chain, last in Segment.objects.filter(dropped_at__isnull=False).values_list("chain", "last_seq"):
        dropped[chain] = max(dropped.get(chain, 0), last)
    return [
        {
            "chain": chain,
            "head": head,
            "kept": head.seq - dropped.get(chain, 0),
            "anchor": dropped.get(chain, 0),
            "signed": signed.get(chain),
            "check": checks.get(chain),
        }
        for chain, head in sorted(heads.items())
    ]


def foreign_encryption_keys() -> list[str]:
    used = set(SigningKey.objects.values_list("encrypted_with", flat=True))
    return sorted(used.difference(known_key_ids())) if used else []
