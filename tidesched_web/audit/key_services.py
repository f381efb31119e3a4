import json
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tidesched_web.audit import signing
from tidesched_web.audit.models import SigningKey
from tidesched_web.common.encryption import decrypt, encrypt, known_key_ids
from tidesched_web.common.errors import DomainError


@dataclass(frozen=True)
class Signer:
    key_id: str
    private: Ed25519PrivateKey

    def sign(self, message: bytes) -> str:
        return self.private.sign(message).hex()


# Kept by the process: each entry is signed, and decrypting the key each time would cost more than signing.
_ready: dict[str, Signer] = {}


def signing_key() -> SigningKey:
    key = SigningKey.objects.order_by("-number").first()
    if key is None:
        # Two first users: the unique number lets one of the two keys in, and both sign with that one.
        SigningKey.objects.bulk_create([made(1)], ignore_conflicts=True)
        key = SigningKey.objects.order_by("-number").get()
    return key


def made(number: int) -> SigningKey:
    private = signing.new_private_key()
    public = signing.public_key_of(private)
    cipher, key = encrypt(private)
    return SigningKey(
        number=number, key_id=signing.key_id_of(public), public_key=public, private_key=cipher, encrypted_with=key
    )


def signer(key_id: str | None = None) -> Signer:
    """What signs with the newest key; a caller that knows its id saves the question."""
    if key_id is not None and (found := _ready.get(key_id)) is not None:
        return found
    key = signing_key()
    if key.key_id not in _ready:
        private = Ed25519PrivateKey.from_private_bytes(decrypt(bytes(key.private_key), key.encrypted_with))
        if private.public_key().public_bytes_raw().hex() != key.public_key:
            raise DomainError("conflict", f"Signing key {key.key_id} is not what was stored: its halves differ.")
        _ready[key.key_id] = Signer(key.key_id, private)
    return _ready[key.key_id]


def _endorsement_holds(key: SigningKey, publics: dict[str, str]) -> bool:
    by, said = publics.get(key.endorsed_by), bytes(key.endorsement)
    if by is None or not signing.holds(by, said, key.endorsement_signature):
        return False
    facts = json.loads(said)
    return (facts["kind"], facts["number"], facts["public_key"]) == ("key", key.number, key.public_key)


def trusted_keys(pinned: Iterable[str] = ()) -> dict[str, str]:
    """Pinned ones and those they endorse; without a pin those whose private half ``TIDESCHED_KEYS`` decrypts."""
    trusted = {signing.key_id_of(public): public for public in pinned}
    stored = list(SigningKey.objects.order_by("number"))
    if not trusted:
        known_key_ids()  # refuses where there is no key at all: then a pin is needed
        return {key.key_id: key.public_key for key in stored if _is_ours(key)}
    for key in stored:
        if key.key_id == signing.key_id_of(key.public_key) and _endorsement_holds(key, trusted):
            trusted[key.key_id] = key.public_key
    return trusted


def _is_ours(key: SigningKey) -> bool:
    try:
        public = signing.public_key_of(decrypt(bytes(key.private_key), key.encrypted_with))
    except (DomainError, ValueError):
        return False
    return (public, signing.key_id_of(public)) == (key.public_key, key.key_id)
