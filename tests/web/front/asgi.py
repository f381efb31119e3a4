"""Speaks to an ASGI application as a server does, without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Answer:
    """One answer, as far as it has come."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    complete: bool = False

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks one application; every call is a connection of its own."""

    def __init__(self, application: Any, address: str = "10.0.0.1") -> None:
        self.application, self.address = application, address

    def scope(self, method: str, path: str, headers: Mapping[str, str]) -> dict[str, Any]:
        place, _mark, query = path.partition("?")
        lines = {"host": "testserver", **{name.lower(): text for name, text in headers.items()}}
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": place,
            "raw_path": place.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), text.encode("latin-1")) for name, text in lines.items()],
            "client": (self.address, 50000),
            "server": ("testserver", 80),
        }

    async def ask(
        self, method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None, hold: bool = False
    ) -> Answer:
        """The whole answer. With ``hold`` the body never ends."""
        answer, leave = self.open(method, path, body=body, headers=headers, hold=hold)
        await leave.task  # type: ignore[attr-defined]
        return answer

    def open(
        self, method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None, hold: bool = False
    ) -> tuple[Answer, Connection]:
        """Begin a request; the connection ends it."""
        answer = Answer()
        connection = Connection()
        sent = False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": body, "more_body": hold}
            await connection.left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {name.decode().lower(): text.decode("latin-1") for name, text in message["headers"]}
                answer.begun.set()
            else:
                await connection.reads.wait()
                answer.body += message.get("body", b"")
                answer.complete = not message.get("more_body", False)

        scope = self.scope(method, path, headers or {})
        connection.task = asyncio.ensure_future(self.application(scope, receive, send))
        return answer, connection


class Connection:
    """The client's side of one request."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()
        self.task: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def leave(self) -> None:
        """Hang up, and wait until the application has noticed."""
        self.left.set()
        await self.task
