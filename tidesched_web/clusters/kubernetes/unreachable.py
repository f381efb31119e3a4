"""Why a server did not answer, as a code that says what a person can do about it."""

from __future__ import annotations

import ssl

from urllib3 import exceptions

from tidesched_web.clusters.kubernetes.answers import BeyondBound
from tidesched_web.clusters.kubernetes.client import Unreachable
from tidesched_web.clusters.kubernetes.guarded_pool import HeadTooSlow

# OpenSSL's X509_V_ERR_*.
_EXPIRED = {9, 10}
_UNKNOWN_ISSUER = {2, 18, 19, 20, 21, 24}
_OTHER_NAME = {62, 64}


def reason_of(error: Unreachable) -> str:
    """``name_unknown``, ``refused``, ``no_answer``, ``wrong_authority``, ``wrong_name``, ``server_expired``, …"""
    cause = error.__cause__
    if isinstance(cause, exceptions.NameResolutionError):
        return "name_unknown"
    if isinstance(cause, exceptions.NewConnectionError):
        return "forbidden_address" if "where no cluster may be" in str(cause) else "refused"
    if isinstance(cause, exceptions.SSLError):
        return _tls_reason(cause)
    if isinstance(cause, exceptions.TimeoutError):
        return "no_answer"
    if isinstance(cause, BeyondBound):
        return cause.code
    if isinstance(cause, HeadTooSlow):
        return "too_slow"
    if isinstance(cause, exceptions.ProtocolError):
        return "broken_off"
    return "unreachable"


def _tls_reason(error: exceptions.SSLError) -> str:
    inner = error.args[0] if error.args else None
    if not isinstance(inner, ssl.SSLCertVerificationError):
        return "no_tls" if "WRONG_VERSION_NUMBER" in str(error) or "record layer" in str(error) else "tls_failed"
    if inner.verify_code in _OTHER_NAME:
        return "wrong_name"
    if inner.verify_code in _EXPIRED:
        return "server_expired"
    return "wrong_authority" if inner.verify_code in _UNKNOWN_ISSUER else "tls_failed"
