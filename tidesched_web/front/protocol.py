"""HTTP/1.1 as uvicorn reads it, with bounds before there is a request: bytes and seconds of its head, connections.

Connections are bounded in all and by the address of the peer, so that one host cannot take those of all others. A
trusted proxy is the peer of all its clients, and bounds them itself.

A client that opens a connection and sends nothing, or a head without an end, holds a descriptor and nothing else; after
so many seconds the connection is closed. What rests between two requests is uvicorn's matter (`timeout_keep_alive`), as
long as nothing comes: uvicorn waits without end once a byte has come that begins no request.

A client that leaves unread what was sent to it keeps that in memory. A little of it has to be read every so often, or
the connection ends: in the middle of an answer, behind its end, and where the connection was closed already.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import ClassVar

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidesched_web.common.client_address import counted_as, from_proxy

# So much has to be read within `WEB_SLOW_READER_SECONDS`; less is no progress.
LEAST_READ_BYTES = 32 * 1024


class BoundedProtocol(HttpToolsProtocol):
    # Open connections of this process by the address that they count for.
    by_address: ClassVar[Counter[str]] = Counter()

    _address = ""
    _in_head = True
    _head_bytes = 0
    _head_due: asyncio.TimerHandle | None = None
    _lost = False
    _unread = 0
    _reader_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > settings.WEB_CONNECTIONS or not self._is_one_of_few():
            transport.close()
        else:
            self._expect_head()

    def _is_one_of_few(self) -> bool:
        """Count the connection; False where its address has as many as one may have."""
        if self.client is None or from_proxy(self.client[0]):
            return True
        self._address = counted_as(self.client[0])
        self.by_address[self._address] += 1
        return self.by_address[self._address] <= settings.WEB_CONNECTIONS_OF_ONE

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self._address:
            self.by_address[self._address] -= 1
            if not self.by_address[self._address]:
                del self.by_address[self._address]
        self._head_is_there()
        self._reader_goes_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > settings.WEB_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(f"The head of a request may have {settings.WEB_HEAD_BYTES} bytes.")
        elif self.cycle is not None and self.cycle.response_complete:
            # An empty line, or more of a body whose answer was sent already: uvicorn has stopped its own clock.
            self._wait_for_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._head_is_there()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if not self._in_head:
            self._in_head, self._head_bytes = True, 0
        self._wait_for_head()

    def _wait_for_head(self) -> None:
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
            self._watch_reader()

    # -- clients that do not read --------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        self._reader_goes_on()
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_reader()

    def _watch_reader(self) -> None:
        """What was written and is not read yet has to become less."""
        if self._reader_due is None and not self._lost:
            self._unread = self.transport.get_write_buffer_size()
            if self._unread:
                self._reader_due = self.loop.call_later(settings.WEB_SLOW_READER_SECONDS, self._has_it_read)

    def _reader_goes_on(self) -> None:
        if self._reader_due is not None:
            self._reader_due.cancel()
            self._reader_due = None

    def _has_it_read(self) -> None:
        self._reader_due = None
        left = self.transport.get_write_buffer_size()
        if left and left > self._unread - LEAST_READ_BYTES:
            self.transport.abort()
        elif left:
            self._watch_reader()
