import base64
import binascii
import datetime as dt
from dataclasses import dataclass

import orjson
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization

from tidesched_web.clusters.kubernetes.connection import BadConnection, Connection

# Later than that no calendar goes; some count milliseconds.
_YEAR_9999 = 253_402_300_800


@dataclass(frozen=True)
class Facts:
    """``subject``: whom the credentials name themselves; ``expires_at``: None where they say nothing of an end."""

    subject: str
    expires_at: dt.datetime | None


@dataclass(frozen=True)
class Authority:
    subject: str
    fingerprint: str
    expires_at: dt.datetime


def authorities(pem: str, *, path: str = "ca_certificate") -> list[Authority]:
    if not pem.strip():
        return []
    try:
        found = x509.load_pem_x509_certificates(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise BadConnection(path, "certificates in PEM are needed (-----BEGIN CERTIFICATE-----)") from None
    return [
        Authority(
            one.subject.rfc4514_string(), one.fingerprint(hashes.SHA256()).hex(":").upper(), one.not_valid_after_utc
        )
        for one in found
    ]


def facts_of(connection: Connection) -> Facts:
    if connection.token_file is not None:
        return token_facts(connection.token_file.token())
    if connection.client_certificate:
        return _certificate_facts(connection)
    return token_facts(connection.token)


def token_facts(token: str) -> Facts:
    """What a token says of itself, unverified: only the cluster can tell whether it is true."""
    claims = _claims(token)
    end, subject = claims.get("exp"), claims.get("sub")
    expires = dt.datetime.fromtimestamp(end, dt.UTC) if isinstance(end, int) and 0 < end < _YEAR_9999 else None
    return Facts(subject[:300].replace("\0", "") if isinstance(subject, str) else "", expires)


def _claims(token: str) -> dict[str, object]:
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        read = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _certificate_facts(connection: Connection) -> Facts:
    try:
        certificate = x509.load_pem_x509_certificate(connection.client_certificate.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise BadConnection("client-certificate-data", "is not a certificate in PEM") from None
    try:
        key = serialization.load_pem_private_key(connection.client_key.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadConnection("client-key-data", "is not a private key in PEM without a password") from None
    if key.public_key() != certificate.public_key():
        raise BadConnection("client-key-data", "is not the key of the client certificate")
    names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    subject = str(names[0].value) if names else certificate.subject.rfc4514_string()
    return Facts(subject[:300], certificate.not_valid_after_utc)
