"""Credentials of clusters: encrypted at rest, never returned, never logged."""

from __future__ import annotations

from tidesched_web.clusters.models import Cluster
from tidesched_web.common.encryption import decrypt, encrypt


def bearer_token(cluster: Cluster) -> str:
    """The token for the cluster's API server; empty where it needs none."""
    if not cluster.credentials:
        return ""
    return decrypt(bytes(cluster.credentials), cluster.credentials_key_id).decode()


def seal(cluster: Cluster, token: str) -> None:
    """Put ``token`` into ``cluster``, encrypted; the caller saves."""
    if token:
        cluster.credentials, cluster.credentials_key_id = encrypt(token.encode())
    else:
        cluster.credentials, cluster.credentials_key_id = None, ""
