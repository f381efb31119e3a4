"""Tokens of service accounts as kube-apiserver signs them, but with any life time."""

from __future__ import annotations

import base64
import time
from typing import Any

import orjson
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

ISSUER = "https://tidesched.test"
# The API server forgives clocks so many seconds.
_LEEWAY = 60


def sign(key: ec.EllipticCurvePrivateKey, *, namespace: str, account: str, uid: str, seconds: float) -> str:
    """A token of the account. The API server itself gives out none for less than ten minutes."""
    now = int(time.time())
    account_of: dict[str, Any] = {"namespace": namespace, "serviceaccount": {"name": account, "uid": uid}}
    claims = {
        "iss": ISSUER,
        "aud": [ISSUER],
        "sub": f"system:serviceaccount:{namespace}:{account}",
        "iat": now - _LEEWAY,
        "nbf": now - _LEEWAY,
        "exp": now + round(seconds) - _LEEWAY,
        "kubernetes.io": account_of,
    }
    signed = f"{_encoded({'alg': 'ES256', 'typ': 'JWT'})}.{_encoded(claims)}"
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_text(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _encoded(document: dict[str, Any]) -> str:
    return _text(orjson.dumps(document))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
