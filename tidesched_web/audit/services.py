from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import BigIntegerField, CharField, Func, Subquery, Value
from django.db.models.expressions import BaseExpression
from django.utils import timezone
from psycopg.types.json import Jsonb

from tidesched_web.audit import key_services, signing
from tidesched_web.audit.canonical import canonical_bytes, digest, moment, plain
from tidesched_web.audit.models import AuditEntry, AuditHead, SigningKey
from tidesched_web.common import request_context
from tidesched_web.common.actors import actor_of

PLATFORM_CHAIN = "platform"
RECIPE = 3
_SEQUENCE = "audit_auditentry_id_seq"
# Up to so many entries one INSERT costs less than to begin a COPY.
_FEW: Final = 50
# Types of the columns that are no text, for a binary COPY.
_BINARY: Final = {
    "id": "bigint", "seq": "bigint", "cluster_id": "bigint", "at": "timestamptz", "payload": "bytea",
    "tenant_ids": "jsonb", "before": "jsonb", "after": "jsonb",
}  # fmt: skip


def cluster_chain(cluster_id: int) -> str:
    """The chain of one cluster: clusters do not wait for each other."""
    return f"cluster:{cluster_id}"


@dataclass(frozen=True)
class Fact:
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
    """Call it last: from here to the commit everybody else who appends to this chain waits (``common.locking``)."""
    fact = Fact(action, object_type, object_id, object_label, tenant_ids, before, after)
    return append_all([fact], chain=chain, actor=actor, cluster_id=cluster_id, reason=reason)[0]


@transaction.atomic(savepoint=False)
def append_all(
    facts: Iterable[Fact], *, chain: str, actor: str, cluster_id: int | None = None, reason: str = ""
) -> list[AuditEntry]:
    context, who = request_context.current(), actor_of(actor)
    shared = {
        "actor": who[:200],
        "actor_kind": who.kind,
        "actor_id": who.id,
        "actor_issuer": who.issuer,
        "actor_subject": who.subject,
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
    numbers = [head.next_id, *_more_numbers(len(rows) - 1)]  # type: ignore[attr-defined]  # annotated
    signer = key_services.signer(head.key_id)  # type: ignore[attr-defined]  # annotated
    # Taken under the lock: time never runs backwards along a chain, as long as the machine's clock does not.
    at = timezone.now()
    entries = []
    for number, row in zip(numbers, rows, strict=True):
        seq, place = head.seq + 1, {"recipe": RECIPE, "chain": chain, "id": number, "heads": head.heads}
        payload = canonical_bytes({**place, "seq": seq, "at": moment(at), "prev_hash": head.hash, **row})
        hashed = digest(payload)
        signature = signer.sign(signing.entry_statement(chain=chain, seq=seq, hash=hashed))
        entries.append(
            AuditEntry(
                id=number,
                chain=chain,
                seq=seq,
                at=at,
                payload=payload,
                prev_hash=head.hash,
                hash=hashed,
                key_id=signer.key_id,
                signature=signature,
                **row,
            )
        )
        head.seq, head.hash = seq, hashed
    _insert(entries)
    head.save(update_fields=["seq", "hash"])
    return entries


def _insert(entries: Sequence[AuditEntry]) -> None:
    if len(entries) <= _FEW:
        AuditEntry.objects.bulk_create(entries)
        return
    columns = [field.attname for field in AuditEntry._meta.concrete_fields]
    names = ", ".join(connection.ops.quote_name(column) for column in columns)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {AuditEntry._meta.db_table} ({names}) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.set_types([_BINARY.get(column, "text") for column in columns])
        for entry in entries:
            copy.write_row([_bound(column, getattr(entry, column)) for column in columns])


def _bound(column: str, value: Any) -> Any:
    return Jsonb(value) if value is not None and _BINARY.get(column) == "jsonb" else value


def _more_numbers(count: int) -> list[int]:
    if not count:
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(%s) FROM generate_series(1, %s)", [_SEQUENCE, count])
        return sorted(number for (number,) in cursor.fetchall())


def _locked_head(chain: str) -> AuditHead:
    """The head, locked, with the number of its next entry and the id of the key that signs now. One query."""
    newest = SigningKey.objects.order_by("-number").values("key_id")[:1]
    annotations: dict[str, BaseExpression] = {
        "next_id": Func(Value(_SEQUENCE), function="nextval", output_field=BigIntegerField()),
        "key_id": Subquery(newest, output_field=CharField()),
    }
    heads = AuditHead.objects.select_for_update(of=("self",)).annotate(**annotations)
    head = heads.filter(chain=chain).first()
    if head is None:
        # Two first writers: one inserts, the other waits for it in the index and then finds the row.
        AuditHead.objects.bulk_create([AuditHead(chain=chain)], ignore_conflicts=True)
        head = heads.get(chain=chain)
    return head
