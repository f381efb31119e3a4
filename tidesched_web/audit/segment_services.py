import datetime as dt
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from django.db import connection, transaction
from django.db.models import Min
from django.utils import timezone

from tidesched_web.audit import key_services, signing
from tidesched_web.audit.canonical import moment
from tidesched_web.audit.models import AuditEntry, AuditHead, Segment
from tidesched_web.audit.services import PLATFORM_CHAIN, append
from tidesched_web.common.errors import DomainError
from tidesched_web.common.locking import lock_row

# An entry takes its time before it commits; nothing so young is sealed.
YOUNGEST = dt.timedelta(minutes=1)


def segment_lines(segment: Segment) -> Iterator[bytes]:
    """The exported file of a segment: the canonical bytes of each entry and a newline."""
    if segment.dropped_at is not None:
        raise DomainError("conflict", f"{segment} was dropped: only its exported file has the entries.")
    return _lines(segment)


def _lines(segment: Segment) -> Iterator[bytes]:
    entries = AuditEntry.objects.filter(
        chain=segment.chain, seq__gte=segment.first_seq, seq__lte=segment.last_seq
    ).order_by("seq")
    for payload in entries.values_list("payload", flat=True).iterator(chunk_size=500):
        yield bytes(payload) + b"\n"


@transaction.atomic
def seal(*, before: dt.datetime, actor: str, reason: str = "") -> list[Segment]:
    now = timezone.now()
    before = min(before, now - YOUNGEST)
    made = [
        segment
        for chain in AuditHead.objects.order_by("chain").values_list("chain", flat=True)
        if (segment := _seal_chain(chain, before, now, actor)) is not None
    ]
    for segment in made:
        _record(segment, "seal", actor, reason)
    return made


def _seal_chain(chain: str, before: dt.datetime, now: dt.datetime, actor: str) -> Segment | None:
    # Two who seal at once: the unique place lets one in, and the other's transaction is refused.
    last = Segment.objects.filter(chain=chain).order_by("-last_seq").first()
    first_seq = last.last_seq + 1 if last else 1
    rest = AuditEntry.objects.filter(chain=chain, seq__gte=first_seq)
    # Up to the first younger one: should the machine's clock have jumped back, the segment ends before the jump.
    younger = rest.filter(at__gte=before).aggregate(seq=Min("seq"))["seq"]
    entries = rest if younger is None else rest.filter(seq__lt=younger)
    digest, size, count = hashlib.sha256(), 0, 0
    first = final = None
    for entry in entries.order_by("seq").only("seq", "at", "payload", "prev_hash", "hash").iterator(chunk_size=500):
        if entry.seq != first_seq + count:
            raise DomainError(
                "conflict", f"{chain}: entry {first_seq + count} is missing; a broken chain is not sealed."
            )
        line = bytes(entry.payload) + b"\n"
        digest.update(line)
        size, count = size + len(line), count + 1
        first, final = first or entry, entry
    if first is None or final is None:
        return None
    facts: dict[str, Any] = {
        "chain": chain,
        "first_seq": first.seq,
        "last_seq": final.seq,
        "prev_hash": first.prev_hash,
        "last_hash": final.hash,
        "sha256": digest.hexdigest(),
    }
    signer = key_services.signer()
    statement = signing.statement("segment", **facts, at=moment(now))
    return Segment.objects.create(
        **facts,
        first_at=first.at,
        last_at=final.at,
        size=size,
        key_id=signer.key_id,
        statement=statement,
        signature=signer.sign(statement),
        sealed_at=now,
        sealed_by=actor,
    )


@transaction.atomic
def mark_exported(*, segment: Segment, actor: str) -> bool:
    row = lock_row(Segment, segment.pk)
    if row.exported_at is not None:
        return False
    row.exported_at, row.exported_by = timezone.now(), actor[:200]
    row.export_statement, row.export_signature = _mark(row, "export", row.exported_at)
    row.save(update_fields=["exported_at", "exported_by", "export_statement", "export_signature"])
    _record(row, "export", actor, "")
    return True


@transaction.atomic
def drop(*, segment: Segment, actor: str, reason: str) -> Segment:
    """The chain then starts at the segment's signed end; the rows themselves go with the next `purge`."""
    if not reason.strip():
        raise DomainError("reason_required", "Say why: the reason goes into the audit log.")
    row = lock_row(Segment, segment.pk)
    if row.dropped_at is not None:
        raise DomainError("conflict", f"{row} was dropped already.")
    if row.exported_at is None:
        raise DomainError("conflict", f"{row} was never exported: what is dropped unseen is lost.")
    if Segment.objects.filter(chain=row.chain, last_seq__lt=row.first_seq, dropped_at__isnull=True).exists():
        raise DomainError("conflict", f"{row} has older segments before it: they go first.")
    row.dropped_at, row.dropped_by = timezone.now(), actor[:200]
    row.drop_statement, row.drop_signature = _mark(row, "drop", row.dropped_at)
    row.save(update_fields=["dropped_at", "dropped_by", "drop_statement", "drop_signature"])
    _record(row, "drop", actor, reason)
    return row


def _mark(segment: Segment, verb: str, at: dt.datetime) -> tuple[bytes, str]:
    """That a segment was exported or dropped, signed: who has the database alone cannot say so."""
    signer = key_services.signer()
    facts = {"chain": segment.chain, "first_seq": segment.first_seq, "last_seq": segment.last_seq}
    said = signing.statement(verb, **facts, sha256=segment.sha256, at=moment(at), key_id=signer.key_id)
    return said, signer.sign(said)


def sign_early_marks(segment: Segment) -> bool:
    if segment.export_signature or json.loads(bytes(segment.statement))["recipe"] != 1 or not segment.exported_at:
        return False
    segment.export_statement, segment.export_signature = _mark(segment, "export", segment.exported_at)
    if segment.dropped_at is not None:
        segment.drop_statement, segment.drop_signature = _mark(segment, "drop", segment.dropped_at)
    segment.save(update_fields=["export_statement", "export_signature", "drop_statement", "drop_signature"])
    return True


def _record(segment: Segment, verb: str, actor: str, reason: str) -> None:
    append(
        chain=PLATFORM_CHAIN,
        actor=actor,
        action=f"audit.{verb}",
        object_type="audit_segment",
        object_id=segment.pk,
        object_label=str(segment),
        reason=reason,
        after={
            "chain": segment.chain,
            "first_seq": segment.first_seq,
            "last_seq": segment.last_seq,
            "last_hash": segment.last_hash,
            "sha256": segment.sha256,
        },
    )


def purge() -> int:
    """Safe at any time. A function of the schema's owner does it: the application's role deletes no entry."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tidesched_purge_audit()")
        return int(cursor.fetchone()[0])
