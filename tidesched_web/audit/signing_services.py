import datetime as dt
import hashlib
import logging

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from tidesched_web.audit import head_file, key_services, signing
from tidesched_web.audit.models import AuditEntry, AuditHead, Segment, SignedHead, SigningKey
from tidesched_web.audit.segment_services import sign_early_marks
from tidesched_web.audit.services import PLATFORM_CHAIN, append
from tidesched_web.common.encryption import decrypt, encrypt, known_key_ids

SIGN_EVERY = dt.timedelta(hours=1)
_log = logging.getLogger(__name__)


@transaction.atomic
def new_signing_key(*, actor: str, reason: str = "") -> SigningKey:
    before = key_services.signing_key()
    signer = key_services.signer(before.key_id)
    key = key_services.made(before.number + 1)
    key.endorsed_by = before.key_id
    key.endorsement = signing.statement("key", number=key.number, public_key=key.public_key)
    key.endorsement_signature = signer.sign(bytes(key.endorsement))
    key.save()
    append(
        chain=PLATFORM_CHAIN,
        actor=actor,
        action="audit.new_key",
        object_type="signing_key",
        object_id=key.key_id,
        object_label=key.key_id,
        reason=reason,
        before={"key_id": before.key_id, "public_key": before.public_key},
        after={"key_id": key.key_id, "public_key": key.public_key},
    )
    return key


def sign_heads(*, at_once: bool = False) -> list[SignedHead]:
    """Sign the end of each chain that moved since its last signature, once an hour; a missed hour is made good."""
    now = timezone.now()
    newest = SignedHead.objects.filter(chain=OuterRef("chain"))
    recent = newest.filter(at__gt=now - SIGN_EVERY)
    due = AuditHead.objects.filter(seq__gt=0).exclude(Exists(newest.filter(seq__gte=OuterRef("seq"))))
    if not at_once:
        due = due.exclude(Exists(recent))
    made = [
        signed
        for chain in due.order_by("chain").values_list("chain", flat=True)
        if (signed := _sign_head(chain, now)) is not None
    ]
    for head in made:
        # A log that is shipped elsewhere is a copy which the database's owner does not reach.
        _log.info("audit head %s signature %s key %s", bytes(head.statement).decode(), head.signature, head.key_id)
    head_file.add(made)
    return made


@transaction.atomic
def _sign_head(chain: str, now: dt.datetime) -> SignedHead | None:
    head = AuditHead.objects.select_for_update().get(chain=chain)
    last = SignedHead.objects.filter(chain=chain).order_by("-id").first()
    if last is not None and last.seq >= head.seq:
        return None  # another process was faster
    signer = key_services.signer()
    prev = hashlib.sha256(bytes(last.statement)).hexdigest() if last is not None else ""
    number = head.heads + 1
    said = signing.head_statement(chain=chain, seq=head.seq, hash=head.hash, at=now, number=number, prev=prev)
    made = SignedHead.objects.create(
        chain=chain,
        number=number,
        seq=head.seq,
        hash=head.hash,
        at=now,
        key_id=signer.key_id,
        statement=said,
        signature=signer.sign(said),
    )
    head.heads = number
    head.save(update_fields=["heads"])
    return made


def vouch_for_early_entries() -> int:
    """A chain whose newest entry is unsigned gets a head of recipe 1, which no later step makes."""
    now, done = timezone.now(), 0
    for head in AuditHead.objects.filter(seq__gt=0).order_by("chain"):
        last = AuditEntry.objects.filter(chain=head.chain, seq=head.seq, signature="").first()
        if last is None or SignedHead.objects.filter(chain=head.chain, seq=head.seq).exists():
            continue
        signer = key_services.signer()
        said = signing.early_head_statement(chain=head.chain, seq=head.seq, hash=head.hash, at=now)
        SignedHead.objects.create(
            chain=head.chain,
            seq=head.seq,
            hash=head.hash,
            at=now,
            key_id=signer.key_id,
            statement=said,
            signature=signer.sign(said),
        )
        done += 1
    return done + sum(sign_early_marks(segment) for segment in Segment.objects.filter(exported_at__isnull=False))


def encrypt_signing_keys_anew() -> int:
    stale = SigningKey.objects.exclude(encrypted_with=known_key_ids()[0])
    for key in stale:
        key.private_key, key.encrypted_with = encrypt(decrypt(bytes(key.private_key), key.encrypted_with))
        key.save(update_fields=["private_key", "encrypted_with"])
    return len(stale)
