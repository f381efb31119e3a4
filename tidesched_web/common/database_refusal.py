"""Why a PostgreSQL server refuses a connection, by the code that it gives: its words are in its own language.

libpq tells the words alone, so the server is asked once more, by the first message of its protocol.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

PROTOCOL: Final = 196608
# A server that begins or ends takes no connection of anyone: cannot_connect_now.
NOBODY: Final = "57P03"


def refusal_code(host: str, port: str, seconds: float) -> str:
    """The code that the server refuses a connection with; empty where it takes one, or gives no code."""
    asked = b"user\0tidesched\0\0"
    with _connected(host, port, seconds) as server, server.makefile("rb") as answer:
        server.sendall(struct.pack("!ii", len(asked) + 8, PROTOCOL) + asked)
        if answer.read(1) != b"E":
            return ""
        (length,) = struct.unpack("!i", answer.read(4))
        fields = answer.read(length - 4).split(b"\0")
    return next((field[1:].decode("ascii") for field in fields if field[:1] == b"C"), "")


def _connected(host: str, port: str, seconds: float) -> socket.socket:
    if not host.startswith("/"):
        return socket.create_connection((host, int(port)), seconds)
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(seconds)
    made.connect(f"{host}/.s.PGSQL.{port}")
    return made
