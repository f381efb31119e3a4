"""A name may lead anywhere by the time it is used: so it is looked at whom a connection has reached."""

import ipaddress
import socket
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPResponse, HTTPSConnectionPool, PoolManager, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError

from tidesched_web.clusters.kubernetes.connection import gives_away
from tidesched_web.clusters.kubernetes.deadlines import Deadline


class HeadTooSlow(TimeoutError):
    """The head of an answer came, and did not end."""


def _refuse(connection: HTTPConnection, sock: socket.socket) -> socket.socket:
    peer = str(sock.getpeername()[0]).partition("%")[0]
    if gives_away(ipaddress.ip_address(peer)):
        sock.close()
        raise NewConnectionError(connection, f"{connection.host} leads to {peer}, where no cluster may be")
    return sock


# So long the head of an answer may take in all, from the last byte of the request on.
HEAD_SECONDS = 60.0


class _OnePiece(HTTPConnection):
    """One TLS record, one call of the kernel; the head has an end though each byte begins the time-out anew."""

    _held: list[bytes] | None = None

    def request(self, *args: Any, **kwargs: Any) -> None:
        self._held = []
        try:
            super().request(*args, **kwargs)
            whole = b"".join(self._held)
        finally:
            self._held = None
        self.send(whole)

    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as urllib3's own class
        sock = self.sock
        response, failed = None, None
        with Deadline(HEAD_SECONDS, lambda: sock.shutdown(socket.SHUT_RDWR)) as deadline:
            try:
                response = super().getresponse()
            except Exception as error:
                if not deadline.passed:
                    raise
                failed = error
        if response is None or deadline.passed:  # what came until then may look whole
            raise HeadTooSlow(f"the head of the answer has not ended after {HEAD_SECONDS:g} s") from failed
        return response

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
    """Make ``pool`` refuse peers that give secrets away; a proxy, chosen by the operator, is left alone."""
    if not isinstance(pool, ProxyManager):
        pool.pool_classes_by_scheme = {"http": _PlainPool, "https": _EncryptedPool}
