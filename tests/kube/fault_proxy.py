"""A proxy between TideSched and an API server that spoils what a test names."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from tests.cluster.servers import ApiServer
from tests.kube.real_server import RealServer
from tests.kube.server_process import free_ports

_UPSTREAM_SECONDS = 90.0
EPOCH = "X-TideSched-Epoch"
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length"}


@dataclass
class Fault:
    """What happens to some requests.

    Attributes:
        code: answer this instead of asking the server; 0 asks it.
        reason: Kubernetes' word in the answer.
        method, part: only requests with this method, and with this text in their path and query; empty is any.
        times: for so many requests, then all is well again; negative is for ever.
        after: so many of these requests come through unspoilt first.
        delay: wait so long first. lose_answer: the server does it, the client never hears of it.
        done: called once the server did it, before the answer is passed on.
        retry_after: seconds in the header of that name.
    """

    code: int = 0
    reason: str = ""
    method: str = ""
    part: str = ""
    times: int = -1
    after: int = 0
    delay: float = 0.0
    lose_answer: bool = False
    done: Callable[[], None] | None = None
    retry_after: int = 0
    seen: int = 0

    def concerns(self, method: str, path: str) -> bool:
        return self.times != 0 and self.method in ("", method) and self.part in path


class FaultProxy(ApiServer):
    """Looks like the API server behind it; a client trusts it as it trusts that one."""

    simulated = False

    def __init__(self, behind: RealServer) -> None:
        self.behind = behind
        self.token, self.ca_certificate = behind.token, behind.ca_certificate
        (self._port,) = free_ports(1)
        self.url = f"https://127.0.0.1:{self._port}"
        self.requests: list[tuple[str, str, int]] = []
        # The session epoch of each request that has one, in the order in which the server was done with them.
        self.epochs: list[int] = []
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._watching: set[socket.socket] = set()
        self._server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server_context.load_cert_chain(*behind.authority.server().write(behind.folder, f"proxy-{self._port}"))
        self._client_context = ssl.create_default_context(cadata=behind.ca_certificate)
        self._listener: ThreadingHTTPServer | None = None

    # -- what tests do to it -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen (again)."""
        proxy = self

        class Handler(_Handler):
            owner = proxy

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A connection that a test cut is no news."""

        self._listener = Listener(("127.0.0.1", self._port), Handler)
        threading.Thread(target=self._listener.serve_forever, args=(0.05,), daemon=True).start()

    def vanish(self) -> None:
        """Refuse connections and cut those that are open, until :meth:`start`."""
        if self._listener is not None:
            self._listener.shutdown()
            self._listener.server_close()
            self._listener = None
        self.cut()

    def cut(self, *, only_watches: bool = False) -> None:
        """Break open connections."""
        with self._lock:
            broken = [one for one in self._open if not only_watches or one in self._watching]
        for one in broken:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it ended by itself just now

    def spoil(self, fault: Fault) -> Fault:
        """From now on; returns the fault, whose ``seen`` counts."""
        with self._lock:
            self._faults.append(fault)
        return fault

    def heal(self) -> None:
        """No more faults."""
        with self._lock:
            self._faults.clear()

    def lead_to(self, behind: RealServer) -> None:
        """Another server answers at this address from now on; it has to take the token of the first."""
        self.behind = behind
        self._client_context = ssl.create_default_context(cadata=behind.ca_certificate)
        self.cut()

    def stop(self) -> None:
        self.vanish()

    # -- what happens in it ------------------------------------------------------------------------------------

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)
            self._watching.discard(connection)

    def watches(self, connection: socket.socket) -> None:
        with self._lock:
            self._watching.add(connection)

    def noted(self, method: str, path: str, code: int, epoch: str = "") -> None:
        with self._lock:
            self.requests.append((method, path, code))
            if epoch and 200 <= code < 300:
                self.epochs.append(int(epoch))

    def fault_of(self, method: str, path: str) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                if fault.concerns(method, path):
                    if fault.after:
                        fault.after -= 1
                        return None
                    fault.times -= fault.times > 0
                    fault.seen += 1
                    return fault
        return None

    def secure(self, connection: socket.socket) -> ssl.SSLSocket:
        return self._server_context.wrap_socket(connection, server_side=True)

    def ask(self) -> http.client.HTTPSConnection:
        parts = urlsplit(self.behind.url)
        return http.client.HTTPSConnection(
            str(parts.hostname), parts.port, timeout=_UPSTREAM_SECONDS, context=self._client_context
        )


class _Handler(BaseHTTPRequestHandler):
    owner: FaultProxy
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body of an answer in one packet

    def setup(self) -> None:
        self.request.settimeout(_UPSTREAM_SECONDS)
        self.request = self.owner.secure(self.request)
        self.owner.opened(self.request)
        super().setup()

    def finish(self) -> None:
        self.owner.closed(self.request)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Tests look at ``requests``."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.owner.fault_of(self.command, self.path)
        if fault is not None and fault.delay:
            time.sleep(fault.delay)
        if fault is not None and fault.code:
            self._refuse(fault)
            return
        watch = "watch" in parse_qs(urlsplit(self.path).query)
        if watch:
            self.owner.watches(self.request)
        self._pass_on(body, fault or Fault())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the base class looks for these

    def _refuse(self, fault: Fault) -> None:
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": fault.code,
            "reason": fault.reason,
            "message": f"{fault.reason or fault.code} by the test",
        }
        content = orjson.dumps(status)
        self.send_response(fault.code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if fault.retry_after:
            self.send_header("Retry-After", str(fault.retry_after))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
        self.owner.noted(self.command, self.path, fault.code)

    def _pass_on(self, body: bytes, fault: Fault) -> None:
        upstream = self.owner.ask()
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            upstream.request(self.command, self.path, body or None, headers | {"Connection": "close"})
            answer = upstream.getresponse()
            self.owner.noted(self.command, self.path, answer.status, self.headers.get(EPOCH, ""))
            if fault.done is not None:
                fault.done()
            if fault.lose_answer:
                answer.read()
                self.close_connection = True
                return
            self._stream(answer)
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            upstream.close()

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        length = answer.getheader("Content-Length")
        if length is not None:
            self.send_header("Content-Length", length)
            self.end_headers()
            self.wfile.write(answer.read())
            self.wfile.flush()
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        while piece := answer.read1(65536):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
