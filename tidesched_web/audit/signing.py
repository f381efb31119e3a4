"""Ed25519 over canonical bytes: what a signature of the audit log says, and whether it holds. Asks no database."""

from __future__ import annotations

import datetime as dt
import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tidesched_web.audit.canonical import canonical_bytes, moment

RECIPE = 1


def new_private_key() -> bytes:
    """The 32 bytes of a new private key."""
    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_key_of(private_key: bytes) -> str:
    """The public half, in hexadecimal."""
    return Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw().hex()


def key_id_of(public_key: str) -> str:
    """The name of a key: the first 16 digits of the SHA-256 of its public half."""
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:16]


def head_statement(*, chain: str, seq: int, hash: str, at: dt.datetime) -> bytes:  # noqa: A002 - the recipe's word
    """What is signed of the end of a chain."""
    return canonical_bytes(
        {"recipe": RECIPE, "kind": "head", "chain": chain, "seq": seq, "hash": hash, "at": moment(at)}
    )


def segment_statement(
    *, chain: str, first_seq: int, last_seq: int, prev_hash: str, last_hash: str, sha256: str, at: dt.datetime
) -> bytes:
    """What is signed of a sealed segment."""
    return canonical_bytes(
        {
            "recipe": RECIPE,
            "kind": "segment",
            "chain": chain,
            "first_seq": first_seq,
            "last_seq": last_seq,
            "prev_hash": prev_hash,
            "last_hash": last_hash,
            "sha256": sha256,
            "at": moment(at),
        }
    )


def sign(private_key: bytes, statement: bytes) -> str:
    """The signature in hexadecimal."""
    return Ed25519PrivateKey.from_private_bytes(private_key).sign(statement).hex()


def holds(public_key: str, statement: bytes, signature: str) -> bool:
    """Whether ``signature`` was made over ``statement`` with the private half of ``public_key``."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(bytes.fromhex(signature), statement)
    except (InvalidSignature, ValueError):
        return False
    return True
