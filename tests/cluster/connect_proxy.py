"""A proxy of a company: it passes connections on by CONNECT, to one place, and may ask for user and password."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

from tests.cluster.answering_server import key_pem, pair, pem


class ConnectProxy:
    """``wanted``: the credentials that it lets through, as they stand in the header; "" asks for none.
    ``asked``: the first line and the credentials of each request so far. ``folder``: speak TLS, with files there."""

    def __init__(self, port: int, wanted: str = "", *, folder: Path | None = None) -> None:
        self._port, self.wanted = port, wanted
        self.asked: list[tuple[str, str]] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self._context: ssl.SSLContext | None = None
        if folder is not None:
            authority = pair("an authority of proxies")
            certificate, key = pair("a proxy", issuer=authority)
            (folder / "proxy.pem").write_text(pem(certificate) + key_pem(key))
            (folder / "proxies.pem").write_text(pem(authority[0]))
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(folder / "proxy.pem")
        threading.Thread(target=self._serve, daemon=True).start()

    def stop(self) -> None:
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                client = self._socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        try:
            if self._context is not None:
                client = self._context.wrap_socket(client, server_side=True)
            head = b""
            while b"\r\n\r\n" not in head:
                piece = client.recv(4096)
                if not piece:
                    return
                head += piece
            line, *lines = head.decode("latin-1").split("\r\n")
            given = next((one.split(" ")[-1] for one in lines if one.lower().startswith("proxy-authorization:")), "")
            self.asked.append((line, given))
            if given != self.wanted:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_pump, args=(server, client), daemon=True)
            back.start()
            _pump(client, server)
            back.join()
        except OSError:
            return
        finally:
            client.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
