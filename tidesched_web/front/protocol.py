"""HTTP/1.1 as uvicorn reads it, with bounds before there is a request: bytes and seconds of its head, connections.

A client that opens a connection and sends nothing, or a head without an end, holds a descriptor and nothing else; after
so many seconds the connection is closed. What rests between two requests is uvicorn's matter (`timeout_keep_alive`).
"""

from __future__ import annotations

import asyncio

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    _in_head = True
    _head_bytes = 0
    _head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > settings.WEB_CONNECTIONS:
            transport.close()
        else:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > settings.WEB_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(f"The head of a request may have {settings.WEB_HEAD_BYTES} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._head_is_there()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if not self._in_head:
            self._in_head, self._head_bytes = True, 0
        if self._head_due is None:
            self._head_due = self.loop.call_later(settings.WEB_HEAD_SECONDS, self._too_slow)

    def _head_is_there(self) -> None:
        self._in_head = False
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _too_slow(self) -> None:
        self._head_due = None
        if not self.transport.is_closing():
            self.transport.close()
