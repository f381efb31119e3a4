"""Connections that look at whom they are connected to, since a name may lead anywhere by the time it is used."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError

from tidesched_web.clusters.kubernetes.connection import gives_away


def _refuse(connection: HTTPConnection, sock: socket.socket) -> socket.socket:
    peer = str(sock.getpeername()[0]).partition("%")[0]
    if gives_away(ipaddress.ip_address(peer)):
        sock.close()
        raise NewConnectionError(connection, f"{connection.host} leads to {peer}, where no cluster may be")
    return sock


class _OnePiece(HTTPConnection):
    """Head and body of a request leave together: one TLS record and one call of the kernel, not two."""

    _held: list[bytes] | None = None

    def request(self, *args: Any, **kwargs: Any) -> None:
        self._held = []
        try:
            super().request(*args, **kwargs)
            whole = b"".join(self._held)
        finally:
            self._held = None
        self.send(whole)

    def send(self, data: Any) -> None:
        if self._held is not None and isinstance(data, bytes):
            self._held.append(data)
        else:
            super().send(data)


class _Plain(_OnePiece):
    def _new_conn(self) -> socket.socket:
        return _refuse(self, super()._new_conn())


class _Encrypted(_OnePiece, HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _refuse(self, super()._new_conn())


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _EncryptedPool(HTTPSConnectionPool):
    ConnectionCls = _Encrypted


def guard(pool: PoolManager) -> None:
    """Make ``pool`` refuse peers that give secrets away; a proxy, chosen by whoever runs this server, is left alone."""
    if not isinstance(pool, ProxyManager):
        pool.pool_classes_by_scheme = {"http": _PlainPool, "https": _EncryptedPool}
