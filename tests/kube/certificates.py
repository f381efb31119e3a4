"""A certificate authority of the suite's own, and what it signs."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 7


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: str
    key: str

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """``name.crt`` and ``name.key`` in the folder."""
        paths = folder / f"{name}.crt", folder / f"{name}.key"
        for path, text in zip(paths, (self.certificate, self.key), strict=True):
            path.write_text(text)
            path.chmod(0o600)
        return paths


class Authority:
    """A root that the tests trust for their own servers and users only."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("tidesched-tests")
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._root = builder.sign(self._key, hashes.SHA256())

    @property
    def certificate(self) -> str:
        return _pem(self._root)

    def server(self, *names: str) -> Pair:
        """For a server on loopback."""
        alternatives: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        alternatives += [x509.DNSName(name) for name in ("localhost", *names)]
        return self._sign("kube-apiserver", ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def user(self, name: str, *groups: str) -> Pair:
        """For a user with a client certificate."""
        return self._sign(name, ExtendedKeyUsageOID.CLIENT_AUTH, [], groups)

    def _sign(
        self,
        name: str,
        usage: x509.ObjectIdentifier,
        alternatives: list[x509.GeneralName],
        groups: tuple[str, ...] = (),
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name, groups), self._name, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), key_pem(key))


def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """A key as the programs read it."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def public_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """Its public half."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def _name(common: str, groups: tuple[str, ...] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=issuer,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - dt.timedelta(hours=1),
        not_valid_after=now + dt.timedelta(days=_DAYS),
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
