import base64
import binascii
import datetime as dt
import re
import ssl
from dataclasses import dataclass

import orjson
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization

from tidesched_web.clusters.kubernetes.connection import BadConnection, Connection

_BEGIN = re.compile("-----BEGIN (?:X509 )?CERTIFICATE-----")
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
    pem: str


def authorities(text: str, *, path: str = "ca_certificate") -> list[Authority]:
    """The certificates of a text, each readable for what connects with it; what stands around them is left out."""
    if text and not _BEGIN.search(text):
        raise BadConnection(path, "certificates in PEM are needed (-----BEGIN CERTIFICATE-----)")
    return [_authority(block, number, path) for number, block in enumerate(_BEGIN.split(text)[1:], 1)]


def certificates(text: str, *, path: str = "ca_certificate") -> str:
    return "".join(one.pem for one in authorities(text, path=path))


def _authority(block: str, number: int, path: str) -> Authority:
    try:
        one = x509.load_der_x509_certificate(_from_base64(block.partition("-----END ")[0]))
        pem, digest = one.public_bytes(serialization.Encoding.PEM).decode(), one.fingerprint(hashes.SHA256())
        ssl.create_default_context(cadata=pem)
        return Authority(one.subject.rfc4514_string(), digest.hex(":").upper(), one.not_valid_after_utc, pem)
    except (ValueError, UnsupportedAlgorithm, ssl.SSLError):
        said = "certificate %(number)s in it cannot be read: it is cut off or damaged"
        raise BadConnection(path, said, number=number) from None


def _from_base64(text: str) -> bytes:
    return base64.b64decode("".join(text.split()), validate=True)


def unpacked(text: str, path: str) -> str:
    """A PEM text out of its base64. What of it is not ASCII can be a comment only."""
    try:
        return _from_base64(text).decode("latin-1")
    except ValueError:
        raise BadConnection(path, "is not base64 of a PEM text") from None


def private_key(text: str, *, path: str) -> str:
    if not text:
        return ""
    try:
        key = serialization.load_pem_private_key(text.encode("latin-1"), password=None)
        form, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return key.private_bytes(serialization.Encoding.PEM, form, secret).decode()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadConnection(path, "is not a private key in PEM without a password") from None


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
    certificate = x509.load_pem_x509_certificate(connection.client_certificate.encode())
    key = serialization.load_pem_private_key(connection.client_key.encode(), password=None)
    if key.public_key() != certificate.public_key():
        raise BadConnection("client-key-data", "is not the key of the client certificate")
    names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    subject = str(names[0].value) if names else certificate.subject.rfc4514_string()
    return Facts(subject[:300], certificate.not_valid_after_utc)
