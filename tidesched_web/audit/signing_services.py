"""Keys that sign the audit log, and the heads that they have signed."""

from __future__ import annotations

import datetime as dt
import logging

from django.db import transaction
from django.utils import timezone

from tidesched_web.audit import signing
from tidesched_web.audit.models import AuditHead, SignedHead, SigningKey
from tidesched_web.audit.services import PLATFORM_CHAIN, append
from tidesched_web.common.encryption import decrypt, encrypt, known_key_ids

SIGN_EVERY = dt.timedelta(hours=1)
_log = logging.getLogger(__name__)


def signing_key() -> SigningKey:
    """The key that signs now; made on first use."""
    key = SigningKey.objects.order_by("-number").first()
    if key is None:
        # Two first users: the unique number lets one of the two keys in, and both sign with that one.
        SigningKey.objects.bulk_create([_made(1)], ignore_conflicts=True)
        key = SigningKey.objects.order_by("-number").get()
    return key


def _made(number: int) -> SigningKey:
    private = signing.new_private_key()
    public = signing.public_key_of(private)
    cipher, key = encrypt(private)
    return SigningKey(
        number=number, key_id=signing.key_id_of(public), public_key=public, private_key=cipher, encrypted_with=key
    )


def sign(statement: bytes) -> tuple[str, str]:
    """The id of the key and the signature."""
    key = signing_key()
    return key.key_id, signing.sign(decrypt(bytes(key.private_key), key.encrypted_with), statement)


@transaction.atomic
def new_signing_key(*, actor: str, reason: str = "") -> SigningKey:
    """Sign with a new key from now on; the old ones go on verifying what they signed."""
    before = signing_key()
    key = _made(before.number + 1)
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
    made = []
    for head in AuditHead.objects.filter(seq__gt=0).order_by("chain"):
        last = SignedHead.objects.filter(chain=head.chain).order_by("-seq").first()
        if last is not None and (last.seq >= head.seq or (not at_once and now - last.at < SIGN_EVERY)):
            continue
        statement = signing.head_statement(chain=head.chain, seq=head.seq, hash=head.hash, at=now)
        key_id, signature = sign(statement)
        signed, mine = SignedHead.objects.get_or_create(
            chain=head.chain,
            seq=head.seq,
            defaults={
                "hash": head.hash,
                "at": now,
                "key_id": key_id,
                "statement": statement,
                "signature": signature,
            },
        )
        if mine:
            made.append(signed)
            # A log that is shipped elsewhere is a copy which the database's owner does not reach.
            _log.info("audit head %s signature %s key %s", statement.decode(), signature, key_id)
    return made


def encrypt_signing_keys_anew() -> int:
    """Encrypt every signing key with the first of ``TIDESCHED_KEYS``; returns how many were not."""
    stale = SigningKey.objects.exclude(encrypted_with=known_key_ids()[0])
    for key in stale:
        key.private_key, key.encrypted_with = encrypt(decrypt(bytes(key.private_key), key.encrypted_with))
        key.save(update_fields=["private_key", "encrypted_with"])
    return len(stale)
