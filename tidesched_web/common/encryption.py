"""Encryption at rest with the keys of ``TIDESCHED_KEYS``: the first encrypts, every one decrypts."""

import hashlib

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from tidesched_web.common.errors import DomainError


def key_id(key: str) -> str:
    return hashlib.sha256(b"tidesched key id\0" + key.encode()).hexdigest()[:12]


def _keys() -> list[str]:
    keys: list[str] = list(settings.TIDESCHED_KEYS)
    if not keys:
        raise DomainError("undecryptable", "No key for secrets at rest: set TIDESCHED_KEYS.")
    return keys


def known_key_ids() -> list[str]:
    return [key_id(key) for key in _keys()]


def encrypt(plain: bytes) -> tuple[bytes, str]:
    keys = _keys()
    return Fernet(keys[0]).encrypt(plain), key_id(keys[0])


def decrypt(cipher: bytes, made_by: str) -> bytes:
    """A foreign key is ``undecryptable``; the message names ids, never contents."""
    keys = _keys()
    try:
        return MultiFernet([Fernet(key) for key in keys]).decrypt(bytes(cipher))
    except InvalidToken:
        known = ", ".join(key_id(key) for key in keys)
        raise DomainError(
            "undecryptable", f"A stored secret was made with key {made_by}; TIDESCHED_KEYS has only {known}."
        ) from None
