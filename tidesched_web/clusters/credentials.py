"""Encrypted at rest, never returned, never logged."""

from typing import Any

import orjson

from tidesched_web.clusters.kubernetes.connection import BadConnection, Connection
from tidesched_web.clusters.kubernetes.in_cluster import in_cluster_connection
from tidesched_web.clusters.models import ConnectionKind, SealedConnection
from tidesched_web.common.encryption import decrypt, encrypt
from tidesched_web.common.errors import DomainError

# What `connection_of` raises: this process cannot reach the cluster, which is no reason to leave others alone.
UNUSABLE = (BadConnection, DomainError)


def _secrets(row: SealedConnection) -> dict[str, str]:
    if not row.credentials:
        return {}
    plain = decrypt(bytes(row.credentials), row.credentials_key_id)
    try:
        read = orjson.loads(plain)
    except orjson.JSONDecodeError:
        read = None
    # Rows of earlier versions hold a token and nothing else.
    return read if isinstance(read, dict) else {"token": plain.decode()}


def bearer_token(row: SealedConnection) -> str:
    return _secrets(row).get("token", "")


def kubeconfig_of(row: SealedConnection) -> str:
    return _secrets(row).get("kubeconfig", "")


def connection_of(row: SealedConnection) -> Connection:
    if row.connection_kind == ConnectionKind.IN_CLUSTER:
        return in_cluster_connection()
    secrets = _secrets(row)
    return Connection(
        row.api_url,
        ca_certificate=row.ca_certificate,
        token=secrets.get("token", ""),
        client_certificate=secrets.get("client_certificate", ""),
        client_key=secrets.get("client_key", ""),
        tls_server_name=row.tls_server_name,
    )


def seal(row: SealedConnection, token: str = "", **more: str) -> None:
    held: dict[str, Any] = {name: text for name, text in {"token": token, **more}.items() if text}
    if held:
        row.credentials, row.credentials_key_id = encrypt(orjson.dumps(held))
    else:
        row.credentials, row.credentials_key_id = None, ""


def seal_anew(row: SealedConnection) -> None:
    seal(row, **_secrets(row))
