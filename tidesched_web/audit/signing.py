import datetime as dt
import hashlib
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tidesched_web.audit.canonical import canonical_bytes, moment

RECIPE = 2


def new_private_key() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes_raw()


def public_key_of(private_key: bytes) -> str:
    return Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw().hex()


def key_id_of(public_key: str) -> str:
    """The name of a key: the first 16 digits of the SHA-256 of its public half."""
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:16]


def statement(kind: str, **facts: Any) -> bytes:
    return canonical_bytes({"recipe": RECIPE, "kind": kind, **facts})


def entry_statement(*, chain: str, seq: int, hash: str) -> bytes:  # noqa: A002 - the recipe's word
    return statement("entry", chain=chain, seq=seq, hash=hash)


def head_statement(*, at: dt.datetime, **facts: Any) -> bytes:
    """What is signed of the end of a chain: chain, seq, hash, number, and the SHA-256 of the statement before it."""
    return statement("head", **facts, at=moment(at))


def early_head_statement(*, chain: str, seq: int, hash: str, at: dt.datetime) -> bytes:  # noqa: A002 - as above
    """The head of recipe 1: it vouches for entries that were written before each was signed."""
    return canonical_bytes({"recipe": 1, "kind": "head", "chain": chain, "seq": seq, "hash": hash, "at": moment(at)})


def sign(private_key: bytes, message: bytes) -> str:
    return Ed25519PrivateKey.from_private_bytes(private_key).sign(message).hex()


def holds(public_key: str, message: bytes, signature: str) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True
